/* Taking room is a compare-and-swap on `head` after a look at `tail`: both only grow, so room that
 * was there stays there. A writer that dies between taking and sealing leaves a record that is
 * never sealed; the reader stops in front of it, and what comes behind is lost with the process.
 *
 * Writing to a mapping of a full disk would be the end of the process. So the kernel is asked for
 * the pages before they are written to, a piece at a time, as the first round through the ring goes
 * on: most processes end long before its end, and a fork should cost little. It says no when there
 * is no room (MADV_POPULATE_WRITE, Linux 5.14). Older kernels are asked for all of it at the
 * beginning.
 *
 * A new page costs 4 microseconds, one that is in the file already a tenth of that. So the reader,
 * which has the time, makes pages for a process that writes much, before it comes to them. */
#include "formats/sample_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 64 << 10,
    AHEAD = 4, /* times what has been written */
    TABLES_BYTES = SAMPLE_RING_TABLES * SAMPLE_RING_TABLE_BYTES,
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static bool is_size_of_ring(uint64_t bytes)
{
    return bytes >= 4096 && bytes <= (uint64_t)1 << 30 && (bytes & (bytes - 1)) == 0;
}

static uint64_t file_bytes(uint64_t data_bytes)
{
    return SAMPLE_RING_HEADER_BYTES + data_bytes + TABLES_BYTES;
}

static size_t mapped_bytes(uint64_t data_bytes)
{
    return (size_t)(file_bytes(data_bytes) + data_bytes);
}

/* Header, then the data twice in a row, then the tables. */
static int map_ring(struct sample_ring *ring, int fd, uint64_t data_bytes)
{
    size_t span = mapped_bytes(data_bytes);
    int access = PROT_READ | PROT_WRITE;
    uint8_t *base = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return -errno;
    uint8_t *data = base + SAMPLE_RING_HEADER_BYTES;
    if (mmap(base, SAMPLE_RING_HEADER_BYTES + (size_t)data_bytes, access, MAP_SHARED | MAP_FIXED,
             fd, 0) == MAP_FAILED ||
        mmap(data + data_bytes, (size_t)data_bytes + TABLES_BYTES, access, MAP_SHARED | MAP_FIXED,
             fd, SAMPLE_RING_HEADER_BYTES) == MAP_FAILED) {
        int error = -errno;
        munmap(base, span);
        return error;
    }
    *ring = (struct sample_ring){.header = (void *)base,
                                 .data = data,
                                 .tables = data + 2 * data_bytes,
                                 .data_bytes = data_bytes};
    return 0;
}

/* Maps what the file has. Where a page is written to the kernel maps that one alone; where it is
 * read, those of the same 64 KB, counted from an address that is a multiple of that, which a piece
 * need not begin at: it lies in two of them. */
static void touch(const struct sample_ring *ring, uint64_t from, uint64_t to)
{
    for (; from < to; from += PIECE_BYTES) {
        const volatile uint8_t *piece = ring->data + from;
        (void)piece[0];
        (void)piece[PIECE_BYTES - 1];
    }
}

/* Room in the file for the first bytes of the data, in whole pieces. 0 or negative errno. */
static int make_room(struct sample_ring *ring, uint64_t bytes)
{
    uint64_t from = atomic_load_explicit(&ring->room_bytes, memory_order_relaxed);
    uint64_t to = (bytes + PIECE_BYTES - 1) / PIECE_BYTES * PIECE_BYTES;
    if (to > ring->data_bytes)
        to = ring->data_bytes;
    if (to <= from)
        return 0;
    if (to <= atomic_load_explicit(&ring->header->ready_bytes, memory_order_acquire))
        touch(ring, from, to);
    else if (madvise(ring->data + from, to - from, MADV_POPULATE_WRITE) < 0)
        return -errno;
    /* Another thread may have come farther meanwhile; then it is asked again for what is there. */
    atomic_store_explicit(&ring->room_bytes, to, memory_order_relaxed);
    return 0;
}

static int make_first_room(struct sample_ring *ring, int fd)
{
    if (madvise(ring->header, SAMPLE_RING_HEADER_BYTES, MADV_POPULATE_WRITE) == 0)
        return make_room(ring, PIECE_BYTES);
    if (errno != EINVAL)
        return -errno;
    ring->room_bytes = ring->data_bytes;
    return -posix_fallocate(fd, 0, (off_t)(SAMPLE_RING_HEADER_BYTES + ring->data_bytes));
}

static uint64_t some_number(const void *address)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec << 17 ^ (uintptr_t)address) |
           (uint64_t)1 << 62;
}

/* Trying would be answered by a signal that ends the process. */
static bool is_allowed_size(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}

int sample_ring_create(struct sample_ring *ring, const char *path, uint64_t data_bytes)
{
    if (is_size_of_ring(data_bytes) && !is_allowed_size(file_bytes(data_bytes)))
        return -EFBIG;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int error = 0;
    *ring = (struct sample_ring){0};
    if (!is_size_of_ring(data_bytes))
        error = -EINVAL;
    else if (ftruncate(fd, (off_t)file_bytes(data_bytes)) < 0)
        error = -errno;
    if (error == 0)
        error = map_ring(ring, fd, data_bytes);
    if (error == 0)
        error = make_first_room(ring, fd);
    close(fd);
    if (error < 0) {
        sample_ring_close(ring);
        unlink(path);
        return error;
    }
    ring->header->data_bytes = data_bytes;
    ring->header->seal = ring->seal = some_number(ring);
    return 0;
}

void sample_ring_close(struct sample_ring *ring)
{
    if (ring->header)
        munmap(ring->header, mapped_bytes(ring->data_bytes));
    *ring = (struct sample_ring){0};
}

static bool has_room(struct sample_ring *ring, uint64_t bytes)
{
    uint64_t room = atomic_load_explicit(&ring->room_bytes, memory_order_relaxed);
    return bytes <= room || room == ring->data_bytes || make_room(ring, bytes) == 0;
}

struct sample_record *sample_ring_take(struct sample_ring *ring, size_t bytes, uint16_t type,
                                       uint64_t *ret_position)
{
    struct sample_ring_header *header = ring->header;
    uint64_t position = atomic_load_explicit(&header->head, memory_order_relaxed);
    do {
        uint64_t tail = atomic_load_explicit(&header->tail, memory_order_acquire);
        if (position - tail + bytes > ring->data_bytes || !has_room(ring, position + bytes))
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&header->head, &position, position + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    struct sample_record *record = (void *)(ring->data + (position & (ring->data_bytes - 1)));
    record->bytes = (uint32_t)bytes;
    record->type = type;
    record->flags = 0;
    *ret_position = position;
    return record;
}

void sample_ring_give(struct sample_ring *ring, struct sample_record *record, uint64_t position)
{
    atomic_store_explicit(&record->seal, sample_ring_seal(ring->seal, position),
                          memory_order_release);
}

int sample_ring_open(struct sample_ring *ring, const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat status;
    struct sample_ring_header seen;
    int error = 0;
    bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (is_file && (pread(fd, &seen, sizeof seen, 0) != (ssize_t)sizeof seen || seen.magic == 0))
        error = -EAGAIN;
    else if (!is_file || seen.magic != SAMPLE_RING_MAGIC || seen.version != SAMPLE_RING_VERSION ||
             !is_size_of_ring(seen.data_bytes) ||
             (uint64_t)status.st_size < file_bytes(seen.data_bytes))
        error = -EBADMSG;
    else
        error = map_ring(ring, fd, seen.data_bytes);
    close(fd);
    if (error == 0)
        ring->seal = seen.seal;
    return error;
}

const struct sample_record *sample_ring_peek_at(const struct sample_ring *ring, uint64_t position)
{
    uint64_t mask = ring->data_bytes - 1;
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
    /* Behind it the file may have no page yet, and reading would make one. */
    if (head - position - 1 >= ring->data_bytes)
        return NULL;
    const struct sample_record *record = (const void *)(ring->data + (position & mask));
    uint64_t seal = atomic_load_explicit(&record->seal, memory_order_acquire);
    if (seal != sample_ring_seal(ring->seal, position) || record->bytes < sizeof *record ||
        record->bytes > ring->data_bytes || record->bytes % 8)
        return NULL;
    return record;
}

const struct sample_record *sample_ring_peek(const struct sample_ring *ring)
{
    return sample_ring_peek_at(ring,
                               atomic_load_explicit(&ring->header->tail, memory_order_relaxed));
}

void sample_ring_done_with(struct sample_ring *ring, const struct sample_record *record)
{
    uint64_t tail = atomic_load_explicit(&ring->header->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->header->tail, tail + record->bytes, memory_order_release);
}

void sample_ring_prepare(struct sample_ring *ring)
{
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_relaxed);
    uint64_t wanted = head < ring->data_bytes / AHEAD ? head * AHEAD : ring->data_bytes;
    if (wanted > PIECE_BYTES && make_room(ring, wanted) == 0)
        atomic_store_explicit(&ring->header->ready_bytes, ring->room_bytes, memory_order_release);
}
