/* pprof's format: a gzip'ed protocol buffer (https://github.com/google/pprof, proto/profile.proto).
 * Such a message is a sequence of fields, each a key (number and type), and a number or a length
 * with bytes, which may be a message again:
 *
 *     Profile
 *       1 sample_type  2 sample  3 mapping  4 location  5 function  6 string_table  9 time_nanos
 *       10 duration_nanos  11 period_type  12 period  13 comment  14 default_sample_type
 *     Sample: 1 location ids, innermost first  2 values  3 labels
 *     Location: 1 id  2 mapping  3 address  4 line (1 function  2 line)
 *
 * Fields of the Profile may come in any order, so everything is written as it is met, and the
 * texts, which all others name by number, at the end.
 *
 * Addresses are offsets in the file of the mapping, as if it were mapped at 0 from its beginning
 * on: a recording has many processes, and pprof only one space of addresses. */
#include "base/text.h"
#include "base/writer.h"
#include "export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { VARINT = 0, BYTES = 2 }; /* types of fields */
enum { NUMBER_BYTES = 10, SMALL_MESSAGE_BYTES = 256 };

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING_TABLE = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};

/* What a stack has in the thread at hand. */
struct sum {
    uint64_t samples;
    uint64_t weight;
};

struct pprof {
    const struct export_view *view;
    FILE *out;
    struct strings strings;
    int error;               /* of strings: sticky */
    bool *is_used;           /* per frame */
    struct sum *sums;        /* per stack */
    VECTOR(uint32_t) stacks; /* that have a sum */
    VECTOR(uint8_t) buffer;  /* for a sample */
};

/* --- messages -------------------------------------------------------------------------------- */

static void put_number(struct writer *message, unsigned field, uint64_t value)
{
    if (!value)
        return; /* is the default */
    writer_uleb(message, field << 3 | VARINT);
    writer_uleb(message, value);
}

static void put_bytes(struct writer *message, unsigned field, const struct writer *inner)
{
    writer_uleb(message, field << 3 | BYTES);
    writer_uleb(message, inner->length);
    writer_bytes(message, inner->data, inner->length);
}

static void write_head(struct pprof *pprof, unsigned field, unsigned type, uint64_t number)
{
    uint8_t bytes[2 * NUMBER_BYTES];
    struct writer head;
    writer_init(&head, bytes, sizeof bytes);
    writer_uleb(&head, field << 3 | type);
    writer_uleb(&head, number);
    fwrite(bytes, 1, head.length, pprof->out);
}

static void write_message(struct pprof *pprof, unsigned field, const struct writer *message)
{
    write_head(pprof, field, BYTES, message->length);
    fwrite(message->data, 1, message->length, pprof->out);
}

static uint64_t text_id(struct pprof *pprof, const char *bytes, size_t length)
{
    uint32_t id = 0;
    if (strings_intern(&pprof->strings, bytes, length, &id) < 0)
        pprof->error = -ENOMEM;
    return id;
}

static uint64_t text(struct pprof *pprof, const char *words)
{
    return text_id(pprof, words, strlen(words));
}

/* --- samples --------------------------------------------------------------------------------- */

/* "cpu" and "nanoseconds", or the event's own name and "count". */
static const char *type_of(const struct export_view *view)
{
    const char *event = export_event_name(view);
    if (view->unit != EXPORT_NANOSECONDS)
        return event;
    return strncmp(event, "wall", 4) == 0 ? "wall" : "cpu";
}

static void write_type(struct pprof *pprof, unsigned field, const char *type, const char *unit)
{
    uint8_t bytes[SMALL_MESSAGE_BYTES];
    struct writer message;
    writer_init(&message, bytes, sizeof bytes);
    put_number(&message, 1, text(pprof, type));
    put_number(&message, 2, text(pprof, unit));
    write_message(pprof, field, &message);
}

static void put_label(struct pprof *pprof, struct writer *message, const char *key, uint64_t string,
                      uint64_t number)
{
    uint8_t bytes[SMALL_MESSAGE_BYTES];
    struct writer label;
    writer_init(&label, bytes, sizeof bytes);
    put_number(&label, 1, text(pprof, key));
    put_number(&label, 2, string);
    put_number(&label, 3, number);
    put_bytes(message, 3, &label);
}

static void put_labels(struct pprof *pprof, struct writer *message, uint32_t number)
{
    const struct profile *profile = pprof->view->profile;
    const struct profile_thread *thread = &profile->threads.items[number];
    struct strings_text name = strings_get(&profile->strings, thread->comm);
    put_label(pprof, message, "pid", 0,
              (uint64_t)(int64_t)profile->processes.items[thread->process].pid);
    put_label(pprof, message, "tid", 0, (uint64_t)(int64_t)thread->tid);
    put_label(pprof, message, "thread", text_id(pprof, name.bytes, name.length), 0);
}

/* Numbers in a row: their length is known only behind them, so they are written twice. */
static void put_locations(struct writer *message, const struct profile_stack *stacks,
                          uint32_t stack)
{
    struct writer measure;
    writer_init(&measure, NULL, 0);
    for (uint32_t s = stack; s != PROFILE_ROOT; s = stacks[s].parent)
        writer_uleb(&measure, (uint64_t)stacks[s].frame + 1);
    writer_uleb(message, 1 << 3 | BYTES);
    writer_uleb(message, measure.length);
    for (uint32_t s = stack; s != PROFILE_ROOT; s = stacks[s].parent)
        writer_uleb(message, (uint64_t)stacks[s].frame + 1);
}

static int write_sample(struct pprof *pprof, const struct profile_stack *stacks, uint32_t stack,
                        uint32_t thread)
{
    size_t most = (size_t)NUMBER_BYTES * stacks[stack].depth + 4 * (size_t)SMALL_MESSAGE_BYTES;
    if (vector_reserve(&pprof->buffer, most) < 0)
        return -ENOMEM;
    for (uint32_t s = stack; s != PROFILE_ROOT; s = stacks[s].parent)
        pprof->is_used[stacks[s].frame] = true;
    uint8_t bytes[2 * NUMBER_BYTES];
    struct writer message, values;
    writer_init(&message, pprof->buffer.items, pprof->buffer.capacity);
    writer_init(&values, bytes, sizeof bytes);
    put_locations(&message, stacks, stack);
    writer_uleb(&values, pprof->sums[stack].samples);
    writer_uleb(&values, pprof->sums[stack].weight);
    put_bytes(&message, 2, &values);
    put_labels(pprof, &message, thread);
    write_message(pprof, PROFILE_SAMPLE, &message);
    return 0;
}

static int write_thread(struct pprof *pprof, uint32_t thread)
{
    const struct export_view *view = pprof->view;
    const struct profile_stack *stacks = NULL;
    pprof->stacks.count = 0;
    for (uint32_t i = view->first_of_thread[thread]; i < view->first_of_thread[thread + 1]; i++) {
        const struct profile_sample *sample = &view->profile->samples.items[view->samples[i]];
        uint32_t stack = export_stack(view, sample, &stacks);
        struct sum *sum = &pprof->sums[stack];
        if (!sum->samples && vector_push(&pprof->stacks, stack) < 0)
            return -ENOMEM;
        sum->samples++;
        sum->weight += sample->period;
    }
    for (size_t i = 0; i < pprof->stacks.count; i++) {
        uint32_t stack = pprof->stacks.items[i];
        if (write_sample(pprof, stacks, stack, thread) < 0)
            return -ENOMEM;
        pprof->sums[stack] = (struct sum){0};
    }
    return 0;
}

/* --- what samples refer to ------------------------------------------------------------------- */

static uint64_t address_of(const struct profile *profile, const struct profile_frame *frame)
{
    return profile->functions.items[frame->function].start + frame->offset;
}

/* Limits of the addresses in use, per module. */
static int write_mappings(struct pprof *pprof)
{
    const struct profile *profile = pprof->view->profile;
    struct limits {
        uint64_t end;
        bool has_lines;
    } *limits = calloc(profile->modules.count + 1, sizeof *limits);
    if (!limits)
        return -ENOMEM;
    for (size_t i = 0; i < profile->frames.count; i++) {
        const struct profile_frame *frame = &profile->frames.items[i];
        struct limits *own = &limits[profile->functions.items[frame->function].module];
        uint64_t address = address_of(profile, frame);
        if (pprof->is_used[i] && address >= own->end)
            own->end = address == UINT64_MAX ? address : address + 1;
        own->has_lines |= frame->line > 0;
    }
    for (size_t i = 0; i < profile->modules.count; i++) {
        const struct profile_module *module = &profile->modules.items[i];
        if (!limits[i].end)
            continue;
        char build_id[2 * sizeof module->build_id + 1] = "";
        for (size_t n = 0; n < module->build_id_size && n < sizeof module->build_id; n++)
            sprintf(build_id + 2 * n, "%02x", module->build_id[n]);
        struct strings_text path = strings_get(&profile->strings, module->path);
        uint8_t bytes[SMALL_MESSAGE_BYTES];
        struct writer message;
        writer_init(&message, bytes, sizeof bytes);
        put_number(&message, 1, i + 1);
        put_number(&message, 3, limits[i].end);
        put_number(&message, 5, text_id(pprof, path.bytes, path.length));
        put_number(&message, 6, text(pprof, build_id));
        put_number(&message, 7, module->has_symbols || module->kind == PROFILE_MODULE_PYTHON);
        put_number(&message, 8, module->kind == PROFILE_MODULE_PYTHON);
        put_number(&message, 9, limits[i].has_lines);
        write_message(pprof, PROFILE_MAPPING, &message);
    }
    free(limits);
    return 0;
}

static void write_location(struct pprof *pprof, uint32_t number)
{
    const struct profile *profile = pprof->view->profile;
    const struct profile_frame *frame = &profile->frames.items[number];
    const struct profile_function *function = &profile->functions.items[frame->function];
    uint8_t bytes[SMALL_MESSAGE_BYTES], line_bytes[SMALL_MESSAGE_BYTES];
    struct writer message, line;
    writer_init(&message, bytes, sizeof bytes);
    put_number(&message, 1, (uint64_t)number + 1);
    put_number(&message, 2, (uint64_t)function->module + 1);
    put_number(&message, 3, address_of(profile, frame));
    if (function->kind != PROFILE_FUNCTION_UNRESOLVED) {
        writer_init(&line, line_bytes, sizeof line_bytes);
        put_number(&line, 1, (uint64_t)pprof->view->names.of_function[frame->function] + 1);
        put_number(&line, 2, frame->line);
        put_bytes(&message, 4, &line);
    }
    write_message(pprof, PROFILE_LOCATION, &message);
}

static void write_function(struct pprof *pprof, uint32_t number)
{
    const struct export_name *name = &pprof->view->names.items.items[number];
    uint8_t bytes[SMALL_MESSAGE_BYTES];
    struct writer message;
    writer_init(&message, bytes, sizeof bytes);
    put_number(&message, 1, (uint64_t)number + 1);
    put_number(&message, 2, text_id(pprof, name->name.bytes, name->name.length));
    put_number(&message, 3, text_id(pprof, name->symbol.bytes, name->symbol.length));
    put_number(&message, 4, text_id(pprof, name->file.bytes, name->file.length));
    put_number(&message, 5, name->line);
    write_message(pprof, PROFILE_FUNCTION, &message);
}

static int write_tables(struct pprof *pprof)
{
    const struct profile *profile = pprof->view->profile;
    bool *is_used = calloc(pprof->view->names.items.count + 1, sizeof *is_used);
    if (!is_used || write_mappings(pprof) < 0) {
        free(is_used);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->frames.count; i++)
        if (pprof->is_used[i]) {
            uint32_t function = profile->frames.items[i].function;
            is_used[pprof->view->names.of_function[function]] |=
                profile->functions.items[function].kind != PROFILE_FUNCTION_UNRESOLVED;
            write_location(pprof, i);
        }
    for (uint32_t i = 0; i < pprof->view->names.items.count; i++)
        if (is_used[i])
            write_function(pprof, i);
    free(is_used);
    return 0;
}

/* Strings of the format are UTF-8: what is not becomes U+FFFD. */
static void write_strings(struct pprof *pprof)
{
    for (uint32_t i = 0; i < pprof->strings.texts.count; i++) {
        struct strings_text from = strings_get(&pprof->strings, i);
        size_t length = 0;
        for (size_t n = 0, size; n < from.length; n += size ? size : 1) {
            size = text_utf8_length(from.bytes + n, from.length - n);
            length += size ? size : strlen("\357\277\275");
        }
        write_head(pprof, PROFILE_STRING_TABLE, BYTES, length);
        for (size_t n = 0, size; n < from.length; n += size ? size : 1) {
            size = text_utf8_length(from.bytes + n, from.length - n);
            if (size)
                fwrite(from.bytes + n, 1, size, pprof->out);
            else
                fputs("\357\277\275", pprof->out);
        }
    }
}

static void write_period(struct pprof *pprof, const char *type, const char *unit)
{
    const struct export_view *view = pprof->view;
    if (view->settings.event >= view->profile->events.count)
        return;
    const struct profile_event *event = &view->profile->events.items[view->settings.event];
    uint64_t period = event->period;
    if (event->frequency_hz && view->unit == EXPORT_NANOSECONDS)
        period = 1000000000 / event->frequency_hz;
    write_type(pprof, PROFILE_PERIOD_TYPE, type, unit);
    if (period)
        write_head(pprof, PROFILE_PERIOD, VARINT, period);
}

static int write_profile(struct pprof *pprof)
{
    const struct export_view *view = pprof->view;
    const char *type = type_of(view);
    const char *unit = view->unit == EXPORT_NANOSECONDS ? "nanoseconds" : "count";
    write_type(pprof, PROFILE_SAMPLE_TYPE, "samples", "count");
    write_type(pprof, PROFILE_SAMPLE_TYPE, type, unit);
    write_period(pprof, type, unit);
    if (export_wall_ns(view))
        write_head(pprof, PROFILE_TIME_NANOS, VARINT, export_wall_ns(view));
    write_head(pprof, PROFILE_DURATION_NANOS, VARINT, view->last_ns - view->first_ns);
    write_head(pprof, PROFILE_COMMENT, VARINT, text(pprof, "pitviper " PITVIPER_VERSION));
    write_head(pprof, PROFILE_DEFAULT_SAMPLE_TYPE, VARINT, text(pprof, type));
    int result = 0;
    for (uint32_t i = 0; i < view->profile->threads.count && result == 0; i++)
        result = write_thread(pprof, i);
    if (result == 0)
        result = write_tables(pprof);
    write_strings(pprof);
    return result < 0 ? result : pprof->error;
}

int export_pprof(const struct export_view *view, FILE *out)
{
    struct pprof pprof = {.view = view, .out = out};
    size_t stacks = view->settings.fold ? view->fold.stacks.count : view->profile->stacks.count;
    if (strings_init(&pprof.strings) < 0)
        return -ENOMEM;
    pprof.is_used = calloc(view->profile->frames.count + 1, sizeof *pprof.is_used);
    pprof.sums = calloc(stacks + 1, sizeof *pprof.sums);
    int result = pprof.is_used && pprof.sums ? write_profile(&pprof) : -ENOMEM;
    free(pprof.is_used);
    free(pprof.sums);
    vector_done(&pprof.stacks);
    vector_done(&pprof.buffer);
    strings_done(&pprof.strings);
    return result;
}
