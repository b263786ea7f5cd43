/* Files that other programs read while we write them, in a directory that everybody can write to,
 * from inside a program that may do anything: end by _exit or a signal, fork, close descriptors
 * that it does not know, run out of disk. So:
 *
 * - A record is one write(2) on a descriptor in append mode, straight from memory. There is no
 *   buffer that an _exit could lose or a fork could write twice. In the dump, the three records of
 * a function (unwinding, lines, code) go together.
 * - A write that stops half-way is taken back by ftruncate. When even that fails, a map goes on
 * with a newline first; a dump is not written to any more, since nothing behind half a record could
 * be read.
 * - A disk that is full already is noticed when the file is opened, by asking for room; one that
 *   becomes full later costs names, which are counted. So does a limit on file sizes, as it was
 *   when the file was opened. One that comes later is met by the write: Python ignores the signal.
 * - The file is always new: what lies there under its name, a link perhaps, is removed, and
 *   O_EXCL | O_NOFOLLOW makes sure of it. Mode 0600: names and paths are nobody else's business.
 * - Before each write we make sure that the descriptor is still ours. Programs that become daemons
 *   close all descriptors, and the next file they open gets our number. What tells ours apart is an
 *   odd combination of flags: asking for them takes half the time of asking for the inode. Then the
 *   file is opened again by its path, and there the inode counts. High numbers are used, so that
 *   programs find the low ones as usual.
 *
 * perf and samply find a dump by a mapping of it in the profiled process, hence the marker: one
 * page, mapped executable because perf only sees such mappings. */
#include "interp/symbol_file.h"

#include "base/clock.h"
#include "base/writer.h"
#include "formats/jitdump.h"
#include "formats/perfmap.h"
#include "interp/trampoline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FIRST_DESCRIPTOR = 200, /* try to get a number from here on */
    MARKER_BYTES = 4096,
    /* A dump's record has the name once and the file name in each line. */
    LINES_PER_SYMBOL = 2,
    RECORD_BYTES = 1024 + (2 + LINES_PER_SYMBOL) * (SYMBOL_MOST_NAME_BYTES + 1),
};

/* One record under construction; the lock that callers hold protects it. */
static uint8_t record[RECORD_BYTES];

static int open_flags(enum symbol_kind kind)
{
    int access = kind == SYMBOL_DUMP ? O_RDWR : O_WRONLY; /* to map it takes reading */
    return access | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOATIME | O_CLOEXEC | O_NOCTTY;
}

/* fcntl, whose name in glibc (fcntl64) other C libraries do not know: see registration.c. */
static int control(int fd, int command, int argument)
{
    return (int)syscall(SYS_fcntl, fd, command, argument);
}

/* Whether there is room for a first record: asks for it without writing anything. */
static int check_room(int fd)
{
    enum { KEEP_SIZE = 1, FIRST_BYTES = 4096 };
    if (syscall(SYS_fallocate, fd, KEEP_SIZE, (off_t)0, (off_t)FIRST_BYTES) == 0)
        return 0;
    return errno == ENOSPC || errno == EDQUOT ? -errno : 0;
}

/* The same file under a higher number, where there is one. */
static int move_up(int fd)
{
    int high = control(fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static int open_new(const char *path, enum symbol_kind kind)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return -errno;
    int fd = open(path, open_flags(kind) | O_CREAT | O_EXCL, 0600);
    return fd < 0 ? -errno : fd;
}

/* An existing file, if it is one that only this user can have made. */
static int open_existing(const char *path, enum symbol_kind kind)
{
    int fd = open(path, open_flags(kind));
    if (fd < 0)
        return -errno;
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        status.st_nlink == 1)
        return fd;
    close(fd);
    return -EPERM;
}

/* Takes back the last `written` bytes. */
static void take_back(struct symbol_file *file, ssize_t written)
{
    struct stat status;
    if (fstat(file->fd, &status) < 0 || ftruncate(file->fd, status.st_size - written) < 0)
        file->torn = true;
}

/* 0 or negative errno; then nothing was written, or `torn` says so. */
static int append(struct symbol_file *file, const struct writer *data)
{
    if (!writer_fits(data))
        return -EMSGSIZE;
    if (file->bytes + data->length > file->most_bytes)
        return -EFBIG;
    ssize_t written = write(file->fd, data->data, data->length);
    if (written == (ssize_t)data->length) {
        file->bytes += data->length;
        return 0;
    }
    int error = written < 0 ? errno : ENOSPC;
    if (written > 0)
        take_back(file, written);
    return -error;
}

static int write_header(struct symbol_file *file)
{
    struct writer writer;
    writer_init(&writer, record, sizeof record);
    jitdump_encode_header(&writer,
                          &(struct jitdump_header){.elf_machine = TRAMPOLINE_ELF_MACHINE,
                                                   .pid = (uint32_t)file->pid,
                                                   .timestamp = clock_ns(CLOCK_MONOTONIC)});
    int result = append(file, &writer);
    if (result < 0)
        return result;
    file->marker = mmap(NULL, MARKER_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file->fd, 0);
    if (file->marker == MAP_FAILED) {
        file->marker = NULL;
        return -errno;
    }
    return 0;
}

void symbol_file_path(enum symbol_kind kind, pid_t pid, char ret_path[SYMBOL_FILE_PATH_BYTES])
{
    snprintf(ret_path, SYMBOL_FILE_PATH_BYTES,
             kind == SYMBOL_MAP ? "/tmp/perf-%d.map" : "/tmp/jit-%d.dump", (int)pid);
}

int symbol_file_open(struct symbol_file *file, enum symbol_kind kind, bool keep)
{
    *file = (struct symbol_file){.kind = kind, .pid = getpid(), .most_bytes = UINT64_MAX};
    symbol_file_path(kind, file->pid, file->path);
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        file->most_bytes = limit.rlim_cur;

    int fd = keep ? open_existing(file->path, kind) : -ENOENT;
    bool is_new = fd < 0;
    if (is_new)
        fd = open_new(file->path, kind);
    if (fd < 0)
        return fd;
    file->fd = move_up(fd);
    file->flags = control(file->fd, F_GETFL, 0);
    struct stat status;
    int result = fstat(file->fd, &status) < 0 ? -errno : 0;
    file->bytes = result == 0 ? (uint64_t)status.st_size : 0;
    if (result == 0)
        result = check_room(file->fd);
    if (result == 0 && kind == SYMBOL_DUMP)
        result = write_header(file);
    if (result < 0) {
        close(file->fd);
        if (is_new)
            unlink(file->path);
        return result;
    }
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->open = true;
    return 0;
}

static bool is_ours(const struct symbol_file *file, const struct stat *status)
{
    return status->st_dev == file->device && status->st_ino == file->inode;
}

void symbol_file_close(struct symbol_file *file)
{
    if (!file->open)
        return;
    struct stat status;
    if (file->marker)
        munmap(file->marker, MARKER_BYTES);
    if (fstat(file->fd, &status) == 0 && is_ours(file, &status))
        close(file->fd);
    *file = (struct symbol_file){0};
}

bool symbol_file_is_in_place(const struct symbol_file *file)
{
    struct stat status;
    return file->open && lstat(file->path, &status) == 0 && is_ours(file, &status);
}

/* Makes sure that the descriptor is the file. 0 or negative errno. */
static int check_descriptor(struct symbol_file *file)
{
    if (control(file->fd, F_GETFL, 0) == file->flags)
        return 0;
    int fd = open(file->path, open_flags(file->kind));
    if (fd < 0)
        return -errno;
    struct stat status;
    if (fstat(fd, &status) < 0 || !is_ours(file, &status)) {
        close(fd);
        return -ESTALE;
    }
    file->fd = move_up(fd);
    return 0;
}

/* The calling thread's number: asked for once per thread and process. */
static uint32_t thread_id(pid_t pid)
{
    static __thread __attribute__((tls_model("initial-exec"))) struct {
        pid_t pid;
        uint32_t tid;
    } mine;
    if (mine.pid != pid) {
        mine.pid = pid;
        mine.tid = (uint32_t)syscall(SYS_gettid);
    }
    return mine.tid;
}

static void encode_line(struct writer *writer, const struct symbol *symbol)
{
    perfmap_encode(writer, &(struct perfmap_entry){.start = symbol->avma,
                                                   .size = TRAMPOLINE_BYTES,
                                                   .name = symbol->name,
                                                   .name_length = symbol->name_length});
}

/* The code in the dump ends in the symbol's number instead of the padding. It is never run; but
 * perf makes the build-id of a function's image from the code and the name, and two lambdas of one
 * file would share theirs. */
static void encode_records(struct writer *writer, const struct symbol_file *file,
                           const struct symbol *symbol)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint32_t number = (uint32_t)(file->written + 1);
    uint8_t code[TRAMPOLINE_BYTES];
    memcpy(code, TRAMPOLINE_CODE, sizeof code);
    memcpy(code + sizeof code - sizeof number, &number, sizeof number);

    /* The last line of an image ends one byte behind its start for perf: so it starts at the end.
     */
    struct jitdump_line lines[LINES_PER_SYMBOL] = {
        {.avma = symbol->avma, .line = symbol->line, .file = symbol->file},
        {.avma = symbol->avma + TRAMPOLINE_BYTES - 1, .line = symbol->line, .file = symbol->file},
    };
    jitdump_encode_unwinding_info(
        writer, now,
        &(struct jitdump_unwinding_info){.data = TRAMPOLINE_UNWINDING,
                                         .size = TRAMPOLINE_UNWINDING_BYTES,
                                         .eh_frame_hdr_size = TRAMPOLINE_EH_FRAME_HDR_BYTES,
                                         .mapped_size = TRAMPOLINE_STRIDE - TRAMPOLINE_BYTES});
    jitdump_encode_debug_info(writer, now, symbol->avma, lines, LINES_PER_SYMBOL);
    jitdump_encode_load(writer, now,
                        &(struct jitdump_load){.pid = (uint32_t)file->pid,
                                               .tid = thread_id(file->pid),
                                               .vma = symbol->avma,
                                               .code_avma = symbol->avma,
                                               .code_size = TRAMPOLINE_BYTES,
                                               .code_index = number,
                                               .name = symbol->name,
                                               .name_length = symbol->name_length,
                                               .code = code});
}

void symbol_file_add(struct symbol_file *file, const struct symbol *symbol)
{
    if (!file->open)
        return;
    struct writer writer;
    writer_init(&writer, record, sizeof record);
    int result = check_descriptor(file);
    if (result == 0 && file->kind == SYMBOL_DUMP) {
        encode_records(&writer, file, symbol);
        result = file->torn ? -EIO : append(file, &writer);
    } else if (result == 0) {
        if (file->torn)
            writer_u8(&writer, '\n');
        file->torn = false;
        encode_line(&writer, symbol);
        result = append(file, &writer);
    }
    if (result < 0) {
        file->lost++;
        file->last_error = -result;
    } else {
        file->written++;
    }
}
