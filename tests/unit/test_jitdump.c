/* Decoding and encoding of whole files; test_jitdump_damage.c has the damaged ones. */
#include "formats/jitdump.h"

#include "jitdump_sample.h"
#include "unit.h"

static struct sample sample;

static uint64_t number_at(size_t offset, size_t bytes)
{
    uint64_t eight;
    uint32_t four;
    memcpy(&eight, sample.bytes + offset, sizeof eight);
    memcpy(&four, sample.bytes + offset, sizeof four);
    return bytes == 4 ? four : eight;
}

/* Turns numbers into the other byte order; `sizes` has a digit, 4 or 8, for each. Returns the
 * offset behind them. */
static size_t swap_numbers(uint8_t *bytes, size_t offset, const char *sizes)
{
    for (; *sizes; offset += (size_t)(*sizes++ - '0')) {
        size_t size = (size_t)(*sizes - '0');
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t low = bytes[offset + i];
            bytes[offset + i] = bytes[offset + size - 1 - i];
            bytes[offset + size - 1 - i] = low;
        }
    }
    return offset;
}

/* Turns the sample into what a machine of the other byte order would have written. */
static void swap_sample(void)
{
    static const char *const bodies[] = {
        [JITDUMP_LOAD] = "448888", [JITDUMP_MOVE] = "4488888",       [JITDUMP_DEBUG_INFO] = "88",
        [JITDUMP_CLOSE] = "",      [JITDUMP_UNWINDING_INFO] = "888",
    };
    swap_numbers(sample.bytes, 0, "44444488");
    for (size_t i = 0; i < sample.count; i++) {
        uint64_t type = number_at(sample.offsets[i], 4);
        size_t offset = swap_numbers(sample.bytes, sample.offsets[i], "448");
        uint64_t lines = type == JITDUMP_DEBUG_INFO ? number_at(offset + 8, 8) : 0;
        if (type < JITDUMP_TYPES)
            offset = swap_numbers(sample.bytes, offset, bodies[type]);
        for (; lines; lines--) {
            offset = swap_numbers(sample.bytes, offset, "844");
            offset += strlen((const char *)sample.bytes + offset) + 1;
        }
    }
}

/* Reads the sample, which has nothing wrong with it. */
static struct sample_reading read_sample(void)
{
    struct sample_reading reading = sample_read(sample.bytes, sample.writer.length);
    assert_int_equal(reading.bad_count, 0);
    assert_false(reading.truncated);
    assert_int_equal(reading.count, sample.count);
    for (size_t i = 0; i < sample.count; i++) {
        assert_int_equal(reading.records[i].offset, sample.offsets[i]);
        assert_int_equal(reading.records[i].size, sample.offsets[i + 1] - sample.offsets[i]);
        assert_int_equal(reading.records[i].timestamp, (i + 1) * 100);
    }
    return reading;
}

static void assert_load(const struct jitdump_load *load, const struct jitdump_load *expected)
{
    assert_int_equal(load->pid, expected->pid);
    assert_int_equal(load->tid, expected->tid);
    assert_int_equal(load->vma, expected->vma);
    assert_int_equal(load->code_avma, expected->code_avma);
    assert_int_equal(load->code_size, expected->code_size);
    assert_int_equal(load->code_index, expected->code_index);
    assert_int_equal(load->name_length, expected->name_length);
    assert_string_equal(load->name, expected->name);
    if (expected->code)
        assert_memory_equal(load->code, expected->code, expected->code_size);
    else
        assert_null(load->code);
}

static void assert_next_line(struct jitdump_debug_info *info, struct jitdump_line expected)
{
    struct jitdump_line line;
    assert_int_equal(jitdump_next_line(info, &line), 1);
    assert_int_equal(line.avma, expected.avma);
    assert_int_equal(line.line, expected.line);
    assert_int_equal(line.discriminator, expected.discriminator);
    assert_string_equal(line.file, expected.file);
}

/* Checks the records of sample_make_all_types. */
static void assert_all_types(const struct sample_reading *reading)
{
    const struct jitdump_record *records = reading->records;
    static const uint32_t types[] = {JITDUMP_UNWINDING_INFO, JITDUMP_LOAD, JITDUMP_DEBUG_INFO,
                                     JITDUMP_LOAD,           JITDUMP_MOVE, JITDUMP_CLOSE};
    for (size_t i = 0; i < COUNT(types); i++)
        assert_int_equal(records[i].type, types[i]);

    assert_int_equal(records[0].unwinding_info.size, 27);
    assert_int_equal(records[0].unwinding_info.eh_frame_hdr_size, 12);
    assert_int_equal(records[0].unwinding_info.mapped_size, 32);
    assert_memory_equal(records[0].unwinding_info.data, "eh_frame, then eh_frame_hdr", 27);

    struct jitdump_load foo = sample_load(0x7f0000001000, 1, "py::foo:/app/a.py");
    struct jitdump_load bar = sample_load(0x7f0000002000, 2, "py::bar:/app/b.py");
    assert_load(&records[1].load, &foo);
    assert_load(&records[3].load, &bar);

    struct jitdump_debug_info info = records[2].debug_info;
    struct jitdump_line line;
    assert_int_equal(info.code_avma, 0x7f0000002000);
    assert_int_equal(info.count, 2);
    assert_next_line(&info, (struct jitdump_line){0x7f0000002000, 10, 1, "/app/b.py"});
    assert_next_line(&info, (struct jitdump_line){0x7f0000002008, 11, 0, "/app/b.py"});
    assert_int_equal(jitdump_next_line(&info, &line), 0);

    struct jitdump_move move = sample_move(0x7f0000001000, 0x7f0000003000, 1);
    assert_memory_equal(&records[4].move, &move, sizeof move);
}

static void the_header_has_its_fields_in_place(void **state)
{
    (void)state;
    sample_begin(&sample);
    assert_int_equal(sample.writer.length, 40);
    assert_int_equal(number_at(0, 4), 0x4a695444);
    assert_int_equal(number_at(4, 4), 1);
    assert_int_equal(number_at(8, 4), 40);
    assert_int_equal(number_at(12, 4), SAMPLE_MACHINE);
    assert_int_equal(number_at(20, 4), SAMPLE_PID);
    assert_int_equal(number_at(24, 8), 99);
    assert_int_equal(number_at(32, 8), 0);
}

static void the_header_is_decoded(void **state)
{
    (void)state;
    struct jitdump_header header = {.elf_machine = 183,
                                    .pid = 12,
                                    .timestamp = 0x123456789abcdef0,
                                    .flags = JITDUMP_ARCH_TIMESTAMP};
    struct jitdump_reader reader;
    struct jitdump_record record;
    uint8_t bytes[40];
    struct writer writer;
    writer_init(&writer, bytes, sizeof bytes);
    jitdump_encode_header(&writer, &header);
    assert_true(writer_fits(&writer));
    assert_int_equal(jitdump_open(&reader, "sample", bytes, sizeof bytes), 0);
    assert_int_equal(reader.header.version, 1);
    assert_int_equal(reader.header.elf_machine, 183);
    assert_int_equal(reader.header.pid, 12);
    assert_int_equal(reader.header.timestamp, 0x123456789abcdef0);
    assert_int_equal(reader.header.flags, JITDUMP_ARCH_TIMESTAMP);
    assert_false(reader.cursor.swapped);
    assert_int_equal(jitdump_next(&reader, &record), 0);
}

static void a_record_has_its_fields_in_place(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 7, "name");
    assert_int_equal(number_at(40, 4), JITDUMP_LOAD);
    assert_int_equal(number_at(44, 4), 16 + 40 + 5 + sizeof SAMPLE_CODE);
    assert_int_equal(number_at(48, 8), 100);
    assert_int_equal(number_at(56, 4), SAMPLE_PID);
    assert_int_equal(number_at(60, 4), SAMPLE_PID + 1);
    assert_int_equal(number_at(72, 8), 0x1000);
    assert_int_equal(number_at(80, 8), sizeof SAMPLE_CODE);
    assert_int_equal(number_at(88, 8), 7);
    assert_memory_equal(sample.bytes + 96, "name", 5);
    assert_memory_equal(sample.bytes + 101, SAMPLE_CODE, sizeof SAMPLE_CODE);
}

static void records_of_all_types_are_decoded_as_encoded(void **state)
{
    (void)state;
    sample_make_all_types(&sample);
    struct sample_reading reading = read_sample();
    assert_all_types(&reading);
}

static void the_other_byte_order_is_decoded(void **state)
{
    (void)state;
    struct jitdump_reader reader;
    sample_make_all_types(&sample);
    swap_sample();
    assert_int_equal(jitdump_open(&reader, "sample", sample.bytes, sample.writer.length), 0);
    assert_true(reader.cursor.swapped);
    assert_int_equal(reader.header.pid, SAMPLE_PID);
    assert_int_equal(reader.header.elf_machine, SAMPLE_MACHINE);
    assert_int_equal(reader.header.timestamp, 99);
    struct sample_reading reading = read_sample();
    assert_all_types(&reading);
}

static void both_byte_orders_of_the_magic_number_are_known(void **state)
{
    (void)state;
    assert_true(jitdump_is("JiTD and more", 13));
    assert_true(jitdump_is("DTiJ", 4));
    assert_false(jitdump_is("DTi", 3));
    assert_false(jitdump_is("DTiX", 4));
    assert_false(jitdump_is(NULL, 0));
}

static void records_start_where_the_header_says(void **state)
{
    (void)state;
    sample_make_all_types(&sample);
    memmove(sample.bytes + 56, sample.bytes + 40, sample.writer.length - 40);
    memcpy(sample.bytes + 8, &(uint32_t){56}, 4);
    struct sample_reading reading = sample_read(sample.bytes, sample.writer.length + 16);
    assert_int_equal(reading.count, sample.count);
    assert_int_equal(reading.records[0].offset, 56);
    assert_all_types(&reading);
}

static void unknown_types_are_passed_by_their_size(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "before");
    sample_add_unknown(&sample, 13);
    sample_add_load(&sample, 0x2000, 2, "behind");
    sample_add_unknown(&sample, 0);
    struct sample_reading reading = read_sample();
    assert_int_equal(reading.records[1].type, 77);
    assert_int_equal(reading.records[3].type, 77);
    assert_string_equal(reading.records[2].load.name, "behind");
}

static void unknown_types_may_follow_each_other(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "before");
    sample_add_unknown(&sample, 13);
    sample_add_unknown(&sample, 24);
    sample_add_unknown(&sample, 0);
    sample_add_load(&sample, 0x2000, 2, "behind");
    read_sample();
}

static void records_may_be_padded(void **state)
{
    (void)state;
    for (size_t padding = 1; padding < 8; padding++) {
        sample_begin(&sample);
        struct jitdump_load load = sample_load(0x1000, 1, "padded");
        jitdump_encode_load(&sample.writer, 100, &load);
        for (size_t i = 0; i < padding; i++)
            writer_u8(&sample.writer, 0);
        writer_patch_u32(&sample.writer, 44, (uint32_t)(sample.writer.length - 40));
        sample_note(&sample);
        sample_add_load(&sample, 0x2000, 2, "behind");
        struct sample_reading reading = read_sample();
        assert_load(&reading.records[0].load, &load);
    }
}

static void a_load_may_leave_the_code_out(void **state)
{
    (void)state;
    sample_begin(&sample);
    struct jitdump_load load = sample_load(0x1000, 1, "without code");
    load.code = NULL;
    jitdump_encode_load(&sample.writer, 100, &load);
    sample_note(&sample);
    sample_add_load(&sample, 0x2000, 2, "behind");
    struct sample_reading reading = read_sample();
    assert_load(&reading.records[0].load, &load);
    assert_string_equal(reading.records[1].load.name, "behind");
}

static void names_and_code_are_those_of_the_data(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "name");
    struct sample_reading reading = read_sample();
    assert_ptr_equal(reading.records[0].load.name, sample.bytes + 96);
    assert_ptr_equal(reading.records[0].load.code, sample.bytes + 101);
}

static void the_mark_for_the_same_file_goes_on_until_another_file(void **state)
{
    (void)state;
    const struct jitdump_line lines[] = {
        {0x1000, 1, 0, "\xff"}, {0x1001, 2, 0, "a.py"},     {0x1002, 3, 0, "\xff"},
        {0x1003, 4, 0, "\xff"}, {0x1004, 5, 9, "\xff\xff"}, {0x1005, 6, 0, "\xff"},
    };
    static const char *const files[] = {"", "a.py", "a.py", "a.py", "\xff\xff", "\xff\xff"};
    sample_begin(&sample);
    jitdump_encode_debug_info(&sample.writer, 100, 0x1000, lines, COUNT(lines));
    sample_note(&sample);
    struct sample_reading reading = read_sample();
    struct jitdump_debug_info info = reading.records[0].debug_info;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct jitdump_line expected = lines[i];
        expected.file = files[i];
        assert_next_line(&info, expected);
    }
    assert_int_equal(jitdump_next_line(&info, &(struct jitdump_line){0}), 0);
}

static void measuring_gives_the_length_of_the_whole(void **state)
{
    (void)state;
    struct writer writer;
    struct jitdump_load load = sample_load(0x1000, 1, "name");
    writer_init(&writer, NULL, 0);
    jitdump_encode_load(&writer, 1, &load);
    assert_int_equal(writer.length, 16 + 40 + 5 + sizeof SAMPLE_CODE);
    assert_false(writer_fits(&writer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_has_its_fields_in_place),
        cmocka_unit_test(the_header_is_decoded),
        cmocka_unit_test(a_record_has_its_fields_in_place),
        cmocka_unit_test(records_of_all_types_are_decoded_as_encoded),
        cmocka_unit_test(the_other_byte_order_is_decoded),
        cmocka_unit_test(both_byte_orders_of_the_magic_number_are_known),
        cmocka_unit_test(records_start_where_the_header_says),
        cmocka_unit_test(unknown_types_are_passed_by_their_size),
        cmocka_unit_test(unknown_types_may_follow_each_other),
        cmocka_unit_test(records_may_be_padded),
        cmocka_unit_test(a_load_may_leave_the_code_out),
        cmocka_unit_test(names_and_code_are_those_of_the_data),
        cmocka_unit_test(the_mark_for_the_same_file_goes_on_until_another_file),
        cmocka_unit_test(measuring_gives_the_length_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
