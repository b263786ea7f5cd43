/* What the sampler inside a profiled process hands to the recorder outside it: a file in a folder
 * that the recorder made, mapped by both.
 *
 *     FOLDER/PID.N.ring     one per process, and a new one after each exec
 *     FOLDER/PID.none       empty: a process that may not have files of that size
 *
 *     | struct sample_ring_header | data: a ring of records                          | tables |
 *                                 ^ data_at            ^ tail: read up to here   ^ head
 *
 * Positions only grow; a record at position p stands at p modulo the size of the ring, and the data
 * is mapped twice in a row on either side, so that no record is ever in two pieces. Writers are the
 * threads of the process, in signal handlers; there is one reader. A writer takes room by moving
 * `head` on, fills the record, and seals it last: the seal is made of the position and a number of
 * the ring, so what is left of an earlier round is never taken for a record. Nobody waits: without
 * room a sample is counted as lost.
 *
 * The reader may end or be killed at any time, and so may the process: the other one just goes on,
 * and a process whose ring stays full is sampled no more.
 * The reader treats all of it as hostile. */
#ifndef PITVIPER_FORMATS_SAMPLE_RING_H
#define PITVIPER_FORMATS_SAMPLE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Environment: where rings go, see below, and "hz=N,clock=cpu|wall". */
#define SAMPLE_RING_FOLDER "PITVIPER_RECORD"
#define SAMPLE_RING_OPTIONS "PITVIPER_RECORD_OPTIONS"
#define SAMPLE_RING_SUFFIX ".ring"
#define SAMPLE_RING_ABSENT_SUFFIX ".none"

enum {
    SAMPLE_RING_MAGIC = 0x52565650, /* "PVVR" */
    SAMPLE_RING_VERSION = 8,
    SAMPLE_RING_HEADER_BYTES = 4096,
    SAMPLE_RING_BYTES = 4 << 20, /* of data */
    SAMPLE_RING_RECORD_MOST = 1 << 20,
    SAMPLE_RING_TABLES = 16, /* what the reader tells threads: formats/sample_landmarks.h */
    SAMPLE_RING_TABLE_BYTES = 64 << 10,
};

enum sample_clock { SAMPLE_CLOCK_CPU, SAMPLE_CLOCK_WALL };

/* What interrupts the threads. */
enum sample_trigger {
    SAMPLE_TRIGGER_NONE,
    SAMPLE_TRIGGER_PERF_KERNEL, /* perf events, with the kernel's part of the stack */
    SAMPLE_TRIGGER_PERF,        /* a perf event, which counts time in the kernel too */
    SAMPLE_TRIGGER_PERF_USER,   /* a perf event, but time in the kernel is not seen */
    SAMPLE_TRIGGER_CPU_TIMER,   /* as often as the kernel's clock ticks, with weights */
    SAMPLE_TRIGGER_WALL_TIMER,
};

/* The writer fills everything up to `head` before `magic`. */
struct sample_ring_header {
    _Atomic uint32_t magic; /* written last: the rest is valid then */
    uint32_t version;
    int32_t pid; /* as the process sees itself */
    int32_t parent_pid;
    uint64_t data_bytes; /* a power of two, multiple of the page size */
    uint64_t seal;       /* the ring's number */
    uint64_t start_ns;   /* CLOCK_MONOTONIC */
    uint32_t frequency_hz;
    uint32_t clock;                /* enum sample_clock */
    _Atomic uint32_t trigger;      /* enum sample_trigger */
    _Atomic uint32_t python_minor; /* of 3.minor; 0: no Python, or not yet */
    char problem[128];             /* why something is not sampled; empty when all is well */
    char command[64];              /* base name of the program, cut if need be */

    _Atomic uint64_t evaluator_avma; /* of _PyEval_EvalFrameDefault; 0: not known */
    _Atomic uint64_t lost;           /* samples for which there was no room */
    _Atomic uint64_t unreadable;     /* samples whose Python frames could not be followed */
    _Atomic uint32_t has_ended;      /* the process is about to end or to become another program */
    uint32_t pid_namespace;          /* that `pid` and threads are of; 0: not known */
    uint64_t own_start_avma, own_end_avma; /* code that is the sampler's, not the program's */

    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;              /* the reader's, and all that follows */
    _Atomic uint32_t table_tids[SAMPLE_RING_TABLES]; /* whose tables are; 0: nobody's */
    _Atomic uint64_t ready_bytes; /* the file has pages for so many of the data */
    _Atomic uint32_t is_closed;   /* nobody reads any more */
};

_Static_assert(sizeof(struct sample_ring_header) <= SAMPLE_RING_HEADER_BYTES, "fits its page");

enum sample_record_type {
    SAMPLE_RECORD_SAMPLE = 1,
    SAMPLE_RECORD_CODE,    /* a Python function, before the first sample that has it */
    SAMPLE_RECORD_THREAD,  /* a thread, before its first sample and when its name has changed */
    SAMPLE_RECORD_MAPS,    /* the text of /proc/self/maps, at the start and at the end */
    SAMPLE_RECORD_PROGRAM, /* a process becomes another program, or does not after all */
};

/* Of every record; multiples of 8 bytes. */
struct sample_record {
    _Atomic uint64_t seal; /* see sample_ring_seal */
    uint32_t bytes;        /* with this header */
    uint16_t type;         /* enum sample_record_type */
    uint16_t flags;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint32_t tid;
    uint32_t extra; /* by type: see below */
};

enum {
    SAMPLE_STACK_WHOLE = 1,  /* the copy reaches the end of the thread's stack */
    SAMPLE_WAITING = 2,      /* the thread was not running (only with SAMPLE_CLOCK_WALL) */
    SAMPLE_CUT = 4,          /* not all Python frames are there */
    SAMPLE_TWO_STACKS = 8,   /* a handler of the program's on a signal stack: see below */
    SAMPLE_STACK_KNOWN = 16, /* the rest is as the reader knows it: formats/sample_landmarks.h */
    SAMPLE_RED_ZONE = 32,    /* the copy begins before the stack pointer: see below */
};

enum { SAMPLE_REGISTERS = 17 };

/* SAMPLE_RECORD_SAMPLE: this, then the chains of the kernel, the Python frames, and the copy of the
 * stack. `extra` is the number of bytes of the stack. A thread that was in the kernel for long has
 * several chains, all on top of the same stack: each is a sample by itself. */
struct sample_body {
    uint64_t weight_ns; /* the time outside the kernel that this stands for; 0: there was none */
    uint64_t
        registers[SAMPLE_REGISTERS]; /* by DWARF number (x86-64: 7 = rsp); the last is the pc */
    uint64_t frame_count;            /* of Python frames and borders */
    uint64_t kernel_weight_ns;       /* the time that all chains together stand for */
    uint64_t kernel_words;           /* of chains, each: time, number of addresses, addresses */
    uint32_t kept_frames;            /* Python frames and borders that are not here: see below */
    uint32_t deep_number;            /* of the thread's deep samples; 0: it is none */
    /* uint64_t kernel[kernel_words]; innermost address first
     * uint64_t frames[frame_count]; innermost first, see below
     * uint8_t stack[extra]; from the stack pointer on, padded to 8 bytes */
};

/* With SAMPLE_RED_ZONE the copy has so many bytes before the stack pointer, too: a function on
 * x86-64 may use them without moving it. OpenSSL's SHA-512 keeps there where its caller's frame is.
 */
enum { SAMPLE_RED_ZONE_BYTES = 128 };

/* With SAMPLE_TWO_STACKS the copy is that of the signal stack, that of the thread's stack from
 * where it was interrupted, and this. */
struct sample_two_stacks {
    uint64_t inner_bytes; /* of the signal stack's copy */
    uint64_t outer_avma;  /* where the other one begins */
};

/* A Python frame is (code number << 32 | offset of the instruction in the bytecode, in bytes); the
 * number is that of a SAMPLE_RECORD_CODE, less than 2^31. Behind the last of the frames that one
 * call of the C evaluator runs there is a border: the top bit, and the address of a variable of
 * that C function on the stack (0: not known). */
#define SAMPLE_FRAME_BORDER ((uint64_t)1 << 63)

/* Deep samples have so many of them. Those at the outer end that are the same as in the thread's
 * deep sample before, the last one that is in the ring, are left out and counted. That sample's
 * number is less by one. Once a second, and after a pause, all are there. */
enum { SAMPLE_DEEP_FRAMES = 128, SAMPLE_DEEP_SECONDS = 1 };

enum { SAMPLE_OFFSET_NONE = -1 }; /* as the low 32 bits: no instruction yet */

/* SAMPLE_RECORD_CODE: this, then name, file name and line table, each padded to 8 bytes. Names are
 * UTF-8, lone surrogates as three bytes. `extra` is the code number, from 1 on. A number is never
 * used again in a ring. */
struct sample_code {
    uint32_t first_line;
    uint32_t name_bytes;
    uint32_t file_bytes;
    uint32_t lines_bytes; /* of co_lnotab (3.9) or co_linetable; 0 when it was too long */
    uint32_t code_bytes;  /* of the bytecode; 0: not known */
    uint32_t unused;
};

/* Flags of SAMPLE_RECORD_THREAD. Without any it is a new thread: numbers can come again. */
enum {
    SAMPLE_THREAD_BORDER = 1,  /* at its very beginning or end, as often as it has a sample there */
    SAMPLE_THREAD_RENAMED = 2, /* the same thread, under another name from now on */
};

/* SAMPLE_RECORD_THREAD: the name, `extra` bytes. SAMPLE_RECORD_MAPS: the text, `extra` bytes.
 * SAMPLE_RECORD_PROGRAM: the program's name, `extra` bytes, none when it could not be started;
 * `tid` is the number of the process, which is this one, or a child that has no ring yet. */

static inline uint64_t sample_ring_seal(uint64_t ring_seal, uint64_t position)
{
    return (position + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ ring_seal;
}

/* --- the writer: allocates nothing, fit for signal handlers ---------------------------------- */

struct sample_ring {
    struct sample_ring_header *header; /* NULL: closed */
    uint8_t *data;                     /* mapped twice in a row */
    uint8_t *tables;                   /* SAMPLE_RING_TABLES of them */
    uint64_t data_bytes, seal;         /* the header's when it was mapped: others can change it */
    _Atomic uint64_t room_bytes;       /* of the data, so many have pages, and are mapped here */
};

/* Makes the file and maps it; the header is zeroed but for data_bytes and seal. 0 or negative
 * errno; then nothing is left behind. -EFBIG: the process may not have files of that size. */
int sample_ring_create(struct sample_ring *ring, const char *path, uint64_t data_bytes);

/* Unmaps; the file stays. */
void sample_ring_close(struct sample_ring *ring);

/* Room for a record of so many bytes (a multiple of 8), its header filled in but for time, tid and
 * extra. NULL when there is none, in the ring or on the disk. */
struct sample_record *sample_ring_take(struct sample_ring *ring, size_t bytes, uint16_t type,
                                       uint64_t *ret_position);

/* The record is complete. */
void sample_ring_give(struct sample_ring *ring, struct sample_record *record, uint64_t position);

/* --- the reader ------------------------------------------------------------------------------ */

/* Maps a file that a writer has made. 0; -EAGAIN when it is not ready yet; -EBADMSG when it is no
 * ring; or negative errno. */
int sample_ring_open(struct sample_ring *ring, const char *path);

/* The next record, wholly inside the ring and sealed; NULL when there is none (yet). Valid until
 * sample_ring_done_with. Lengths inside are not checked. */
const struct sample_record *sample_ring_peek(const struct sample_ring *ring);
void sample_ring_done_with(struct sample_ring *ring, const struct sample_record *record);

/* The same at a position of one's own: `tail` or where a record that was peeked at ends. */
const struct sample_record *sample_ring_peek_at(const struct sample_ring *ring, uint64_t position);

/* Makes the pages that the writer is going to need, judging by what it has written. */
void sample_ring_prepare(struct sample_ring *ring);

#endif
