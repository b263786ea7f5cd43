/* One row per column in the table below. Texts, widths and order are perf's:
 *
 *     # Overhead       Samples  Command  Shared Object         Symbol
 *         19.91%           222  python3  libpython3.12.so.1.0  [.] _PyObject_Free
 *                               ------   --------------------  ------------------  keys
 *
 * Equal percentages are ordered by the texts of the keys, functions without a name by address. */
#include "report/columns.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct profile_sample *sample_of(const struct column_source *source)
{
    return &source->profile->samples.items[source->sample];
}

static const struct profile_function *function_of(const struct profile *profile, uint32_t frame)
{
    return &profile->functions.items[profile->frames.items[frame].function];
}

static void set_text(const struct profile *profile, uint32_t string, struct column_cell *cell)
{
    struct strings_text text = strings_get(&profile->strings, string);
    cell->text = text.bytes;
    cell->length = text.length;
}

static int compare_strings(const struct column_source *a, const struct column_source *b,
                           uint32_t string_a, uint32_t string_b)
{
    if (string_a == string_b)
        return 0;
    return strcmp(profile_text(a->profile, string_a), profile_text(b->profile, string_b));
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* --- of samples ---------------------------------------------------------------------------- */

static uint64_t comm_of_sample(const struct profile *profile, const struct profile_sample *sample)
{
    (void)profile;
    return sample->comm;
}

static void comm_cell(const struct column_source *source, struct column_cell *cell)
{
    set_text(source->profile, sample_of(source)->comm, cell);
}

/* perf makes the column as wide as the names that the threads of the rows had at last, and cuts
 * earlier ones: "perf-exec" becomes "perf-ex" in a table of "python3". */
static void last_comm_cell(const struct column_source *source, struct column_cell *cell)
{
    const struct profile *profile = source->profile;
    set_text(profile, profile->threads.items[sample_of(source)->thread].comm, cell);
}

static int comm_compare(const struct column_source *a, const struct column_source *b)
{
    return compare_strings(a, b, sample_of(a)->comm, sample_of(b)->comm);
}

/* The number of the thread, with any name that it had: perf calls that pid. */
static uint64_t tid_of_sample(const struct profile *profile, const struct profile_sample *sample)
{
    return (uint32_t)profile->threads.items[sample->thread].tid;
}

static void number_and_comm(const struct column_source *source, int32_t number, uint32_t comm,
                            struct column_cell *cell)
{
    snprintf(cell->lead, sizeof cell->lead, "%7" PRId32 ":", number);
    set_text(source->profile, comm, cell);
}

static void tid_cell(const struct column_source *source, struct column_cell *cell)
{
    const struct profile_thread *thread =
        &source->profile->threads.items[sample_of(source)->thread];
    number_and_comm(source, thread->tid, thread->comm, cell);
}

static int tid_compare(const struct column_source *a, const struct column_source *b)
{
    return compare_numbers(tid_of_sample(a->profile, sample_of(a)),
                           tid_of_sample(b->profile, sample_of(b)));
}

static uint64_t cpu_of_sample(const struct profile *profile, const struct profile_sample *sample)
{
    (void)profile;
    return sample->cpu;
}

static void cpu_cell(const struct column_source *source, struct column_cell *cell)
{
    snprintf(cell->lead, sizeof cell->lead, "%.3" PRId32, (int32_t)sample_of(source)->cpu);
}

static int cpu_compare(const struct column_source *a, const struct column_source *b)
{
    return compare_numbers(sample_of(a)->cpu, sample_of(b)->cpu);
}

/* --- of frames ----------------------------------------------------------------------------- */

static const struct profile_module *module_of(const struct profile *profile, uint32_t frame)
{
    uint32_t module = frame == PROFILE_NONE ? 0 : function_of(profile, frame)->module;
    return &profile->modules.items[module];
}

static uint64_t dso_of_frame(const struct profile *profile, uint32_t frame)
{
    return module_of(profile, frame)->name;
}

static void dso_cell(const struct column_source *source, struct column_cell *cell)
{
    set_text(source->profile, module_of(source->profile, source->frame)->name, cell);
}

static int dso_compare(const struct column_source *a, const struct column_source *b)
{
    bool left_known = module_of(a->profile, a->frame) != a->profile->modules.items;
    bool right_known = module_of(b->profile, b->frame) != b->profile->modules.items;
    if (left_known != right_known)
        return right_known - left_known; /* "[unknown]" comes last */
    return compare_strings(a, b, module_of(a->profile, a->frame)->name,
                           module_of(b->profile, b->frame)->name);
}

static uint64_t symbol_of_frame(const struct profile *profile, uint32_t frame)
{
    return frame == PROFILE_NONE ? PROFILE_NONE : profile->frames.items[frame].function;
}

/* As %#018lx, but zero has no prefix: "0x00007f0c06e75520", "0000000000000000". */
static void print_address(char *out, size_t size, uint64_t address)
{
    snprintf(out, size, "%s%016" PRIx64, address ? "0x" : "", address);
}

void column_symbol_cell(const struct profile *profile, uint32_t frame, struct column_cell *cell)
{
    const struct profile_function *function = function_of(profile, frame);
    set_text(profile, function->name, cell);
    if (function->is_inlined)
        snprintf(cell->tail, sizeof cell->tail, " (inlined)");
}

static void symbol_cell(const struct column_source *source, struct column_cell *cell)
{
    int length = snprintf(cell->lead, sizeof cell->lead, "[%c] ", source->level);
    char *rest = cell->lead + length;
    size_t room = sizeof cell->lead - (size_t)length;
    if (source->frame == PROFILE_NONE) {
        print_address(rest, room, 0);
        return;
    }
    const struct profile_function *function = function_of(source->profile, source->frame);
    if (function->kind == PROFILE_FUNCTION_UNRESOLVED)
        print_address(rest, room, function->start);
    else
        column_symbol_cell(source->profile, source->frame, cell);
}

/* perf takes addresses for signed numbers. */
static int compare_addresses(uint64_t a, uint64_t b)
{
    return (int64_t)a < (int64_t)b ? -1 : a != b;
}

/* Functions with a name before those without; then by `by_name` or by their start. */
static int compare_functions(const struct column_source *a, const struct column_source *b,
                             bool by_name)
{
    if (a->frame == PROFILE_NONE || b->frame == PROFILE_NONE)
        return (a->frame == PROFILE_NONE) - (b->frame == PROFILE_NONE);
    const struct profile_function *left = function_of(a->profile, a->frame);
    const struct profile_function *right = function_of(b->profile, b->frame);
    bool left_named = left->kind != PROFILE_FUNCTION_UNRESOLVED;
    bool right_named = right->kind != PROFILE_FUNCTION_UNRESOLVED;
    if (left_named != right_named)
        return right_named - left_named;
    int result = by_name ? compare_strings(a, b, left->name, right->name) : 0;
    return result ? result : compare_addresses(left->start, right->start);
}

static int symbol_compare(const struct column_source *a, const struct column_source *b)
{
    return compare_functions(a, b, true);
}

static int symbol_arrange(const struct column_source *a, const struct column_source *b)
{
    return compare_functions(a, b, false);
}

/* A source line as an identity: file and line, or where no line is known the address, which is
 * what reports show in its place. */
static uint64_t srcline_of_frame(const struct profile *profile, uint32_t frame)
{
    if (frame == PROFILE_NONE)
        return PROFILE_NONE;
    const struct profile_frame *place = &profile->frames.items[frame];
    if (!place->line)
        return UINT64_C(1) << 63 | (uint64_t)place->function << 31 | (place->offset & INT32_MAX);
    return (uint64_t)place->file << 32 | place->line;
}

static void srcfile_cell(const struct column_source *source, struct column_cell *cell)
{
    const struct profile_frame *place =
        source->frame == PROFILE_NONE ? NULL : &source->profile->frames.items[source->frame];
    cell->text =
        place && place->line ? text_base_name(profile_text(source->profile, place->file)) : "";
    cell->length = strlen(cell->text);
}

/* Where no line is known: a place in the function, or failing that in the module. */
static void srcline_cell(const struct column_source *source, struct column_cell *cell)
{
    const struct profile *profile = source->profile;
    if (source->frame == PROFILE_NONE) {
        cell->text = "??:0";
        cell->length = strlen(cell->text);
        return;
    }
    const struct profile_frame *place = &profile->frames.items[source->frame];
    const struct profile_function *function = function_of(profile, source->frame);
    if (place->line) {
        srcfile_cell(source, cell);
        snprintf(cell->tail, sizeof cell->tail, ":%" PRIu32, place->line);
    } else if (function->kind != PROFILE_FUNCTION_UNRESOLVED) {
        set_text(profile, function->name, cell);
        snprintf(cell->tail, sizeof cell->tail, "+%" PRIu32, place->offset);
    } else {
        set_text(profile, profile->modules.items[function->module].name, cell);
        snprintf(cell->tail, sizeof cell->tail, "[%" PRIx64 "]", function->start);
    }
}

static int srcline_compare(const struct column_source *a, const struct column_source *b)
{
    struct column_cell left = {0}, right = {0};
    srcline_cell(a, &left);
    srcline_cell(b, &right);
    int result = strcmp(left.text, right.text);
    return result ? result : strcmp(left.tail, right.tail);
}

static uint64_t srcfile_of_frame(const struct profile *profile, uint32_t frame)
{
    return frame == PROFILE_NONE ? 0 : profile->frames.items[frame].file;
}

static int srcfile_compare(const struct column_source *a, const struct column_source *b)
{
    struct column_cell left = {0}, right = {0};
    srcfile_cell(a, &left);
    srcfile_cell(b, &right);
    return strcmp(left.text, right.text);
}

/* --- the table ----------------------------------------------------------------------------- */

const struct column column_comm = {.name = "comm",
                                   .header = "Command",
                                   .filter = "comm",
                                   .pads = true,
                                   .of_sample = comm_of_sample,
                                   .cell = comm_cell,
                                   .measure = last_comm_cell,
                                   .compare = comm_compare};
const struct column column_dso = {.name = "dso",
                                  .header = "Shared Object",
                                  .filter = "dso",
                                  .pads = true,
                                  .of_frame = dso_of_frame,
                                  .cell = dso_cell,
                                  .compare = dso_compare};
const struct column column_symbol = {.name = "symbol",
                                     .alias = "sym",
                                     .header = "Symbol",
                                     .filter = "symbol",
                                     .of_frame = symbol_of_frame,
                                     .cell = symbol_cell,
                                     .compare = symbol_compare,
                                     .arrange = symbol_arrange};
static const struct column column_pid = {.name = "pid",
                                         .header = "    Pid:Command",
                                         .filter = "pid",
                                         .pads = true,
                                         .of_sample = tid_of_sample,
                                         .cell = tid_cell,
                                         .compare = tid_compare};
static const struct column column_tid = {.name = "tid",
                                         .header = "    Tid:Command",
                                         .filter = "tid",
                                         .pads = true,
                                         .of_sample = tid_of_sample,
                                         .cell = tid_cell,
                                         .compare = tid_compare};
static const struct column column_cpu = {.name = "cpu",
                                         .header = "CPU",
                                         .filter = "cpu",
                                         .pads = true,
                                         .of_sample = cpu_of_sample,
                                         .cell = cpu_cell,
                                         .compare = cpu_compare};
static const struct column column_srcline = {.name = "srcline",
                                             .header = "Source:Line",
                                             .filter = "srcline",
                                             .of_frame = srcline_of_frame,
                                             .cell = srcline_cell,
                                             .compare = srcline_compare};
static const struct column column_srcfile = {.name = "srcfile",
                                             .header = "Source File",
                                             .filter = "srcfile",
                                             .of_frame = srcfile_of_frame,
                                             .cell = srcfile_cell,
                                             .compare = srcfile_compare};

static const struct column *const columns[] = {&column_pid,     &column_tid,     &column_comm,
                                               &column_dso,     &column_symbol,  &column_cpu,
                                               &column_srcline, &column_srcfile, NULL};

const char *const column_names[] = {"pid", "tid",     "comm",    "dso",    "symbol",   "sym",
                                    "cpu", "srcline", "srcfile", "sample", "overhead", NULL};

const struct column *column_find(const char *name, size_t length)
{
    for (const struct column *const *column = columns; *column; column++)
        if ((strlen((*column)->name) == length && memcmp((*column)->name, name, length) == 0) ||
            ((*column)->alias && strlen((*column)->alias) == length &&
             memcmp((*column)->alias, name, length) == 0))
            return *column;
    return NULL;
}

size_t column_cell_width(const struct column_cell *cell)
{
    return strlen(cell->lead) + cell->length + strlen(cell->tail);
}
