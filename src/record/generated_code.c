/* Code is read in windows of a page, with some bytes around it: so that an instruction across the
 * border is whole, and the call before a return address is there.
 *
 * Trampolines are recognised by their bytes, all of them, wherever in them a thread is:
 *
 *     3.12               sub $8, %rsp                   call *%rcx   add $8, %rsp   ret
 *     3.13 and later     push %rbp   mov %rsp, %rbp     call *%rcx   pop %rbp       ret
 *
 * Ours is the second one. There may be an endbr64 in front. */
#include "record/generated_code.h"

#include "record/process.h"

#include <elf.h>
#include <string.h>
#include <sys/uio.h>

enum { PAGE_BYTES = 4096, AROUND_BYTES = 16, INSTRUCTION_MOST_BYTES = 15, ENDBR_BYTES = 4 };

static const struct trampoline {
    uint8_t bytes[12], length;
} TRAMPOLINES[] = {
    {{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 11},
    {{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}, 8},
};

/* How many bytes there are. None of a process that another program has become, or that is gone. */
static size_t read_memory(const struct process *process, uint64_t avma, void *bytes, size_t count)
{
    struct iovec here = {.iov_base = bytes, .iov_len = count};
    struct iovec there = {.iov_base = (void *)(uintptr_t)avma, .iov_len = count};
    ssize_t got =
        process->has_successor ? -1 : process_vm_readv(process->pid, &here, 1, &there, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Reads what is around an address. False when there is nothing. */
static bool read_window(struct generated_code *code, const struct process_mapping *mapping,
                        uint64_t avma)
{
    uint64_t page = avma & ~(uint64_t)(PAGE_BYTES - 1), start = page - AROUND_BYTES;
    if (page <= mapping->start_avma)
        start = mapping->start_avma > page ? mapping->start_avma : page;
    uint64_t left = mapping->end_avma - start;
    size_t bytes = left < sizeof code->window ? (size_t)left : sizeof code->window;
    code->window_avma = start;
    code->window_bytes = read_memory(code->process, start, code->window, bytes);
    return avma - start < code->window_bytes;
}

static bool has_in_window(const struct generated_code *code, const struct process_mapping *mapping,
                          uint64_t avma)
{
    uint64_t offset = avma - code->window_avma, end_avma = code->window_avma + code->window_bytes;
    return offset < code->window_bytes &&
           (end_avma - avma >= INSTRUCTION_MOST_BYTES || end_avma == mapping->end_avma);
}

/* struct code_source, this and the next two. What is in files is read from there. */
static size_t read_code(void *data, uint64_t avma, const uint8_t **ret_code, size_t *ret_before)
{
    struct generated_code *code = data;
    const struct process_mapping *mapping = process_maps_find(&code->process->maps, avma);
    if (!mapping)
        return 0;
    if (mapping->has_bias) {
        const struct code_source *file = &native_code_rules(mapping->file->native)->source;
        return file->read(file->context, avma - mapping->bias, ret_code, ret_before);
    }
    if (!has_in_window(code, mapping, avma) && !read_window(code, mapping, avma))
        return 0;
    *ret_before = (size_t)(avma - code->window_avma);
    *ret_code = code->window + *ret_before;
    return code->window_bytes - *ret_before;
}

static const struct unwind_rule *describe(void *data, uint64_t avma)
{
    const struct generated_code *code = data;
    const struct process_mapping *mapping = process_maps_find(&code->process->maps, avma);
    if (!mapping || !mapping->has_bias)
        return NULL;
    const struct code_source *file = &native_code_rules(mapping->file->native)->source;
    return file->describe(file->context, avma - mapping->bias);
}

static bool read_word(void *data, uint64_t avma, uint64_t *ret_word)
{
    const struct generated_code *code = data;
    return read_memory(code->process, avma, ret_word, sizeof *ret_word) == sizeof *ret_word;
}

void generated_code_init(struct generated_code *code, const struct process *process)
{
    code->process = process;
    code->window_bytes = 0;
    code_rules_init(
        &code->rules, EM_X86_64,
        (struct code_source){
            .read = read_code, .describe = describe, .read_word = read_word, .context = code});
}

void generated_code_done(struct generated_code *code)
{
    code_rules_done(&code->rules);
}

void generated_code_refresh(struct generated_code *code)
{
    code->window_bytes = 0;
}

bool generated_code_is_trampoline(struct generated_code *code, uint64_t avma)
{
    static const uint8_t ENDBR[ENDBR_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
    const uint8_t *at;
    size_t before = 0, bytes = read_code(code, avma, &at, &before);
    if (bytes > ENDBR_BYTES && memcmp(at, ENDBR, ENDBR_BYTES) == 0) {
        at += ENDBR_BYTES;
        before += ENDBR_BYTES;
        bytes -= ENDBR_BYTES;
    }
    for (size_t i = 0; i < sizeof TRAMPOLINES / sizeof *TRAMPOLINES; i++) {
        const struct trampoline *wanted = &TRAMPOLINES[i];
        for (size_t back = 0; back < wanted->length && back <= before; back++)
            if (bytes + back >= wanted->length &&
                memcmp(at - back, wanted->bytes, wanted->length) == 0)
                return true;
    }
    return false;
}
