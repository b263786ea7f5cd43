#include "record/recording_file.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static char folder[64], path[128], old[160], other[128];
static struct recording_file file;

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pitviper-recording-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/name", folder);
    snprintf(old, sizeof old, "%s.old", path);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    const char *paths[] = {path, old, other};
    for (size_t i = 0; i < COUNT(paths); i++)
        (void)remove(paths[i]);
    return rmdir(folder); /* fails when something else was left behind */
}

static void put(const char *where, const char *text)
{
    FILE *stream = fopen(where, "w");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static void assert_content(const char *where, const char *text)
{
    char bytes[64] = "";
    FILE *stream = fopen(where, "r");
    assert_non_null(stream);
    size_t length = fread(bytes, 1, sizeof bytes - 1, stream);
    fclose(stream);
    assert_int_equal(length, strlen(text));
    assert_string_equal(bytes, text);
}

static void open_and_write(void)
{
    assert_null(recording_file_refusal(path));
    assert_int_equal(recording_file_open(&file, path), 0);
    assert_int_equal(write(file.fd, "new", 3), 3);
}

static void the_old_one_is_kept(void **state)
{
    (void)state;
    put(path, "one");
    put(old, "two");
    open_and_write();
    assert_content(old, "two");
    assert_int_equal(recording_file_keep_old(&file), 0);
    assert_int_equal(recording_file_close(&file), 0);
    assert_content(path, "new");
    assert_content(old, "one");
}

static void what_is_removed_has_replaced_nothing(void **state)
{
    (void)state;
    put(path, "one");
    put(old, "two");
    open_and_write();
    recording_file_remove(&file);
    assert_content(path, "one");
    assert_content(old, "two");
}

static void what_is_removed_later_leaves_the_old_one_its_name(void **state)
{
    (void)state;
    put(path, "one");
    open_and_write();
    assert_int_equal(recording_file_keep_old(&file), 0);
    recording_file_remove(&file);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_content(old, "one");
}

static void an_old_one_that_can_not_have_its_name_stays(void **state)
{
    (void)state;
    put(path, "one");
    open_and_write();
    assert_int_equal(mkdir(old, 0700), 0);
    assert_int_equal(recording_file_keep_old(&file), -EISDIR);
    assert_content(file.aside, "one");
    assert_int_equal(rmdir(old), 0);
    assert_int_equal(recording_file_keep_old(&file), 0);
    assert_int_equal(recording_file_close(&file), 0);
    assert_content(old, "one");
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_non_null(recording_file_refusal(path));
    assert_int_equal(recording_file_open(&file, path), -EINVAL);
    assert_int_equal(symlink(path, other), 0);
    assert_non_null(recording_file_refusal(other));
    assert_int_equal(unlink(path), 0);
    assert_non_null(recording_file_refusal(other)); /* leads nowhere */
    assert_non_null(recording_file_refusal(folder));
    assert_non_null(recording_file_refusal("-"));
}

static void nothing_but_a_file_is_replaced_by_the_old_one(void **state)
{
    (void)state;
    put(path, "one");
    assert_int_equal(mkfifo(old, 0600), 0);
    assert_non_null(recording_file_refusal(path));
    assert_int_equal(recording_file_open(&file, path), -EINVAL);
    assert_content(path, "one");
}

static void a_link_stays(void **state)
{
    (void)state;
    put(other, "one");
    assert_int_equal(symlink("other", path), 0);
    open_and_write();
    assert_int_equal(recording_file_keep_old(&file), 0);
    assert_int_equal(recording_file_close(&file), 0);
    assert_content(other, "new");
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    char beside[sizeof other + sizeof ".old"];
    snprintf(beside, sizeof beside, "%s.old", other);
    assert_content(beside, "one");
    assert_int_equal(unlink(beside), 0);
}

static void a_place_that_can_not_be_is_an_error(void **state)
{
    (void)state;
    snprintf(old, sizeof old, "%s/nowhere/name", folder);
    assert_null(recording_file_refusal(old));
    assert_int_equal(recording_file_open(&file, old), -ENOENT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(the_old_one_is_kept),
        TEST(what_is_removed_has_replaced_nothing),
        TEST(what_is_removed_later_leaves_the_old_one_its_name),
        TEST(an_old_one_that_can_not_have_its_name_stays),
        TEST(what_is_no_file_is_refused),
        TEST(nothing_but_a_file_is_replaced_by_the_old_one),
        TEST(a_link_stays),
        TEST(a_place_that_can_not_be_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
