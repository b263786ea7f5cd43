#include "base/new_file.h"

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pitviper-new-file-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/name", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when something was left behind */
}

static void write_old(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *text)
{
    char bytes[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    assert_int_equal(length, strlen(text));
    assert_string_equal(bytes, text);
}

static size_t count_files(void)
{
    size_t count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static void it_appears_when_it_is_committed(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    assert_int_equal(new_file_open(&file, path, 0644), 0);
    assert_int_equal(new_file_write(&file, "new", 3), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(new_file_commit(&file), 0);
    new_file_done(&file);
    assert_content("new");
    assert_int_equal(count_files(), 1);
}

static void without_a_commit_the_old_one_stays_alone(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    write_old("old");
    assert_int_equal(new_file_open(&file, path, 0644), 0);
    assert_int_equal(new_file_write(&file, "new and longer", 14), 0);
    new_file_done(&file);
    assert_content("old");
    assert_int_equal(count_files(), 1);
}

static void the_old_one_is_replaced_as_a_whole(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    write_old("something longer than the new one");
    assert_int_equal(new_file_open(&file, path, 0644), 0);
    assert_int_equal(new_file_write(&file, "new", 3), 0);
    assert_int_equal(new_file_commit(&file), 0);
    new_file_done(&file);
    assert_content("new");
}

static void two_at_once_do_not_meet(void **state)
{
    (void)state;
    unlink(path);
    struct new_file one, two;
    assert_int_equal(new_file_open(&one, path, 0644), 0);
    assert_int_equal(new_file_open(&two, path, 0644), 0);
    assert_int_equal(new_file_write(&one, "one", 3), 0);
    assert_int_equal(new_file_write(&two, "two", 3), 0);
    assert_int_equal(new_file_commit(&one), 0);
    assert_content("one");
    assert_int_equal(new_file_commit(&two), 0);
    assert_content("two");
    new_file_done(&one);
    new_file_done(&two);
    assert_int_equal(count_files(), 1);
}

static void what_is_left_out_is_zero(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    struct stat status;
    assert_int_equal(new_file_open(&file, path, 0644), 0);
    assert_int_equal(new_file_write(&file, "a", 1), 0);
    assert_int_equal(new_file_skip(&file, 1 << 20), 0);
    assert_int_equal(new_file_write(&file, "b", 1), 0);
    assert_int_equal(new_file_commit(&file), 0);
    new_file_done(&file);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, (1 << 20) + 2);
    assert_true(status.st_blocks * 512 < 1 << 20);
}

static void a_folder_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    char missing[160];
    snprintf(missing, sizeof missing, "%s/missing/name", folder);
    assert_int_equal(new_file_open(&file, missing, 0644), -ENOENT);
    assert_int_equal(new_file_open(&file, folder, 0644), -EISDIR);
}

static void a_folder_in_its_place_is_an_error_and_nothing_stays(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    assert_int_equal(new_file_open(&file, path, 0644), 0);
    assert_int_equal(new_file_write(&file, "new", 3), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(new_file_commit(&file) < 0);
    new_file_done(&file);
    assert_int_equal(count_files(), 1);
    assert_int_equal(rmdir(path), 0);
}

static void a_full_device_is_told(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    assert_int_equal(new_file_open(&file, "/dev/full", 0644), 0);
    assert_int_equal(new_file_write(&file, "new", 3), -ENOSPC);
    new_file_done(&file);
    assert_int_equal(access("/dev/full", F_OK), 0);
}

static void a_pipe_is_written_to_directly(void **state)
{
    (void)state;
    unlink(path);
    struct new_file file;
    char bytes[8] = "";
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(new_file_open(&file, path, 0644), 0);
    assert_int_equal(new_file_write(&file, "new", 3), 0);
    assert_int_equal(read(reader, bytes, sizeof bytes), 3);
    assert_string_equal(bytes, "new");
    assert_int_equal(new_file_commit(&file), 0);
    new_file_done(&file);
    close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_appears_when_it_is_committed),
        cmocka_unit_test(without_a_commit_the_old_one_stays_alone),
        cmocka_unit_test(the_old_one_is_replaced_as_a_whole),
        cmocka_unit_test(two_at_once_do_not_meet),
        cmocka_unit_test(what_is_left_out_is_zero),
        cmocka_unit_test(a_folder_that_is_not_there_is_an_error),
        cmocka_unit_test(a_folder_in_its_place_is_an_error_and_nothing_stays),
        cmocka_unit_test(a_full_device_is_told),
        cmocka_unit_test(a_pipe_is_written_to_directly),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
