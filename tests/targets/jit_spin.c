/* jit_spin map|jitdump|reuse SECONDS
 *
 * Makes a function at run time, tells profilers its name with our encoders, and spends SECONDS of
 * CPU time in it. Profilers that show the name accept what we encode.
 *
 *   map      /tmp/perf-PID.map with one line
 *   jitdump  /tmp/jit-PID.dump: header, UNWINDING_INFO, DEBUG_INFO, LOAD, at the end CLOSE. A page
 *            of it is mapped executable, which is how perf and samply get to know of the file
 *   reuse    the same, but after half of the time another function stands at the same address:
 *            it is called made_later
 *
 * Two things are less free than they seem. Newer perfs (libdw) unwind through such code only when
 * the dump lies in /tmp. And samply takes nothing from a dump that has its CLOSE when samply first
 * looks at it: CLOSE is written when the code has done its work.
 *
 * The files stay: profilers read them when the program has ended. */
#include "base/writer.h"
#include "formats/jitdump.h"
#include "formats/perfmap.h"

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FAILED = 1 };
enum { ROUNDS_PER_CALL = 10 * 1000 * 1000 };

static const char NAME[] = "made_at_run_time";

/* void made_at_run_time(uint64_t rounds): counts down to zero. */
static const uint8_t CODE[] = {
    0x55,             /* push %rbp        */
    0x48, 0x89, 0xe5, /* mov %rsp, %rbp   */
    0x48, 0xff, 0xcf, /* 1: dec %rdi      */
    0x75, 0xfb,       /* jnz 1b           */
    0x5d,             /* pop %rbp         */
    0xc3,             /* ret              */
};
enum { AFTER_PUSH = 1, AFTER_MOV = 4, AFTER_POP = 10 };

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const uint8_t *make_code(size_t page_bytes)
{
    uint8_t *page =
        mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        err(FAILED, "mmap");
    memcpy(page, CODE, sizeof CODE);
    if (mprotect(page, page_bytes, PROT_READ | PROT_EXEC) < 0)
        err(FAILED, "mprotect");
    return page;
}

/* Creates /tmp/KIND-PID.SUFFIX. */
static int create(const char *kind, const char *suffix)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/%s-%d.%s", kind, getpid(), suffix);
    unlink(path); /* of an earlier process with this number */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        err(FAILED, "%s", path);
    return fd;
}

static void write_out(int fd, const struct writer *content)
{
    if (!writer_fits(content))
        errx(FAILED, "the buffer is too small");
    if (write(fd, content->data, content->length) != (ssize_t)content->length)
        err(FAILED, "write");
}

static void write_map(const uint8_t *code)
{
    uint8_t buffer[256];
    struct writer writer;
    writer_init(&writer, buffer, sizeof buffer);
    perfmap_encode(&writer, &(struct perfmap_entry){.start = (uintptr_t)code,
                                                    .size = sizeof CODE,
                                                    .name = NAME,
                                                    .name_length = strlen(NAME)});
    int fd = create("perf", "map");
    write_out(fd, &writer);
    close(fd);
}

/* .eh_frame with a CIE and an FDE, then .eh_frame_hdr. perf puts both behind the code, at the next
 * multiple of 8, so addresses are distances from there back to the code. Returns the size of the
 * second part. */
static size_t encode_unwinding(struct writer *writer)
{
    enum { DW_CFA_ADVANCE_LOC = 0x40, DW_CFA_OFFSET = 0x80, DW_CFA_DEF_CFA = 0x0c };
    enum { DW_CFA_DEF_CFA_REGISTER = 0x0d, DW_CFA_DEF_CFA_OFFSET = 0x0e };
    enum { DW_EH_PE_UDATA4 = 0x03, DW_EH_PE_SDATA4 = 0x0b };
    enum { DW_EH_PE_PCREL = 0x10, DW_EH_PE_DATAREL = 0x30 };
    enum { RBP = 6, RSP = 7, RETURN_ADDRESS = 16 };
    /* clang-format off */
    static const uint8_t cie[] = {
        0, 0, 0, 0,     /* this is a CIE */
        1, 'z', 'R', 0, /* version, augmentation */
        1, 0x78,        /* code alignment 1, data alignment -8 */
        RETURN_ADDRESS,
        1, DW_EH_PE_PCREL | DW_EH_PE_SDATA4,
        DW_CFA_DEF_CFA, RSP, 8,
        DW_CFA_OFFSET | RETURN_ADDRESS, 1,
        0, 0,
    };
    static const uint8_t moves[] = {
        DW_CFA_ADVANCE_LOC | AFTER_PUSH,
        DW_CFA_DEF_CFA_OFFSET, 16,
        DW_CFA_OFFSET | RBP, 2,
        DW_CFA_ADVANCE_LOC | (AFTER_MOV - AFTER_PUSH),
        DW_CFA_DEF_CFA_REGISTER, RBP,
        DW_CFA_ADVANCE_LOC | (AFTER_POP - AFTER_MOV),
        DW_CFA_DEF_CFA, RSP, 8,
        0, 0, 0,
    };
    /* clang-format on */
    const int32_t code = -(int32_t)((sizeof CODE + 7) & ~7u); /* from the start of .eh_frame */

    writer_u32(writer, sizeof cie);
    writer_bytes(writer, cie, sizeof cie);
    size_t fde = writer->length;
    writer_u32(writer, 4 + 4 + 4 + 1 + sizeof moves);
    writer_u32(writer, (uint32_t)writer->length); /* back to the CIE */
    writer_u32(writer, (uint32_t)(code - (int32_t)writer->length));
    writer_u32(writer, sizeof CODE);
    writer_u8(writer, 0);
    writer_bytes(writer, moves, sizeof moves);
    writer_u32(writer, 0); /* the end */
    writer_align(writer, 0, 4);

    size_t header = writer->length;
    writer_u8(writer, 1);
    writer_u8(writer, DW_EH_PE_PCREL | DW_EH_PE_SDATA4);
    writer_u8(writer, DW_EH_PE_UDATA4);
    writer_u8(writer, DW_EH_PE_DATAREL | DW_EH_PE_SDATA4);
    writer_u32(writer, 0 - (uint32_t)writer->length);
    writer_u32(writer, 1);
    writer_u32(writer, (uint32_t)(code - (int32_t)header));
    writer_u32(writer, (uint32_t)((int32_t)fde - (int32_t)header));
    return writer->length - header;
}

/* The records of a function: unwinding, lines, code. */
static void encode_function(struct writer *writer, const uint8_t *code, uint64_t index,
                            const char *name)
{
    uint8_t unwinding[256];
    struct writer unwinding_writer;
    writer_init(&unwinding_writer, unwinding, sizeof unwinding);
    size_t eh_frame_hdr_size = encode_unwinding(&unwinding_writer);

    uint32_t pid = (uint32_t)getpid();
    uint64_t code_avma = (uintptr_t)code, now = clock_ns(CLOCK_MONOTONIC);
    const struct jitdump_line lines[] = {
        {.avma = code_avma, .line = 1, .file = "made_at_run_time.s"},
        {.avma = code_avma + AFTER_MOV, .line = 3, .file = "made_at_run_time.s"},
        {.avma = code_avma + AFTER_POP, .line = 6, .file = "made_at_run_time.s"},
    };
    jitdump_encode_unwinding_info(
        writer, now,
        &(struct jitdump_unwinding_info){.data = unwinding,
                                         .size = unwinding_writer.length,
                                         .eh_frame_hdr_size = eh_frame_hdr_size,
                                         .mapped_size = unwinding_writer.length});
    jitdump_encode_debug_info(writer, now, code_avma, lines, sizeof lines / sizeof *lines);
    jitdump_encode_load(writer, now,
                        &(struct jitdump_load){.pid = pid,
                                               .tid = pid,
                                               .vma = code_avma,
                                               .code_avma = code_avma,
                                               .code_size = sizeof CODE,
                                               .code_index = index,
                                               .name = name,
                                               .name_length = strlen(name),
                                               .code = CODE});
}

/* Returns the open file. */
static int begin_jitdump(const uint8_t *code, size_t page_bytes)
{
    uint8_t buffer[1024];
    struct writer writer;
    writer_init(&writer, buffer, sizeof buffer);
    jitdump_encode_header(&writer,
                          &(struct jitdump_header){.elf_machine = EM_X86_64,
                                                   .pid = (uint32_t)getpid(),
                                                   .timestamp = clock_ns(CLOCK_MONOTONIC)});
    encode_function(&writer, code, 1, NAME);
    int fd = create("jit", "dump");
    write_out(fd, &writer);
    if (mmap(NULL, page_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        err(FAILED, "mmap of the dump");
    return fd;
}

static void replace_function(int fd, const uint8_t *code)
{
    uint8_t buffer[1024];
    struct writer writer;
    writer_init(&writer, buffer, sizeof buffer);
    encode_function(&writer, code, 2, "made_later");
    write_out(fd, &writer);
}

static void end_jitdump(int fd)
{
    uint8_t buffer[64];
    struct writer writer;
    writer_init(&writer, buffer, sizeof buffer);
    jitdump_encode_close(&writer, clock_ns(CLOCK_MONOTONIC));
    write_out(fd, &writer);
    close(fd);
}

/* Not inlined, so that profiles show it as the caller. */
__attribute__((noinline)) static void spin(const uint8_t *code, double seconds)
{
    void (*made_at_run_time)(uint64_t) = (void (*)(uint64_t))(uintptr_t)code;
    uint64_t end = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)(seconds * 1e9);
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end)
        made_at_run_time(ROUNDS_PER_CALL);
}

int main(int argc, char **argv)
{
#ifndef __x86_64__
    errx(FAILED, "makes code for x86-64 only");
#endif
    bool is_map = argc == 3 && strcmp(argv[1], "map") == 0;
    bool is_reuse = argc == 3 && strcmp(argv[1], "reuse") == 0;
    if (argc != 3 || (!is_map && !is_reuse && strcmp(argv[1], "jitdump") != 0))
        errx(FAILED, "usage: jit_spin map|jitdump|reuse SECONDS");
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t *code = make_code(page_bytes);
    double seconds = atof(argv[2]);
    if (is_map) {
        write_map(code);
        spin(code, seconds);
    } else {
        int fd = begin_jitdump(code, page_bytes);
        spin(code, is_reuse ? seconds / 2 : seconds);
        if (is_reuse) {
            replace_function(fd, code);
            spin(code, seconds / 2);
        }
        end_jitdump(fd);
    }
    return 0;
}
