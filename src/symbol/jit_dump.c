/* Jitdumps without an inject step: `perf inject --jit` writes a file for each function and a
 * mapping for each file; here the dump itself answers which code stood at an address when a sample
 * was taken.
 *
 * For that both have to mean the same by "when". The dump counts CLOCK_MONOTONIC; so does the
 * recording with `perf record -k 1`. Without that option it counts the scheduler's clock, which
 * started at another moment and runs as fast to within some parts in a million. But there is one
 * moment that both know: the writer opens the dump, maps its first page as a marker for perf (the
 * recording has that time), and writes the header with the time (the dump has that one). Some
 * microseconds lie between the two, and the clocks drift apart slowly; code that was just loaded
 * may seem to be too young for a sample then. So a second look takes whatever came first there. */
#include "symbol/jit_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool jit_dump_is_marker(const char *path)
{
    const char *slash = strrchr(path, '/');
    int pid, end = 0;
    return slash && sscanf(slash, "/jit-%9d.dump%n", &pid, &end) == 1 && end && !slash[end];
}

int jit_dump_open(struct jit_dump *dump, const char *path, pid_t pid)
{
    *dump = (struct jit_dump){.clock = JIT_CLOCK_UNKNOWN};
    int error = jit_file_read(path, pid, &dump->file);
    if (error < 0)
        return error;
    const char *problem;
    error = jitdump_index_init(&dump->index, path, dump->file.data, dump->file.length, &problem);
    if (error < 0) {
        file_done(&dump->file);
        return error;
    }
    dump->tables = calloc(dump->index.codes.count + 1, sizeof(struct unwind_table *));
    if (!dump->tables) {
        jit_dump_done(dump);
        return -ENOMEM;
    }
    return 0;
}

void jit_dump_done(struct jit_dump *dump)
{
    for (size_t i = 0; dump->tables && i < dump->index.codes.count; i++) {
        if (dump->tables[i])
            unwind_table_done(dump->tables[i]);
        free(dump->tables[i]);
    }
    free(dump->tables);
    jitdump_index_done(&dump->index);
    file_done(&dump->file);
}

void jit_dump_set_clock(struct jit_dump *dump, bool is_monotonic, uint64_t marker_ns)
{
    dump->clock = JIT_CLOCK_UNKNOWN;
    if (dump->index.header.flags & JITDUMP_ARCH_TIMESTAMP)
        return;
    if (is_monotonic) {
        dump->clock = JIT_CLOCK_SAME;
    } else if (marker_ns && dump->index.header.timestamp) {
        dump->clock = JIT_CLOCK_MATCHED;
        dump->clock_offset = marker_ns - dump->index.header.timestamp;
    }
}

const struct jitdump_placement *jit_dump_find(const struct jit_dump *dump, uint64_t avma,
                                              uint64_t time_ns)
{
    if (dump->clock == JIT_CLOCK_UNKNOWN || !time_ns)
        return jitdump_index_find(&dump->index, avma, RANGEMAP_LATEST);
    if (dump->clock == JIT_CLOCK_MATCHED)
        time_ns -= dump->clock_offset;
    const struct jitdump_placement *found = jitdump_index_find(&dump->index, avma, time_ns);
    if (!found && dump->clock == JIT_CLOCK_MATCHED)
        found = jitdump_index_find(&dump->index, avma, RANGEMAP_LATEST);
    return found;
}

/* The line of an address, as if the code were where it was loaded, and the file of the code's first
 * line. */
static void find_lines(const struct jitdump_code *code, uint64_t avma, struct symbol *symbol)
{
    struct jitdump_debug_info info = code->debug;
    struct jitdump_line line;
    while (jitdump_next_line(&info, &line) == 1) {
        if (!symbol->file) {
            symbol->file = line.file;
            symbol->first_line = line.line;
        }
        if (line.avma > avma)
            break;
        symbol->line = line.line;
    }
}

struct symbol jit_dump_symbol(const struct jit_dump *dump,
                              const struct jitdump_placement *placement, uint64_t avma)
{
    const struct jitdump_code *code = jitdump_index_code(&dump->index, placement);
    struct symbol symbol = {.name = code->load.name,
                            .name_length = code->load.name_length,
                            .start = code->load.code_avma,
                            .size = code->load.code_size};
    if (code->debug.count)
        find_lines(code, avma - placement->avma + code->load.code_avma, &symbol);
    return symbol;
}

struct unwind_table *jit_dump_unwind_table(struct jit_dump *dump,
                                           const struct jitdump_placement *placement,
                                           uint16_t elf_machine)
{
    const struct jitdump_code *code = jitdump_index_code(&dump->index, placement);
    size_t i = placement->code;
    if (dump->tables[i] || !code->unwinding.size)
        return dump->tables[i];
    struct unwind_jit jit = {.data = code->unwinding.data,
                             .size = code->unwinding.size,
                             .eh_frame_hdr_size = code->unwinding.eh_frame_hdr_size,
                             .code_size = code->load.code_size};
    struct unwind_table *table = malloc(sizeof *table);
    if (!table)
        return NULL;
    if (unwind_table_init_jit(table, elf_machine, &jit) < 0) {
        free(table);
        return NULL;
    }
    return dump->tables[i] = table;
}
