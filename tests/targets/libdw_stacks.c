/* libdw asks for what it needs by callbacks: registers, memory. It is told of all files once and
 * asked for one stack after the other, which is the fastest way to use it. */
#include "libdw_stacks.h"

#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct libdw_stacks {
    Dwfl *dwfl;
    const struct unwind_sample *sample;
    struct libdw_frames *frames;
};

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
    (void)dwfl;
    if (*thread)
        return 0;
    *thread = context;
    return getpid();
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
    (void)dwfl;
    (void)tid;
    *thread = context;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr avma, Dwarf_Word *ret_word, void *context)
{
    (void)dwfl;
    struct libdw_stacks *libdw = context;
    const struct unwind_sample *sample = libdw->sample;
    enum { RED_ZONE_BYTES = 128 };
    libdw->frames->is_blind |=
        avma < sample->stack_avma && sample->stack_avma - avma <= RED_ZONE_BYTES;
    uint64_t offset = avma - sample->stack_avma;
    if (avma < sample->stack_avma || sample->stack_bytes < 8 || offset > sample->stack_bytes - 8)
        return false;
    memcpy(ret_word, sample->stack + offset, sizeof *ret_word);
    return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const struct unwind_cpu *cpu = &((struct libdw_stacks *)context)->sample->cpu;
    dwfl_thread_state_register_pc(thread, cpu->pc);
    Dwarf_Word registers[17];
    for (size_t i = 0; i < 16; i++)
        registers[i] = cpu->registers[i];
    registers[16] = cpu->pc;
    return dwfl_thread_state_registers(thread, 0, 17, registers);
}

static const Dwfl_Thread_Callbacks THREAD_CALLBACKS = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

static int find_no_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                              const char *file, const char *link, GElf_Word crc, char **ret_path)
{
    (void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc;
    (void)ret_path;
    return -1;
}

static const Dwfl_Callbacks CALLBACKS = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = find_no_debug_file,
    .section_address = dwfl_offline_section_address,
};

/* libdw wants files: what is in memory goes into one. */
static int file_of(const struct recorded_module *module)
{
    int fd = memfd_create("module", MFD_CLOEXEC);
    if (fd >= 0 &&
        write(fd, module->object->data, module->object->length) != (ssize_t)module->object->length)
        abort();
    return fd;
}

struct libdw_stacks *libdw_stacks_open(const struct recorded_stacks *stacks)
{
    struct libdw_stacks *libdw = calloc(1, sizeof *libdw);
    if (!libdw || !(libdw->dwfl = dwfl_begin(&CALLBACKS)))
        abort();
    dwfl_report_begin(libdw->dwfl);
    for (size_t i = 0; i < stacks->modules.count; i++) {
        const struct recorded_module *module = &stacks->modules.items[i];
        if (!module->object)
            continue;
        int fd = module->object->is_mapped ? -1 : file_of(module);
        if (!dwfl_report_elf(libdw->dwfl, module->path, module->path, fd, module->bias, true))
            fprintf(stderr, "libdw: %s: %s\n", module->path, dwfl_errmsg(-1));
    }
    dwfl_report_end(libdw->dwfl, NULL, NULL);
    if (!dwfl_attach_state(libdw->dwfl, NULL, getpid(), &THREAD_CALLBACKS, libdw)) {
        fprintf(stderr, "libdw: %s\n", dwfl_errmsg(-1));
        exit(2);
    }
    return libdw;
}

void libdw_stacks_close(struct libdw_stacks *libdw)
{
    dwfl_end(libdw->dwfl);
    free(libdw);
}

static uint64_t sp_of(Dwfl_Frame *frame)
{
    Dwarf_Word sp = 0;
#if _ELFUTILS_PREREQ(0, 188)
    if (dwfl_frame_reg(frame, 7, &sp) != 0)
        sp = 0;
#else
    (void)frame;
#endif
    return sp;
}

static int take_frame(Dwfl_Frame *frame, void *context)
{
    struct libdw_frames *frames = ((struct libdw_stacks *)context)->frames;
    Dwarf_Addr pc;
    bool is_activation;
    if (!dwfl_frame_pc(frame, &pc, &is_activation) || frames->count == frames->capacity)
        return DWARF_CB_ABORT;
    if (frames->sps)
        frames->sps[frames->count] = sp_of(frame);
    frames->pcs[frames->count++] = pc - (is_activation ? 0 : 1);
    return DWARF_CB_OK;
}

void libdw_stacks_unwind(struct libdw_stacks *libdw, const struct unwind_sample *sample,
                         struct libdw_frames *frames)
{
    libdw->sample = sample;
    libdw->frames = frames;
    frames->count = 0;
    frames->is_blind = false;
    dwfl_getthread_frames(libdw->dwfl, getpid(), take_frame, libdw);
}
