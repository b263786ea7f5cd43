#include "formats/perfmap_index.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>

/* The index of the test that runs. */
static struct perfmap_index index_of_map;

static int release(void **state)
{
    (void)state;
    perfmap_index_done(&index_of_map);
    return 0;
}

static int read_bytes(const char *map, size_t length)
{
    perfmap_index_done(&index_of_map);
    return perfmap_index_init(&index_of_map, "map", map, length);
}

static void read_map(const char *map)
{
    assert_int_equal(read_bytes(map, strlen(map)), 0);
}

/* The name at an address, or "" when nothing covers it. */
static const char *name_at(uint64_t avma)
{
    static char name[64];
    const struct perfmap_entry *entry = perfmap_index_find(&index_of_map, avma);
    snprintf(name, sizeof name, "%.*s", entry ? (int)entry->name_length : 0,
             entry ? entry->name : "");
    return name;
}

static void an_entry_covers_its_addresses(void **state)
{
    (void)state;
    read_map("100 10 a\n200 10 b\n");
    assert_string_equal(name_at(0xff), "");
    assert_string_equal(name_at(0x100), "a");
    assert_string_equal(name_at(0x10f), "a");
    assert_string_equal(name_at(0x110), "");
    assert_string_equal(name_at(0x20f), "b");
}

static void the_entry_found_is_that_of_the_file(void **state)
{
    (void)state;
    read_map("200 10 b\n100 10 a\n");
    assert_int_equal(index_of_map.entries.count, 2);
    assert_ptr_equal(perfmap_index_find(&index_of_map, 0x105), &index_of_map.entries.items[1]);
    assert_int_equal(index_of_map.entries.items[1].start, 0x100);
}

static void an_empty_map_finds_nothing(void **state)
{
    (void)state;
    assert_int_equal(read_bytes(NULL, 0), 0);
    assert_null(perfmap_index_find(&index_of_map, 0));
    assert_int_equal(index_of_map.entries.count, 0);
    assert_false(index_of_map.damage.truncated);
}

static void a_later_line_hides_an_earlier_one_where_they_overlap(void **state)
{
    (void)state;
    read_map("100 20 a\n110 20 b\n108 4 c\n");
    assert_string_equal(name_at(0x100), "a");
    assert_string_equal(name_at(0x108), "c");
    assert_string_equal(name_at(0x10c), "a");
    assert_string_equal(name_at(0x110), "b");
    assert_string_equal(name_at(0x12f), "b");
    assert_int_equal(index_of_map.ranges.overlap_count, 2);
}

static void memory_that_is_used_again_has_the_last_name(void **state)
{
    (void)state;
    read_map("100 20 first\n300 1 other\n100 20 second\n100 20 third\n");
    assert_string_equal(name_at(0x11f), "third");
}

static void a_larger_later_line_hides_all_it_covers(void **state)
{
    (void)state;
    read_map("100 10 a\n110 10 b\nf0 100 all\n");
    assert_string_equal(name_at(0x100), "all");
    assert_string_equal(name_at(0x11f), "all");
}

static void an_entry_of_size_0_covers_4096_bytes(void **state)
{
    (void)state;
    read_map("10000 0 a\n");
    assert_string_equal(name_at(0xffff), "");
    assert_string_equal(name_at(0x10000), "a");
    assert_string_equal(name_at(0x10fff), "a");
    assert_string_equal(name_at(0x11000), "");
}

static void an_entry_of_size_0_ends_at_the_next_of_size_0(void **state)
{
    (void)state;
    read_map("10100 0 b\n10000 0 a\n");
    assert_string_equal(name_at(0x100ff), "a");
    assert_string_equal(name_at(0x10100), "b");
    assert_string_equal(name_at(0x110ff), "b");
    assert_string_equal(name_at(0x11100), "");
}

static void an_entry_of_size_0_ends_at_the_next_with_a_size(void **state)
{
    (void)state;
    read_map("10100 10 b\n10000 0 a\n");
    assert_string_equal(name_at(0x100ff), "a");
    assert_string_equal(name_at(0x10100), "b");
    assert_string_equal(name_at(0x10110), "");
    assert_string_equal(name_at(0x10800), "");
}

static void an_entry_with_a_size_wins_over_one_of_size_0(void **state)
{
    (void)state;
    read_map("10000 100 sized\n10000 0 a\n");
    assert_string_equal(name_at(0x10000), "sized");
    assert_string_equal(name_at(0x100ff), "sized");
}

static void of_two_entries_of_size_0_in_one_place_the_later_wins(void **state)
{
    (void)state;
    read_map("10000 0 a\n10000 0 b\n");
    assert_string_equal(name_at(0x10000), "b");
}

static void an_entry_of_size_0_may_be_at_the_end_of_the_address_space(void **state)
{
    (void)state;
    read_map("fffffffffffffff0 0 a\nffffffffffffffff 0 b\n");
    assert_string_equal(name_at(0xfffffffffffffff0), "a");
    assert_string_equal(name_at(0xfffffffffffffffe), "a");
}

static void bad_lines_are_counted_with_their_places(void **state)
{
    (void)state;
    read_map("100 10 a\nbad\n200 10 b\nworse\n\n300 10 c\n");
    const struct damage *damage = &index_of_map.damage;
    assert_int_equal(damage->count, 2);
    assert_int_equal(damage->bytes, strlen("bad\nworse\n"));
    assert_int_equal(damage->places[0].line, 2);
    assert_int_equal(damage->places[0].offset, 9);
    assert_int_equal(damage->places[0].bytes, 4);
    assert_non_null(damage->places[0].problem);
    assert_int_equal(damage->places[1].line, 4);
    assert_int_equal(damage->places[1].offset, 22);
    assert_false(damage->truncated);
    assert_int_equal(index_of_map.entries.count, 3);
    assert_string_equal(name_at(0x300), "c");
}

static void only_the_first_places_of_damage_are_kept(void **state)
{
    (void)state;
    char map[4 * 100 + 1] = "";
    for (size_t i = 0; i < 100; i++)
        strcat(map, "bad\n");
    read_map(map);
    assert_int_equal(index_of_map.damage.count, 100);
    assert_int_equal(index_of_map.damage.bytes, 400);
    assert_int_equal(index_of_map.damage.places[DAMAGE_MOST_PLACES - 1].line, DAMAGE_MOST_PLACES);
}

static void a_last_line_without_newline_counts_and_is_noted(void **state)
{
    (void)state;
    read_map("100 10 a\n200 10 b");
    assert_true(index_of_map.damage.truncated);
    assert_int_equal(index_of_map.damage.truncated_offset, 9);
    assert_int_equal(index_of_map.damage.count, 0);
    assert_string_equal(name_at(0x200), "b");
}

static void a_last_line_without_name_is_noted_as_truncated(void **state)
{
    (void)state;
    read_map("100 10 a\n200 1");
    assert_true(index_of_map.damage.truncated);
    assert_int_equal(index_of_map.damage.truncated_offset, 9);
    assert_int_equal(index_of_map.damage.count, 0);
    assert_int_equal(index_of_map.entries.count, 1);
}

static void shortage_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    char map[4096] = "";
    for (unsigned i = 0; i < 60; i++) {
        char line[64];
        snprintf(line, sizeof line, "%x %x name\n", 0x1000 + i * 8, i % 3 * 12);
        strcat(map, line);
    }
    long shortages = 0;
    for (bool done = false; !done; shortages += !done) {
        failing_malloc_after(shortages);
        int result = read_bytes(map, strlen(map));
        done = !failing_malloc_stop();
        assert_int_equal(result, done ? 0 : -ENOMEM);
    }
    assert_true(shortages > 6);
    assert_string_equal(name_at(0x1008), "name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_covers_its_addresses),
        cmocka_unit_test(the_entry_found_is_that_of_the_file),
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(a_later_line_hides_an_earlier_one_where_they_overlap),
        cmocka_unit_test(memory_that_is_used_again_has_the_last_name),
        cmocka_unit_test(a_larger_later_line_hides_all_it_covers),
        cmocka_unit_test(an_entry_of_size_0_covers_4096_bytes),
        cmocka_unit_test(an_entry_of_size_0_ends_at_the_next_of_size_0),
        cmocka_unit_test(an_entry_of_size_0_ends_at_the_next_with_a_size),
        cmocka_unit_test(an_entry_with_a_size_wins_over_one_of_size_0),
        cmocka_unit_test(of_two_entries_of_size_0_in_one_place_the_later_wins),
        cmocka_unit_test(an_entry_of_size_0_may_be_at_the_end_of_the_address_space),
        cmocka_unit_test(bad_lines_are_counted_with_their_places),
        cmocka_unit_test(only_the_first_places_of_damage_are_kept),
        cmocka_unit_test(a_last_line_without_newline_counts_and_is_noted),
        cmocka_unit_test(a_last_line_without_name_is_noted_as_truncated),
        cmocka_unit_test(shortage_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
