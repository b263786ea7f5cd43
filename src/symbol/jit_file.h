/* Files in which programs that make code at run time tell its names: where they are, and what they
 * say. Perf maps give names without times; jitdumps say from when on which code stood where. */
#ifndef PITVIPER_SYMBOL_JIT_FILE_H
#define PITVIPER_SYMBOL_JIT_FILE_H

#include "base/file.h"
#include "formats/jitdump_index.h"
#include "formats/perfmap_index.h"
#include "symbol/symbol.h"
#include "unwind/unwind_table.h"

#include <stdbool.h>
#include <sys/types.h>

/* Reads PATH as process `pid` sees it (/proc/PID/root) while it runs, else as this one does.
 * Anybody may put anything into /tmp, so only regular files are read. 0 or a negative errno. */
int jit_file_read(const char *path, pid_t pid, struct file *ret_file);

/* --- perf maps ---------------------------------------------------------------------------------*/

struct jit_map {
    struct file file;
    struct perfmap_index index; /* borrows the file */
};

/* Reads DIR/perf-PID.map: of the process's own root and PID namespace while it still runs, else of
 * this one's. `dir` NULL is /tmp. 0; -ENOENT when there is none; -ENOMEM; other negative errno. On
 * failure there is nothing to release. */
int jit_map_open(struct jit_map *map, const char *dir, pid_t pid);
void jit_map_done(struct jit_map *map);

/* The symbol at an avma; false when there is none. */
bool jit_map_find(const struct jit_map *map, uint64_t avma, struct symbol *ret_symbol);

/* --- jitdumps ----------------------------------------------------------------------------------*/

/* How the times of a recording become those of the dump. */
enum jit_clock {
    JIT_CLOCK_SAME,    /* perf record -k mono: they are the same */
    JIT_CLOCK_MATCHED, /* perf's own clock; the moment when the dump was opened is known in both */
    JIT_CLOCK_UNKNOWN, /* can't be told: what was loaded last counts */
};

struct jit_dump {
    struct file file;
    struct jitdump_index index; /* borrows the file */
    enum jit_clock clock;
    uint64_t clock_offset; /* recording's time - dump's time, modulo 2^64; JIT_CLOCK_MATCHED only */
    uint32_t module;       /* for the caller's use: what its code belongs to */
    struct unwind_table **tables; /* per code, made when asked for; owned */
};

/* Whether a mapped file is the marker of a jitdump: its base name is jit-PID.dump. */
bool jit_dump_is_marker(const char *path);

/* Reads a dump, of the root of process `pid` while it still runs, else of this one. 0; -ENOENT;
 * -ENOMEM; what jitdump_open returns for a file that is none. On failure there is nothing to
 * release. The clock is JIT_CLOCK_UNKNOWN: see jit_dump_set_clock. */
int jit_dump_open(struct jit_dump *dump, const char *path, pid_t pid);
void jit_dump_done(struct jit_dump *dump);

/* `is_monotonic`: the recording's times are of CLOCK_MONOTONIC, as the dump's. Otherwise
 * `marker_ns` is when the marker was mapped, in the recording's clock; 0: not known. */
void jit_dump_set_clock(struct jit_dump *dump, bool is_monotonic, uint64_t marker_ns);

/* What stood at an avma at a time of the recording, or NULL. Valid as long as the dump. */
const struct jitdump_placement *jit_dump_find(const struct jit_dump *dump, uint64_t avma,
                                              uint64_t time_ns);

/* What the dump says of an address in the code: name, start, lines. The start is where the code was
 * loaded, wherever it was moved since: it is the same function. */
struct symbol jit_dump_symbol(const struct jit_dump *dump,
                              const struct jitdump_placement *placement, uint64_t avma);

/* Its unwinding information; NULL when it has none. The code's first byte is svma 0. The machine is
 * the recording's, since CPython 3.13.0 leaves it out of its dumps. */
struct unwind_table *jit_dump_unwind_table(struct jit_dump *dump,
                                           const struct jitdump_placement *placement,
                                           uint16_t elf_machine);

#endif
