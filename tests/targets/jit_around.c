/* jit_around LEAF SECONDS
 *
 * Makes two functions at run time, one in the page before a shared object and one behind it:
 *
 *     | ... made_below | LEAF, two pages | made_above ... |
 *
 * Programs that map memory where there is room come to such a place by chance. The functions call
 * into LEAF in turn, after a while in which only native() is called: profilers that get to know
 * LEAF in the midst of it must not lose the others. There is no unwinding data: they keep the frame
 * pointer. */
#include "base/writer.h"
#include "formats/jitdump.h"

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 1, PAGE = 0x1000, ROUNDS = 3000000, CALLS_BEFORE_LEAF = 20 };

typedef void function(unsigned long);

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static __attribute__((noinline)) void native(unsigned long rounds)
{
    for (; rounds; rounds--)
        __asm__ volatile("");
}

/* The entry point of LEAF, which is mapped there. Loading it as libraries are loaded would map it
 * twice, which perf 6.1 does not get along with. */
static function *entry_of(uint8_t *leaf)
{
    Elf64_Ehdr header;
    memcpy(&header, leaf, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || !header.e_entry || header.e_entry >= PAGE)
        errx(FAILED, "there is no function in the first page of LEAF");
    return (function *)(leaf + header.e_entry);
}

/* push %rbp; mov %rsp, %rbp; movabs $callee, %rax; call *%rax; pop %rbp; ret */
static void make_function(struct writer *dump, uint8_t *place, function *callee, const char *name)
{
    uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0,    0,    0,
                      0,    0,    0,    0,    0,    0xff, 0xd0, 0x5d, 0xc3};
    memcpy(code + 6, &callee, sizeof callee);
    memcpy(place, code, sizeof code);
    jitdump_encode_load(dump, clock_ns(CLOCK_MONOTONIC),
                        &(struct jitdump_load){.pid = (uint32_t)getpid(),
                                               .tid = (uint32_t)getpid(),
                                               .vma = (uintptr_t)place,
                                               .code_avma = (uintptr_t)place,
                                               .code_size = sizeof code,
                                               .code_index = (uintptr_t)place,
                                               .name = name,
                                               .name_length = strlen(name),
                                               .code = place});
}

static void write_dump(const struct writer *content)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/jit-%d.dump", getpid());
    unlink(path); /* of an earlier process with this number */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || !writer_fits(content) ||
        write(fd, content->data, content->length) != (ssize_t)content->length ||
        mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        err(FAILED, "%s", path);
}

static __attribute__((noinline)) void spin(function *made)
{
    made(ROUNDS);
    __asm__ volatile(""); /* no tail call */
}

int main(int argc, char **argv)
{
#ifndef __x86_64__
    errx(FAILED, "makes code for x86-64 only");
#endif
    if (argc != 3)
        errx(FAILED, "usage: jit_around LEAF SECONDS");
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    uint8_t *pages =
        mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || pages == MAP_FAILED ||
        mmap(pages + PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
            MAP_FAILED)
        err(FAILED, "%s", argv[1]);
    function *in_leaf = entry_of(pages + PAGE);
    uint8_t *below = pages + PAGE / 2, *above = pages + 3 * PAGE + PAGE / 2;

    uint8_t buffer[1024];
    struct writer dump;
    writer_init(&dump, buffer, sizeof buffer);
    jitdump_encode_header(&dump, &(struct jitdump_header){.version = 1,
                                                          .elf_machine = EM_X86_64,
                                                          .pid = (uint32_t)getpid(),
                                                          .timestamp = clock_ns(CLOCK_MONOTONIC)});
    make_function(&dump, below, native, "made_below");
    make_function(&dump, above, in_leaf, "made_above");
    if (mprotect(pages, PAGE, PROT_READ | PROT_EXEC) < 0 ||
        mprotect(pages + 3 * PAGE, PAGE, PROT_READ | PROT_EXEC) < 0)
        err(FAILED, "mprotect");
    write_dump(&dump);

    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)(atof(argv[2]) * 1e9);
    for (int calls = 0; clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end; calls++) {
        spin((function *)below);
        if (calls > CALLS_BEFORE_LEAF)
            spin((function *)above);
    }
    return 0;
}
