#include "recorded_stacks.h"

#include "formats/perfdata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "recorded_stacks: %s\n", what);
    exit(2);
}

/* The kernel that recorded is the one that runs: its vdso is in this process as well. */
static int open_vdso(struct elf_object **ret_object)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
    if (!header)
        return -1;
    size_t length = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    return elf_object_open_memory("[vdso]", header, length, ret_object);
}

static void open_module(struct recorded_module *module)
{
    int error = strcmp(module->path, "[vdso]") == 0
                    ? open_vdso(&module->object)
                    : elf_object_open(module->path, &module->object);
    if (error < 0) {
        module->object = NULL;
        return;
    }
    require(elf_object_bias(module->object, &module->mapping, &module->bias) &&
                unwind_table_init(&module->table, module->object, NULL) == 0,
            module->path);
}

static void take_mapping(struct recorded_stacks *stacks, const struct perfdata_mmap *mapping)
{
    struct recorded_module module = {
        .path = strdup(mapping->path),
        .mapping = {mapping->start_avma, mapping->length, mapping->fileoff}};
    require(module.path, "memory is short");
    if (mapping->is_data) {
        free((char *)module.path);
        return;
    }
    open_module(&module);
    require(vector_push(&stacks->modules, module) == 0, "memory is short");
}

static void take_sample(struct recorded_stacks *stacks, const struct perfdata_sample *from)
{
    struct unwind_sample sample;
    if (from->user_regs_abi != PERF_SAMPLE_REGS_ABI_64 || !from->user_stack_length)
        return;
    require(unwind_sample_from_perf(EM_X86_64, from->user_regs_mask, from->user_regs, &sample),
            "a sample without the registers that are needed");
    sample.stack = from->user_stack;
    sample.stack_bytes = from->user_stack_length;
    require(vector_push(&stacks->samples, sample) == 0, "memory is short");
}

/* The process with the most samples. */
static int find_process(struct perfdata_reader *reader)
{
    enum { MOST_PIDS = 4194304 };
    unsigned *counts = calloc(MOST_PIDS, sizeof *counts);
    require(counts, "memory is short");
    struct perfdata_record record;
    int best = 0;
    while (perfdata_next(reader, &record) == 1) {
        if (record.type != PERF_RECORD_SAMPLE || record.pid <= 0 || record.pid >= MOST_PIDS)
            continue;
        if (++counts[record.pid] > counts[best])
            best = record.pid;
    }
    free(counts);
    perfdata_rewind(reader);
    return best;
}

void recorded_stacks_read(struct recorded_stacks *stacks, const char *path)
{
    *stacks = (struct recorded_stacks){0};
    const char *problem = "";
    require(perfdata_open(path, &problem, &stacks->reader) == 0, problem);
    stacks->pid = find_process(stacks->reader);
    struct perfdata_record record;
    while (perfdata_next(stacks->reader, &record) == 1) {
        if (record.type == PERF_RECORD_SAMPLE && record.pid == stacks->pid)
            take_sample(stacks, &record.sample);
        if ((record.type == PERF_RECORD_MMAP || record.type == PERF_RECORD_MMAP2) &&
            record.mmap.pid == stacks->pid)
            take_mapping(stacks, &record.mmap);
        require(record.type != PERF_RECORD_SAMPLE || record.lasting, "compressed recording");
    }
}

void recorded_stacks_done(struct recorded_stacks *stacks)
{
    for (size_t i = 0; i < stacks->modules.count; i++) {
        struct recorded_module *module = &stacks->modules.items[i];
        unwind_table_done(&module->table);
        elf_object_close(module->object);
        free((char *)module->path);
    }
    vector_done(&stacks->modules);
    vector_done(&stacks->samples);
    perfdata_close(stacks->reader);
}

bool recorded_stacks_find(void *context, uint64_t avma, struct unwind_code *ret_code)
{
    const struct recorded_stacks *stacks = context;
    for (size_t i = stacks->modules.count; i-- > 0;) {
        struct recorded_module *module = &stacks->modules.items[i];
        if (avma < module->mapping.start_avma ||
            avma - module->mapping.start_avma >= module->mapping.length)
            continue;
        ret_code->table = module->object ? &module->table : NULL;
        ret_code->bias = module->bias;
        return true;
    }
    return false;
}
