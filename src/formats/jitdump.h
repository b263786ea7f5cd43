/* Jitdump files (jit-PID.dump): code made at run time, with its bytes, names, lines and unwinding
 * data, as a log with time stamps. docs/formats/jitdump.md describes the format.
 *
 * Reading is from memory, without copies: names, code and data in the records borrow the data that
 * was given to jitdump_open. */
#ifndef PITVIPER_FORMATS_JITDUMP_H
#define PITVIPER_FORMATS_JITDUMP_H

#include "base/cursor.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum jitdump_type {
    JITDUMP_LOAD = 0,           /* code appears */
    JITDUMP_MOVE = 1,           /* code moves to another address */
    JITDUMP_DEBUG_INFO = 2,     /* lines of the code that the next LOAD at its address brings */
    JITDUMP_CLOSE = 3,          /* the writer ended in an orderly way */
    JITDUMP_UNWINDING_INFO = 4, /* of the code that the next LOAD brings */
    JITDUMP_TYPES
};

/* Header flag: time stamps are the processor's own counter instead of CLOCK_MONOTONIC. */
#define JITDUMP_ARCH_TIMESTAMP 1u

struct jitdump_header {
    uint32_t version;     /* always 1 so far */
    uint32_t elf_machine; /* EM_X86_64, EM_AARCH64, ... */
    uint32_t pid;         /* as the writer saw itself: inside its PID namespace */
    uint64_t timestamp;   /* ns */
    uint64_t flags;
};

struct jitdump_load {
    uint32_t pid;
    uint32_t tid;
    uint64_t vma; /* the same as code_avma in every file seen */
    uint64_t code_avma;
    uint64_t code_size; /* in bytes */
    uint64_t code_index;
    const char *name; /* NUL-terminated */
    size_t name_length;
    const uint8_t *code; /* code_size bytes, or NULL: some writers leave the code out */
};

struct jitdump_move {
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t old_avma;
    uint64_t new_avma;
    uint64_t code_size;
    uint64_t code_index; /* of the LOAD that moves */
};

struct jitdump_debug_info {
    uint64_t code_avma;
    uint64_t count;        /* of lines; every one of them is known to be in `lines` */
    struct cursor lines;   /* for jitdump_next_line */
    const char *last_file; /* used by jitdump_next_line */
};

struct jitdump_line {
    uint64_t avma; /* code from here on belongs to the line */
    uint32_t line;
    uint32_t discriminator;
    const char *file; /* NUL-terminated */
};

struct jitdump_unwinding_info {
    const uint8_t *data;        /* .eh_frame, then .eh_frame_hdr */
    uint64_t size;              /* of both, in bytes */
    uint64_t eh_frame_hdr_size; /* how much of the end is .eh_frame_hdr; <= size */
    uint64_t mapped_size;       /* of memory that holds the data behind the code; may be 0 */
};

struct jitdump_record {
    uint32_t type; /* enum jitdump_type, or a number that this program does not know */
    size_t offset; /* of the record in the file */
    size_t size;   /* with its prefix, in bytes */
    uint64_t timestamp;
    union {
        struct jitdump_load load;
        struct jitdump_move move;
        struct jitdump_debug_info debug_info;
        struct jitdump_unwinding_info unwinding_info;
    };
};

struct jitdump_reader {
    struct cursor cursor; /* at the next record; `swapped` is the file's byte order; no error set */
    struct jitdump_header header;
    size_t search_bytes_left; /* how much may still be looked at to find records behind damage */

    /* Valid after a negative result of jitdump_next. */
    const char *problem;   /* static */
    size_t problem_offset; /* of the record that is wrong */
    size_t skipped_bytes;  /* what was passed over because of it */
};

/* 0; -EBADMSG when it is no jitdump at all or its header is damaged, -ENODATA when the header is
 * cut short behind its magic number, -ENOTSUP for an unknown version. `problem` says which, and is
 * valid then too. */
int jitdump_open(struct jitdump_reader *reader, const char *source, const void *data,
                 size_t length);

/* Whether the data starts with the magic number of a jitdump, of either byte order. */
bool jitdump_is(const void *data, size_t length);

/* 1 and a record; 0 at the end; -ENODATA when the last record is cut off; -EBADMSG when something
 * was skipped that can't be a record. After -EBADMSG call again to go on behind the damage. A
 * record of unknown type is returned with only the common fields set. */
int jitdump_next(struct jitdump_reader *reader, struct jitdump_record *ret_record);

/* 1 and the next line of a DEBUG_INFO record; 0 at the end. */
int jitdump_next_line(struct jitdump_debug_info *info, struct jitdump_line *ret_line);

/* Encoding: each call appends one whole record (or the header) to the writer, in this machine's
 * byte order. `timestamp` is in ns of CLOCK_MONOTONIC. Check writer_fits() at the end. */
void jitdump_encode_header(struct writer *writer, const struct jitdump_header *header);
void jitdump_encode_load(struct writer *writer, uint64_t timestamp,
                         const struct jitdump_load *load);
void jitdump_encode_move(struct writer *writer, uint64_t timestamp,
                         const struct jitdump_move *move);
void jitdump_encode_debug_info(struct writer *writer, uint64_t timestamp, uint64_t code_avma,
                               const struct jitdump_line *lines, size_t count);
void jitdump_encode_unwinding_info(struct writer *writer, uint64_t timestamp,
                                   const struct jitdump_unwinding_info *info);
void jitdump_encode_close(struct writer *writer, uint64_t timestamp);

#endif
