#include "base/mapping.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static void a_file_is_there_from_end_to_end(void **state)
{
    (void)state;
    char path[] = "/tmp/pitviper-mapping-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "content", 7), 7);
    close(fd);
    struct mapping mapping;
    assert_int_equal(mapping_open(path, &mapping), 0);
    assert_bytes(mapping.data, mapping.length, "content");
    mapping_done(&mapping);
    unlink(path);
}

static void what_is_forgotten_can_be_read_again(void **state)
{
    (void)state;
    char path[] = "/tmp/pitviper-mapping-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "content", 7), 7);
    close(fd);
    struct mapping mapping;
    assert_int_equal(mapping_open(path, &mapping), 0);
    assert_bytes(mapping.data, mapping.length, "content");
    mapping_forget(&mapping);
    assert_bytes(mapping.data, mapping.length, "content");
    mapping_done(&mapping);
    mapping_forget(&mapping);
    unlink(path);
}

static void an_empty_file_has_no_bytes(void **state)
{
    (void)state;
    char path[] = "/tmp/pitviper-mapping-XXXXXX";
    close(mkstemp(path));
    struct mapping mapping;
    assert_int_equal(mapping_open(path, &mapping), 0);
    assert_non_null(mapping.data);
    assert_int_equal(mapping.length, 0);
    mapping_done(&mapping);
    unlink(path);
}

static void a_pipe_is_read_to_its_end(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        static uint8_t bytes[BYTES];
        memset(bytes, 'x', sizeof bytes);
        for (size_t done = 0; done < sizeof bytes;)
            done += (size_t)write(fds[1], bytes + done, sizeof bytes - done);
        _exit(0);
    }
    close(fds[1]);
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", fds[0]);
    struct mapping mapping;
    assert_int_equal(mapping_open(path, &mapping), 0);
    assert_int_equal(mapping.length, BYTES);
    assert_int_equal(mapping.data[BYTES - 1], 'x');
    mapping_done(&mapping);
    close(fds[0]);
    waitpid(child, NULL, 0);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct mapping mapping;
    assert_int_equal(mapping_open("/tmp", &mapping), -EISDIR);
    assert_int_equal(mapping_open("/dev/null", &mapping), -ENODEV);
    assert_int_equal(mapping_open("/nowhere/at/all", &mapping), -ENOENT);
    mapping_done(&mapping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_there_from_end_to_end),
        cmocka_unit_test(what_is_forgotten_can_be_read_again),
        cmocka_unit_test(an_empty_file_has_no_bytes),
        cmocka_unit_test(a_pipe_is_read_to_its_end),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
