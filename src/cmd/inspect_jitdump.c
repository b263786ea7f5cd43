/* What `pitviper inspect` says about a jitdump file. */
#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/inspect.h"
#include "formats/jitdump_index.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *text;
    const char *json;
} TYPE_NAMES[JITDUMP_TYPES] = {
    [JITDUMP_LOAD] = {"LOAD", "load"},
    [JITDUMP_MOVE] = {"MOVE", "move"},
    [JITDUMP_DEBUG_INFO] = {"DEBUG_INFO", "debug_info"},
    [JITDUMP_CLOSE] = {"CLOSE", "close"},
    [JITDUMP_UNWINDING_INFO] = {"UNWINDING_INFO", "unwinding_info"},
};

struct totals {
    uint64_t lowest;  /* avma */
    uint64_t highest; /* avma behind the last byte */
    uint64_t code_bytes;
    size_t with_lines;
    size_t with_unwinding;
};

static struct totals count_codes(const struct jitdump_index *dump)
{
    struct totals totals = {.lowest = UINT64_MAX};
    for (size_t i = 0; i < dump->codes.count; i++) {
        const struct jitdump_code *code = &dump->codes.items[i];
        uint64_t end = code->load.code_avma + code->load.code_size;
        if (code->load.code_avma < totals.lowest)
            totals.lowest = code->load.code_avma;
        if (end > totals.highest)
            totals.highest = end;
        if (!checked_add_u64(totals.code_bytes, code->load.code_size, &totals.code_bytes))
            totals.code_bytes = UINT64_MAX;
        totals.with_lines += code->debug.count > 0;
        totals.with_unwinding += code->unwinding.size > 0;
    }
    return totals;
}

static const char *machine_name(uint32_t elf_machine)
{
    switch (elf_machine) {
    case EM_NONE:
        return "unspecified"; /* CPython 3.13.0 leaves it out */
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "aarch64";
    case EM_386:
        return "i386";
    case EM_ARM:
        return "arm";
    case EM_PPC64:
        return "ppc64";
    case EM_S390:
        return "s390";
    case EM_RISCV:
        return "riscv";
    default:
        return NULL;
    }
}

static void print_header(const struct jitdump_index *dump)
{
    const char *machine = machine_name(dump->header.elf_machine);
    inspect_label("written by");
    printf("process %" PRIu32 ", ", dump->header.pid);
    if (machine)
        printf("%s code", machine);
    else
        printf("code for ELF machine %" PRIu32, dump->header.elf_machine);
    printf("%s, %s clock\n", dump->swapped ? ", the other byte order" : "",
           dump->header.flags & JITDUMP_ARCH_TIMESTAMP ? "processor" : "monotonic");
}

static void print_records(const struct jitdump_index *dump)
{
    const char *separator = "";
    char number[TEXT_NUMBER_BYTES];
    inspect_label("records");
    for (int type = 0; type < JITDUMP_TYPES; type++) {
        if (!dump->records[type])
            continue;
        printf("%s%s %s", separator, text_number(dump->records[type], number),
               TYPE_NAMES[type].text);
        separator = ", ";
    }
    if (dump->unknown_records)
        printf("%s%s of unknown type", separator, text_number(dump->unknown_records, number));
    else if (!*separator)
        printf("none");
    putchar('\n');
}

static void print_code(const char *label, const struct jitdump_index *dump, size_t index)
{
    const struct jitdump_code *code = &dump->codes.items[index];
    uint64_t since_ns = code->timestamp - dump->first_timestamp;
    inspect_label(label);
    printf("%" PRIx64 " +%" PRIx64 "  at %.3f ms  ", code->load.code_avma, code->load.code_size,
           (double)since_ns / 1e6);
    text_print(stdout, code->load.name, code->load.name_length, INSPECT_NAME_LIMIT);
    putchar('\n');
}

static void print_text(const struct jitdump_index *dump, const struct totals *totals)
{
    char number[TEXT_NUMBER_BYTES];
    print_header(dump);
    print_records(dump);
    if (dump->lost_moves) {
        inspect_label("");
        inspect_count(dump->lost_moves, "MOVE", "MOVEs");
        puts(" of code that was never loaded");
    }
    inspect_label("time");
    printf("%.3f ms from the first record to the last\n",
           (double)(dump->last_timestamp - dump->first_timestamp) / 1e6);
    if (!dump->codes.count)
        return;
    inspect_label("functions");
    printf("%s, ", text_number(dump->codes.count, number));
    printf("%s with lines, ", text_number(totals->with_lines, number));
    printf("%s with unwinding data\n", text_number(totals->with_unwinding, number));
    inspect_label("addresses");
    printf("%" PRIx64 " to %" PRIx64 ", %s bytes of code\n", totals->lowest, totals->highest,
           text_number(totals->code_bytes, number));
    inspect_label("overlapping");
    printf("%s (told apart by their time)\n", text_number(dump->ranges.overlap_count, number));
    print_code("first", dump, 0);
    print_code("last", dump, dump->codes.count - 1);
}

static void json_code(struct json *json, const char *key, const struct jitdump_code *code)
{
    json_begin_object(json, key);
    json_address(json, "start", code->load.code_avma);
    json_number(json, "size", code->load.code_size);
    json_string(json, "name", code->load.name, code->load.name_length);
    json_number(json, "code_index", code->load.code_index);
    json_number(json, "timestamp", code->timestamp);
    json_end_object(json);
}

static void print_json(struct json *json, const struct jitdump_index *dump,
                       const struct totals *totals)
{
    json_number(json, "pid", dump->header.pid);
    json_number(json, "elf_machine", dump->header.elf_machine);
    json_bool(json, "byte_swapped", dump->swapped);
    json_text(json, "clock",
              dump->header.flags & JITDUMP_ARCH_TIMESTAMP ? "processor" : "monotonic");
    json_begin_object(json, "records");
    for (int type = 0; type < JITDUMP_TYPES; type++)
        json_number(json, TYPE_NAMES[type].json, dump->records[type]);
    json_number(json, "unknown", dump->unknown_records);
    json_end_object(json);
    json_number(json, "lost_moves", dump->lost_moves);
    json_number(json, "first_timestamp", dump->first_timestamp);
    json_number(json, "last_timestamp", dump->last_timestamp);
    json_number(json, "functions", dump->codes.count);
    json_number(json, "functions_with_lines", totals->with_lines);
    json_number(json, "functions_with_unwinding", totals->with_unwinding);
    json_number(json, "overlapping", dump->ranges.overlap_count);
    json_number(json, "code_bytes", totals->code_bytes);
    if (!dump->codes.count)
        return;
    json_address(json, "lowest", totals->lowest);
    json_address(json, "highest", totals->highest);
    json_code(json, "first", &dump->codes.items[0]);
    json_code(json, "last", &dump->codes.items[dump->codes.count - 1]);
}

int inspect_jitdump(const struct inspect *inspect)
{
    struct jitdump_index dump;
    const char *problem;
    if (jitdump_index_init(&dump, inspect->path, inspect->file.data, inspect->file.length,
                           &problem) < 0) {
        command_error(&cmd_inspect, "%s: %s", inspect->path, problem);
        return STATUS_FAILED;
    }
    struct totals totals = count_codes(&dump);
    struct json json;
    int status;
    if (inspect->json) {
        json_init(&json, stdout);
        json_begin_object(&json, NULL);
        json_text(&json, "file", inspect->path);
        json_text(&json, "format", "jitdump");
        json_number(&json, "bytes", inspect->file.length);
        print_json(&json, &dump, &totals);
        status = inspect_damage(inspect, &json, &dump.damage);
        json_end_object(&json);
    } else {
        inspect_title(inspect, "jitdump");
        print_text(&dump, &totals);
        status = inspect_damage(inspect, NULL, &dump.damage);
    }
    jitdump_index_done(&dump);
    return status;
}
