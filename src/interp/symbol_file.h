/* The two files that tell profilers what a trampoline is called: /tmp/perf-PID.map and
 * /tmp/jit-PID.dump.
 *
 * Nothing here locks: callers hold the lock of interp/registration.c. Nothing here prints, and
 * errno is the caller's to save. */
#ifndef PITVIPER_INTERP_SYMBOL_FILE_H
#define PITVIPER_INTERP_SYMBOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum symbol_kind { SYMBOL_MAP, SYMBOL_DUMP, SYMBOL_KINDS };

enum {
    /* Of a name or a file name. perf keeps the length of a name in 16 bits. */
    SYMBOL_MOST_NAME_BYTES = 60000,
    SYMBOL_FILE_PATH_BYTES = 48,
};

struct symbol {
    uint64_t avma;    /* of its trampoline */
    const char *name; /* at most SYMBOL_MOST_NAME_BYTES; no NUL, no newline */
    size_t name_length;
    const char *file; /* NUL-terminated, of the same size at most */
    uint32_t line;
};

struct symbol_file {
    bool open;
    enum symbol_kind kind;
    int fd;
    pid_t pid; /* of the process that the file is for */
    dev_t device;
    ino_t inode;
    int flags;           /* of the descriptor: a combination that hardly anybody else uses */
    uint64_t bytes;      /* written so far */
    uint64_t most_bytes; /* the limit on file sizes; beyond it the kernel sends a signal */
    void *marker;        /* a page of the dump, mapped for perf to see; or NULL */
    bool torn;           /* ends in half a record that could not be taken back */
    uint64_t written;    /* symbols */
    uint64_t lost;       /* symbols that could not be written */
    int last_error;      /* errno of the last loss */
    char path[SYMBOL_FILE_PATH_BYTES];
};

/* Where the file of a process is. */
void symbol_file_path(enum symbol_kind kind, pid_t pid, char ret_path[SYMBOL_FILE_PATH_BYTES]);

/* Makes a new file for this process. An old one of the same name is removed, never written to,
 * unless `keep` says that it is this process's own: CPython's trampolines were on before ours.
 * 0, or negative errno: then nothing is left behind. */
int symbol_file_open(struct symbol_file *file, enum symbol_kind kind, bool keep);

/* Forgets the file and leaves it on disk. */
void symbol_file_close(struct symbol_file *file);

/* Whether the path still leads to the file: nobody removed or replaced it. */
bool symbol_file_is_in_place(const struct symbol_file *file);

/* Appends the symbol, in one write. What cannot be written is counted in `lost`. */
void symbol_file_add(struct symbol_file *file, const struct symbol *symbol);

#endif
