#include "base/file.h"

#include "base/cleanup.h"
#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char folder[PATH_MAX];
static char path[PATH_MAX + 8];

static int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/pitviper-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static uint8_t pattern_byte(size_t offset)
{
    return (uint8_t)(offset * 31 + offset / 251);
}

static void write_pattern(size_t length)
{
    CLEANUP(cleanup_fclose) FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (size_t i = 0; i < length; i++)
        putc(pattern_byte(i), out);
}

static void assert_pattern(const struct file *file, size_t length)
{
    assert_int_equal(file->length, length);
    for (size_t i = 0; i < length; i++) {
        if (file->data[i] != pattern_byte(i))
            fail_msg("byte %zu is %d", i, file->data[i]);
    }
}

static void assert_nothing_read(const char *from, int error)
{
    struct file file = {.data = (uint8_t *)1, .length = 1};
    assert_int_equal(file_read(from, &file), error);
    assert_null(file.data);
    assert_int_equal(file.length, 0);
}

static void a_file_is_read_whole(void **state)
{
    (void)state;
    const size_t lengths[] = {1, 4095, 4096, 65535, 65536, 65537, 300000};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct file file;
        write_pattern(lengths[i]);
        assert_int_equal(file_read(path, &file), 0);
        assert_pattern(&file, lengths[i]);
        file_done(&file);
    }
}

static void an_empty_file_has_data_that_is_not_null(void **state)
{
    (void)state;
    struct file file;
    write_pattern(0);
    assert_int_equal(file_read(path, &file), 0);
    assert_non_null(file.data);
    assert_int_equal(file.length, 0);
    file_done(&file);
    assert_null(file.data);
}

static void a_file_that_states_no_size_is_read_whole(void **state)
{
    (void)state;
    struct file file;
    assert_int_equal(file_read("/proc/self/cmdline", &file), 0);
    assert_true(file.length > 0);
    assert_int_equal(file.data[file.length - 1], '\0');
    file_done(&file);
}

static void a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    enum { LENGTH = 200000 };
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        FILE *out = fopen(path, "w");
        for (size_t i = 0; out && i < LENGTH; i++)
            putc(pattern_byte(i), out);
        _exit(out ? fclose(out) : 1);
    }
    struct file file;
    int status;
    assert_int_equal(file_read(path, &file), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_pattern(&file, LENGTH);
    file_done(&file);
    unlink(path);
}

static void a_missing_file_is_reported(void **state)
{
    (void)state;
    unlink(path);
    assert_nothing_read(path, -ENOENT);
}

static void a_folder_is_reported(void **state)
{
    (void)state;
    assert_nothing_read(folder, -EISDIR);
}

static void a_device_without_end_is_refused(void **state)
{
    (void)state;
    assert_nothing_read("/dev/zero", -ENODEV);
}

static void an_error_while_reading_is_reported(void **state)
{
    (void)state;
    assert_nothing_read("/proc/self/mem", -EIO);
}

static void no_descriptor_stays_open(void **state)
{
    (void)state;
    write_pattern(10);
    int before = dup(0);
    close(before);
    struct file file;
    assert_int_equal(file_read(path, &file), 0);
    file_done(&file);
    assert_nothing_read(folder, -EISDIR);
    assert_nothing_read("/dev/zero", -ENODEV);
    int after = dup(0);
    close(after);
    assert_int_equal(after, before);
}

static void shortage_of_memory_is_reported(void **state)
{
    (void)state;
    write_pattern(100);
    failing_malloc_after(0);
    assert_nothing_read(path, -ENOMEM);
    assert_true(failing_malloc_stop());
}

static void shortage_while_a_pipe_is_read_is_reported(void **state)
{
    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    CLEANUP(cleanup_close) int writer = open(path, O_RDWR | O_NONBLOCK);
    assert_true(writer >= 0);
    assert_true(fcntl(writer, F_SETPIPE_SZ, 1 << 18) >= 1 << 17);
    static const char bytes[100000];
    assert_int_equal(write(writer, bytes, sizeof bytes), sizeof bytes);
    failing_malloc_after(1);
    assert_nothing_read(path, -ENOMEM);
    assert_true(failing_malloc_stop());
    unlink(path);
}

static void in_public_places_only_regular_files_are_read(void **state)
{
    (void)state;
    struct file file;
    write_pattern(100);
    assert_int_equal(file_read_regular(path, &file), 0);
    assert_pattern(&file, 100);
    file_done(&file);
    unlink(path);
    assert_int_equal(file_read_regular(path, &file), -ENOENT);
    assert_int_equal(file_read_regular(folder, &file), -ENOENT);
    assert_int_equal(file_read_regular("/dev/zero", &file), -ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_read_regular(path, &file), -ENOENT);
    assert_null(file.data);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole),
        cmocka_unit_test(an_empty_file_has_data_that_is_not_null),
        cmocka_unit_test(a_file_that_states_no_size_is_read_whole),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(a_missing_file_is_reported),
        cmocka_unit_test(a_folder_is_reported),
        cmocka_unit_test(a_device_without_end_is_refused),
        cmocka_unit_test(an_error_while_reading_is_reported),
        cmocka_unit_test(no_descriptor_stays_open),
        cmocka_unit_test(shortage_of_memory_is_reported),
        cmocka_unit_test(shortage_while_a_pipe_is_read_is_reported),
        cmocka_unit_test(in_public_places_only_regular_files_are_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
