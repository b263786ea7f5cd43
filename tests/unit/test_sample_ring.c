#include "formats/sample_ring.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RING_BYTES = 8192 };

static struct sample_ring writer, reader;
static char path[64];

static void open_both_in(const char *folder, uint64_t bytes)
{
    snprintf(path, sizeof path, "%s/pitviper-ring-%d", folder, (int)getpid());
    assert_int_equal(sample_ring_create(&writer, path, bytes), 0);
    assert_int_equal(sample_ring_open(&reader, path), -EAGAIN); /* its header is not filled in */
    writer.header->version = SAMPLE_RING_VERSION;
    writer.header->magic = SAMPLE_RING_MAGIC;
    assert_int_equal(sample_ring_open(&reader, path), 0);
}

static void open_both_of(uint64_t bytes)
{
    open_both_in("/tmp", bytes);
}

static void open_both(void)
{
    open_both_of(RING_BYTES);
}

static void close_both(void)
{
    sample_ring_close(&writer);
    sample_ring_close(&reader);
    unlink(path);
}

static bool put(size_t bytes, uint32_t extra)
{
    uint64_t position;
    struct sample_record *record =
        sample_ring_take(&writer, bytes, SAMPLE_RECORD_THREAD, &position);
    if (!record)
        return false;
    record->extra = extra;
    memset(record + 1, (int)extra & 0xff, bytes - sizeof *record);
    sample_ring_give(&writer, record, position);
    return true;
}

static void assert_next(size_t bytes, uint32_t extra)
{
    const struct sample_record *record = sample_ring_peek(&reader);
    assert_non_null(record);
    assert_int_equal(record->bytes, bytes);
    assert_int_equal(record->extra, extra);
    const uint8_t *content = (const uint8_t *)(record + 1);
    for (size_t i = 0; i < bytes - sizeof *record; i++)
        assert_int_equal(content[i], extra & 0xff);
    sample_ring_done_with(&reader, record);
}

static void records_come_in_their_order(void **state)
{
    (void)state;
    open_both();
    assert_null(sample_ring_peek(&reader));
    assert_true(put(40, 1));
    assert_true(put(64, 2));
    assert_next(40, 1);
    assert_next(64, 2);
    assert_null(sample_ring_peek(&reader));
    close_both();
}

static void records_are_whole_at_the_end_of_the_ring(void **state)
{
    (void)state;
    open_both();
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(put(1000, i));
        assert_next(1000, i);
    }
    close_both();
}

static void a_full_ring_takes_nothing_until_it_is_read(void **state)
{
    (void)state;
    open_both();
    assert_true(put(RING_BYTES / 2, 1));
    assert_true(put(RING_BYTES / 2, 2));
    assert_false(put(40, 3));
    assert_next(RING_BYTES / 2, 1);
    assert_true(put(40, 4));
    assert_next(RING_BYTES / 2, 2);
    assert_next(40, 4);
    assert_false(put(RING_BYTES + 8, 5));
    close_both();
}

static void the_reader_stops_before_what_is_not_sealed(void **state)
{
    (void)state;
    open_both();
    for (uint32_t i = 0; i < 300; i++) { /* old records lie all over the ring */
        assert_true(put(64, i));
        assert_next(64, i);
    }
    uint64_t position;
    struct sample_record *record = sample_ring_take(&writer, 64, SAMPLE_RECORD_THREAD, &position);
    assert_non_null(record);
    assert_true(put(64, 2));
    assert_null(sample_ring_peek(&reader));
    record->extra = 0;
    memset(record + 1, 0, 64 - sizeof *record);
    sample_ring_give(&writer, record, position);
    assert_next(64, 0);
    assert_next(64, 2);
    close_both();
}

static void sizes_that_cannot_be_are_not_believed(void **state)
{
    (void)state;
    static const uint32_t SIZES[] = {0, 8, 33, RING_BYTES + 8, UINT32_MAX};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        open_both();
        uint64_t position;
        struct sample_record *record = sample_ring_take(&writer, 64, 1, &position);
        record->bytes = SIZES[i];
        sample_ring_give(&writer, record, position);
        writer.header->data_bytes = UINT64_MAX; /* what the reader mapped is what counts */
        assert_null(sample_ring_peek(&reader));
        close_both();
    }
}

static void files_that_are_no_rings_are_refused(void **state)
{
    (void)state;
    open_both();
    struct sample_ring other;
    assert_int_equal(sample_ring_create(&other, path, RING_BYTES), -EEXIST);
    writer.header->data_bytes = RING_BYTES * 2; /* more than there is */
    assert_int_equal(sample_ring_open(&other, path), -EBADMSG);
    writer.header->data_bytes = RING_BYTES - 8;
    assert_int_equal(sample_ring_open(&other, path), -EBADMSG);
    writer.header->data_bytes = RING_BYTES;
    writer.header->version = SAMPLE_RING_VERSION + 1;
    assert_int_equal(sample_ring_open(&other, path), -EBADMSG);
    close_both();
    assert_int_equal(sample_ring_open(&other, path), -ENOENT);
    assert_int_equal(sample_ring_create(&other, path, 5000), -EINVAL);
    assert_int_equal(access(path, F_OK), -1);
}

static void the_reader_makes_pages_for_who_writes_much(void **state)
{
    (void)state;
    enum { LARGE_BYTES = 1 << 20, RECORD_BYTES = 30000 };
    open_both_of(LARGE_BYTES);
    assert_true(put(64, 1));
    sample_ring_prepare(&reader);
    assert_int_equal(writer.header->ready_bytes, 0); /* it has enough */
    assert_next(64, 1);
    for (uint32_t i = 0; i < 2; i++)
        assert_true(put(RECORD_BYTES, i));
    sample_ring_prepare(&reader); /* what is there stays as it is */
    uint64_t ready = writer.header->ready_bytes;
    assert_true(ready >= 4 * RECORD_BYTES && ready < LARGE_BYTES);
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(put(RECORD_BYTES, i + 2));
        assert_next(RECORD_BYTES, i);
        if (i % 8 == 0)
            sample_ring_prepare(&reader);
    }
    assert_int_equal(writer.header->ready_bytes, LARGE_BYTES);
    writer.header->head = UINT64_MAX; /* not believed */
    sample_ring_prepare(&reader);
    close_both();
}

static long faults(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
}

/* By two faults for 64 KB, each of which costs as much as half of a sample. Only memory has such
 * pages: a disk wants to know which ones were written to. */
static void pages_that_the_reader_made_are_mapped_many_at_a_time(void **state)
{
    (void)state;
    enum { LARGE_BYTES = 1 << 20, RECORD_BYTES = 1 << 15, PAGE_BYTES = 4096 };
    if (access("/dev/shm", W_OK) < 0)
        skip(); /* then rings are on a disk */
    open_both_in("/dev/shm", LARGE_BYTES);
    uint32_t written = 0;
    for (; written < LARGE_BYTES / 4 / RECORD_BYTES; written++)
        assert_true(put(RECORD_BYTES, written));
    sample_ring_prepare(&reader);
    assert_int_equal(writer.header->ready_bytes, LARGE_BYTES);
    long before = faults();
    for (; written < LARGE_BYTES / RECORD_BYTES; written++)
        assert_true(put(RECORD_BYTES, written));
    assert_true(faults() - before < LARGE_BYTES / 4 * 3 / PAGE_BYTES / 6);
    close_both();
}

enum { THREADS = 4, PER_THREAD = 20000 };

static void *write_many(void *data)
{
    uint32_t number = (uint32_t)(uintptr_t)data << 24;
    for (uint32_t i = 0; i < PER_THREAD; i++)
        while (!put(40 + i % 50 * 8, number | i))
            ;
    return NULL;
}

static void threads_write_at_once(void **state)
{
    (void)state;
    open_both();
    pthread_t threads[THREADS];
    uint32_t next[THREADS] = {0};
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
    for (size_t seen = 0; seen < (size_t)THREADS * PER_THREAD;) {
        const struct sample_record *record = sample_ring_peek(&reader);
        if (!record)
            continue;
        uint32_t thread = record->extra >> 24, number = record->extra & 0xffffff;
        assert_true(thread < THREADS);
        assert_int_equal(number, next[thread]);
        assert_next(40 + number % 50 * 8, record->extra);
        next[thread]++;
        seen++;
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_in_their_order),
        cmocka_unit_test(records_are_whole_at_the_end_of_the_ring),
        cmocka_unit_test(a_full_ring_takes_nothing_until_it_is_read),
        cmocka_unit_test(the_reader_stops_before_what_is_not_sealed),
        cmocka_unit_test(sizes_that_cannot_be_are_not_believed),
        cmocka_unit_test(files_that_are_no_rings_are_refused),
        cmocka_unit_test(the_reader_makes_pages_for_who_writes_much),
        cmocka_unit_test(pages_that_the_reader_made_are_mapped_many_at_a_time),
        cmocka_unit_test(threads_write_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
