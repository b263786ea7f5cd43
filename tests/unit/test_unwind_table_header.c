/* .eh_frame_hdr shortens the way to a function, whatever is in it: one that lies leads to the right
 * rule, or to none if the section has none. The object file is made by hand:
 *
 *     0x000  ELF header, two program headers: all of it is code; .eh_frame_hdr
 *     0x100  .eh_frame_hdr
 *     0x400  .eh_frame, of functions at 0x2000, 0x2100, …, each with a CFA of its own */
#include "unwind/unwind_table.h"

#include "cfi_sample.h"

enum {
    RSP = 7,
    HEADER_AT = 0x100,
    EH_FRAME_AT = 0x400,
    FIRST = 0x2000,
    STEP = 0x100,
    SIZE = 0x40,
    FUNCTIONS = 8,
    CODE_END = 0x10000,
};

static struct cfi_sample cfi;
static uint32_t places[FUNCTIONS]; /* of the descriptions, in the section */

/* The header's parts, for tests to change. */
static struct {
    uint8_t version, pointer_encoding, count_encoding, table_encoding;
    uint32_t count;
    int32_t rows[FUNCTIONS][2];
} header;

static uint8_t *image;
static struct elf_object *object;
static struct unwind_table table;

static uint32_t start_of(size_t function)
{
    return FIRST + (uint32_t)function * STEP;
}

/* A header that is right; and a section whose functions are not in the order of addresses. */
static int set_up(void **state)
{
    (void)state;
    cfi = (struct cfi_sample){0};
    cfi_sample_cie(&cfi, "zR");
    for (size_t i = FUNCTIONS; i-- > 0;) {
        uint8_t instructions[] = {0x0e, (uint8_t)(16 + 8 * i)}; /* CFA = rsp + 16 + 8 i */
        places[i] = (uint32_t)cfi.length;
        cfi_sample_fde(&cfi, start_of(i), SIZE, instructions, sizeof instructions);
    }
    cfi_sample_u32(&cfi, 0);
    header.version = 1;
    header.pointer_encoding = 0x1b; /* relative to itself, 4 bytes with a sign */
    header.count_encoding = 0x03;
    header.table_encoding = 0x3b;
    header.count = FUNCTIONS;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        header.rows[i][0] = (int32_t)start_of(i) - HEADER_AT;
        header.rows[i][1] = EH_FRAME_AT + (int32_t)places[i] - HEADER_AT;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unwind_table_done(&table);
    elf_object_close(object);
    free(image);
    object = NULL;
    image = NULL;
    return 0;
}

static void put_header(uint8_t *to)
{
    int32_t distance = EH_FRAME_AT - HEADER_AT - 4;
    memcpy(to, &header.version, 1);
    memcpy(to + 1, &header.pointer_encoding, 1);
    memcpy(to + 2, &header.count_encoding, 1);
    memcpy(to + 3, &header.table_encoding, 1);
    memcpy(to + 4, &distance, 4);
    memcpy(to + 8, &header.count, 4);
    memcpy(to + 12, header.rows, sizeof header.rows);
}

static void open_table(void)
{
    size_t length = EH_FRAME_AT + cfi.length;
    Elf64_Ehdr ehdr = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
                       .e_type = ET_DYN,
                       .e_machine = EM_X86_64,
                       .e_version = 1,
                       .e_phoff = sizeof ehdr,
                       .e_ehsize = sizeof ehdr,
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_phnum = 2};
    Elf64_Phdr segments[2] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = length, .p_memsz = CODE_END},
        {.p_type = PT_GNU_EH_FRAME,
         .p_offset = HEADER_AT,
         .p_vaddr = HEADER_AT,
         .p_filesz = 12 + sizeof header.rows}};
    uint8_t *bytes = calloc(1, length);
    assert_non_null(bytes);
    memcpy(bytes, &ehdr, sizeof ehdr);
    memcpy(bytes + sizeof ehdr, segments, sizeof segments);
    put_header(bytes + HEADER_AT);
    memcpy(bytes + EH_FRAME_AT, cfi.bytes, cfi.length);
    image = bytes;
    assert_int_equal(elf_object_open_memory("image", image, length, &object), 0);
    assert_int_equal(unwind_table_init(&table, object, NULL), 0);
}

static void assert_rule_of(size_t function)
{
    uint64_t svmas[] = {start_of(function), start_of(function) + 1, start_of(function) + SIZE - 1};
    for (size_t i = 0; i < COUNT(svmas); i++) {
        const struct unwind_rule *rule = unwind_table_find(&table, svmas[i]);
        assert_non_null(rule);
        assert_int_equal(rule->cfa_number, RSP);
        assert_int_equal(rule->cfa_offset, 16 + 8 * function);
    }
    assert_null(unwind_table_find(&table, start_of(function) - 1));
    assert_null(unwind_table_find(&table, start_of(function) + SIZE));
}

static void assert_all_rules(void)
{
    open_table();
    for (size_t i = 0; i < FUNCTIONS; i++)
        assert_rule_of(i);
    assert_null(unwind_table_find(&table, 0));
    assert_null(unwind_table_find(&table, CODE_END - 1));
    assert_null(unwind_table_find(&table, UINT64_MAX));
    assert_int_equal(table.damaged, 0);
}

static void assert_all_rules_without_the_header(void)
{
    assert_all_rules();
    assert_false(table.sections[0].is_by_header);
}

static void one_that_is_right_is_all_that_is_needed(void **state)
{
    (void)state;
    assert_all_rules();
    assert_true(table.sections[0].is_by_header);
    assert_true(table.sections[0].is_complete);
}

static void descriptions_of_other_functions_are_not_taken(void **state)
{
    (void)state;
    header.rows[2][1] = header.rows[5][1];
    assert_all_rules_without_the_header();
}

static void places_without_a_description_are_not_taken(void **state)
{
    (void)state;
    header.rows[0][1] = EH_FRAME_AT - HEADER_AT;                           /* the CIE */
    header.rows[3][1] += 4;                                                /* inside of an entry */
    header.rows[7][1] = EH_FRAME_AT + (int32_t)cfi.length - HEADER_AT - 1; /* the last byte */
    assert_all_rules_without_the_header();
}

static void places_outside_of_the_section_are_not_taken(void **state)
{
    (void)state;
    static const int32_t PLACES[] = {0, INT32_MIN, INT32_MAX, EH_FRAME_AT - HEADER_AT - 1};
    for (size_t i = 0; i < COUNT(PLACES); i++) {
        header.rows[4][1] = PLACES[i];
        assert_all_rules_without_the_header();
        tear_down(NULL);
        set_up(NULL);
    }
}

static void starts_that_do_not_ascend_are_not_taken(void **state)
{
    (void)state;
    int32_t row[2];
    memcpy(row, header.rows[1], sizeof row);
    memcpy(header.rows[1], header.rows[6], sizeof row);
    memcpy(header.rows[6], row, sizeof row);
    assert_all_rules_without_the_header();
}

static void two_descriptions_of_one_start_are_not_taken(void **state)
{
    (void)state;
    header.rows[2][0] = header.rows[1][0];
    assert_all_rules_without_the_header();
}

static void a_start_elsewhere_is_noticed_where_it_is_used(void **state)
{
    (void)state;
    header.rows[3][0] += 0x10;
    open_table();
    assert_null(unwind_table_find(&table, start_of(3)));
    assert_non_null(unwind_table_find(&table, start_of(3) + 0x10));
    for (size_t i = 0; i < FUNCTIONS; i++)
        assert_rule_of(i);
}

static void functions_that_it_does_not_have_are_found(void **state)
{
    (void)state;
    header.count = FUNCTIONS / 2;
    assert_all_rules_without_the_header();
}

static void more_rows_than_there_are_is_no_header(void **state)
{
    (void)state;
    static const uint32_t COUNTS[] = {0, FUNCTIONS + 1, UINT32_MAX};
    for (size_t i = 0; i < COUNT(COUNTS); i++) {
        header.count = COUNTS[i];
        assert_all_rules_without_the_header();
        tear_down(NULL);
        set_up(NULL);
    }
}

static void another_encoding_is_no_header(void **state)
{
    (void)state;
    static const uint8_t ENCODINGS[] = {0xff, 0x00, 0x1b, 0x3c, 0xbb};
    for (size_t i = 0; i < COUNT(ENCODINGS); i++) {
        header.table_encoding = ENCODINGS[i];
        assert_all_rules_without_the_header();
        tear_down(NULL);
        set_up(NULL);
    }
    header.count_encoding = 0xff;
    assert_all_rules_without_the_header();
}

/* Descriptions that lie in each other: the tail of one is that of the next. Their rows would take
 * more memory with each function than the file has. */
static void descriptions_in_each_other_do_not_fill_the_memory(void **state)
{
    (void)state;
    enum { NESTED = 5, HEAD = 25, TAIL = 1000 };
    cfi = (struct cfi_sample){0};
    cfi_sample_cie(&cfi, "zR");
    for (size_t i = 0; i < NESTED; i++) {
        uint64_t svma = start_of(i), size = 0x1000;
        uint32_t length = (uint32_t)((NESTED - 1 - i) * HEAD + HEAD - 4 + TAIL);
        header.rows[i][1] = EH_FRAME_AT + (int32_t)cfi.length - HEADER_AT;
        cfi_sample_u32(&cfi, length);
        cfi_sample_u32(&cfi, (uint32_t)(cfi.length - cfi.cie_offset));
        cfi_sample_put(&cfi, &svma, sizeof svma);
        cfi_sample_put(&cfi, &size, sizeof size);
        uint8_t heads = (uint8_t)((NESTED - 1 - i) * HEAD); /* of the others, to be passed over */
        cfi_sample_put(&cfi, &heads, 1);
    }
    for (size_t i = 0; i < TAIL / 4; i++)
        cfi_sample_put(&cfi, i % 2 ? "\x41\x0e\x10\x41" : "\x41\x0e\x18\x41", 4);
    header.count = NESTED;
    open_table();
    for (size_t i = 0; i < NESTED; i++)
        (void)unwind_table_find(&table, start_of(i));
    assert_true(table.sections[0].rows.count <= cfi.length);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_right_is_all_that_is_needed),
        cmocka_unit_test(descriptions_of_other_functions_are_not_taken),
        cmocka_unit_test(places_without_a_description_are_not_taken),
        cmocka_unit_test(places_outside_of_the_section_are_not_taken),
        cmocka_unit_test(starts_that_do_not_ascend_are_not_taken),
        cmocka_unit_test(two_descriptions_of_one_start_are_not_taken),
        cmocka_unit_test(a_start_elsewhere_is_noticed_where_it_is_used),
        cmocka_unit_test(functions_that_it_does_not_have_are_found),
        cmocka_unit_test(more_rows_than_there_are_is_no_header),
        cmocka_unit_test(another_encoding_is_no_header),
        cmocka_unit_test(descriptions_in_each_other_do_not_fill_the_memory),
    };
    struct CMUnitTest with_set_up[COUNT(tests)];
    for (size_t i = 0; i < COUNT(tests); i++) {
        with_set_up[i] = tests[i];
        with_set_up[i].setup_func = set_up;
        with_set_up[i].teardown_func = tear_down;
    }
    return cmocka_run_group_tests(with_set_up, NULL, NULL);
}
