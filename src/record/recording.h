/* The perf.data that a recorder writes: what processes and threads there are, what they have
 * mapped, and their samples. Also the object file with the Python functions, and a copy of it
 * inside the recording.
 *
 * Times are CLOCK_MONOTONIC. Records may come somewhat late; what comes later than readers can have
 * it is stamped with the earliest time that they can. */
#ifndef PITVIPER_RECORD_RECORDING_H
#define PITVIPER_RECORD_RECORDING_H

#include "formats/perfdata_writer.h"
#include "record/kernel_code.h"
#include "record/maps_text.h"
#include "record/python_functions.h"
#include "record/recording_file.h"

struct recording_settings {
    const char *path;  /* of the perf.data */
    const char *cache; /* perf's folder for object files; NULL: none */
    uint32_t frequency_hz;
    bool is_wall;     /* of wall-clock time, not CPU time */
    char **arguments; /* the command line, for the header */
    size_t argument_count;
};

struct recording {
    struct recording_settings settings; /* borrows what it points to */
    struct recording_file file;
    struct perfdata_writer *writer;
    struct python_functions functions;
    uint32_t triggers; /* set of enum sample_trigger: what interrupts the processes */
    char version[160]; /* what wrote the recording, and how: see profile_trigger */
    bool has_kernel;   /* samples may have the kernel's part */
    struct kernel_code kernel;
    uint64_t newest_ns;       /* of all records */
    uint64_t round_newest_ns; /* the same at the last end of a round: nothing older may follow the
                                 next one */
    uint64_t floor_ns;        /* nothing older may follow now */
    uint64_t round_ns;        /* when the last round ended */
    uint64_t save_ns, save_interval_ns; /* when the object file was written, and how often it is */
    int error; /* 0, or the negative errno of the first failure to write: it stays */
};

/* Creates the file, as recording_file_open does. 0 or a negative errno; on failure there is nothing
 * to close. */
int recording_open(struct recording *recording, const struct recording_settings *settings);

/* Completes the file and closes it. 0, or the errno of the first thing that failed. Whether the
 * object file with the Python functions could be written is told apart: without it perf has no
 * names, but we have. */
int recording_finish(struct recording *recording, uint64_t *ret_bytes, int *ret_image_error);

/* Who a record is about, and when. */
struct recording_task {
    int32_t pid, tid;
    uint64_t time_ns;
};

void recording_fork(struct recording *recording, struct recording_task task, int32_t parent_pid);
void recording_comm(struct recording *recording, struct recording_task task, const char *name,
                    bool is_exec);
void recording_exit(struct recording *recording, struct recording_task task);

/* A mapping, with the build-id of its file where it is known (length 0: not). */
void recording_mmap(struct recording *recording, struct recording_task task,
                    const struct maps_mapping *mapping, const uint8_t *build_id, size_t length);

/* The Python functions, which are at the same place in all processes. */
void recording_mmap_python(struct recording *recording, struct recording_task task);

/* The most entries that a call chain can have: records are 64 KB at most. */
enum { RECORDING_CHAIN_MOST = 8000 };

/* ... of which the kernel's part has no more than this; and what both parts need in front of the
 * addresses outside the kernel. */
enum { RECORDING_KERNEL_MOST = 128, RECORDING_FRONT = RECORDING_KERNEL_MOST + 2 };

/* Addresses come innermost first. */
struct recording_sample {
    uint64_t weight_ns;
    bool is_waiting;
    enum perfdata_stack_end end;
    uint64_t *user; /* RECORDING_FRONT entries before it are written to */
    size_t user_count;
    const uint64_t *kernel; /* may change at any time */
    size_t kernel_count;    /* 0: the thread was not in the kernel */
};

void recording_sample(struct recording *recording, struct recording_task task,
                      const struct recording_sample *sample);

/* Samples that were lost up to now. */
void recording_lost(struct recording *recording, struct recording_task task, uint64_t count);

/* To be called often, when all that is known has been written: ends rounds, writes through. */
void recording_tick(struct recording *recording, uint64_t now_ns);

#endif
