/* The kernel itself reaches from the symbol _text to the first module, or to the end of the room
 * that it has. Each module is a part of its own:
 *
 *     /proc/kallsyms    ffffffff81000000 T _text
 *     /proc/modules     nf_nat 57344 2 nft_nat,xt_nat, Live 0xffffffffc0403000 (E)
 *
 * (perf lets it end at _etext, but that is far behind in the list, which takes the kernel 50 ms to
 * write.) Users who may not see addresses are shown zeros. */
#include "record/kernel_code.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "elf/elf_file.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, NAME_BYTES = 56 };

/* On x86-64 the last that is mapped before modules can be. */
static const uint64_t IMAGE_END_AVMA = 0xffffffffc0000000;

_Static_assert(NAME_BYTES + 3 <= sizeof((struct kernel_module *)0)->name, "name in brackets");

bool kernel_code_is_allowed(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .size = sizeof attr,
                                   .sample_period = 1000000000,
                                   .disabled = 1,
                                   .exclude_hv = 1};
    CLEANUP(cleanup_close)
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd >= 0;
}

/* "NAME BYTES USERS DEPENDENCIES STATE 0xADDRESS", and whatever follows. */
static bool read_module(const char *line, struct kernel_module *ret_module)
{
    char name[NAME_BYTES + 1];
    unsigned long long bytes, avma;
    if (sscanf(line, "%56s %llu %*s %*s %*s 0x%llx", name, &bytes, &avma) != 3 || !bytes || !avma ||
        avma + bytes < avma)
        return false;
    *ret_module = (struct kernel_module){.start_avma = avma, .end_avma = avma + bytes};
    snprintf(ret_module->name, sizeof ret_module->name, "[%s]", name);
    return true;
}

int kernel_code_next_module(const char **at, const char *end, struct kernel_module *ret_module)
{
    while (*at < end) {
        const char *newline = memchr(*at, '\n', (size_t)(end - *at));
        const char *line_end = newline ? newline : end;
        size_t length = (size_t)(line_end - *at);
        char line[LINE_BYTES];
        bool fits = length < sizeof line; /* many may depend on it, but not so many */
        if (fits)
            memcpy(line, *at, length);
        line[fits ? length : 0] = '\0';
        *at = newline ? newline + 1 : end;
        if (read_module(line, ret_module))
            return 1;
    }
    return 0;
}

static int read_modules(struct kernel_code *code)
{
    CLEANUP(file_done) struct file file = {0};
    struct kernel_module module;
    if (file_read("/proc/modules", &file) < 0)
        return 0; /* a kernel without any */
    const char *at = (const char *)file.data, *end = at + file.length;
    while (kernel_code_next_module(&at, end, &module))
        if (vector_push(&code->modules, module) < 0)
            return -ENOMEM;
    return 0;
}

static void read_build_id(struct kernel_code *code)
{
    CLEANUP(file_done) struct file notes = {0};
    size_t length;
    const uint8_t *id = NULL;
    if (file_read("/sys/kernel/notes", &notes) == 0)
        id = elf_build_id_in_notes(notes.data, notes.length, &length);
    if (!id || length > sizeof code->build_id)
        return;
    memcpy(code->build_id, id, length);
    code->build_id_size = (uint8_t)length;
}

/* Where _text is, which is one of the first; 0: not to be seen. */
static uint64_t find_text(void)
{
    CLEANUP(cleanup_fclose) FILE *file = fopen("/proc/kallsyms", "re");
    char line[LINE_BYTES];
    while (file && fgets(line, sizeof line, file)) {
        char *end;
        uint64_t avma = strtoull(line, &end, 16);
        if (strcmp(end, " T _text\n") == 0)
            return avma;
    }
    return 0;
}

int kernel_code_init(struct kernel_code *code)
{
    *code = (struct kernel_code){0};
    read_build_id(code);
    uint64_t start = find_text();
    if (!start || start >= IMAGE_END_AVMA)
        return 0;
    if (read_modules(code) < 0) {
        kernel_code_done(code);
        return -ENOMEM;
    }
    code->start_avma = start;
    code->end_avma = IMAGE_END_AVMA;
    for (size_t i = 0; i < code->modules.count; i++) {
        uint64_t module = code->modules.items[i].start_avma;
        if (module > start && module < code->end_avma)
            code->end_avma = module;
    }
    return 0;
}

void kernel_code_done(struct kernel_code *code)
{
    vector_done(&code->modules);
    *code = (struct kernel_code){0};
}
