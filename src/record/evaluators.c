#include "record/evaluators.h"

enum { SURE_AFTER = 4, MOST_FAILURES = 100 };

static bool is_in(const struct merge_range *ranges, size_t count, uint64_t avma, size_t *ret_number)
{
    for (size_t i = 0; i < count; i++) {
        if (avma >= ranges[i].start_avma && avma < ranges[i].end_avma) {
            *ret_number = i;
            return true;
        }
    }
    return false;
}

static struct merge_range in_process(struct cfi_range range, uint64_t bias)
{
    return (struct merge_range){.start_avma = range.start_svma + bias,
                                .end_avma = range.end_svma + bias};
}

static void add(struct evaluators *evaluators, struct merge_range range)
{
    size_t number;
    if (evaluators->count < EVALUATORS_MOST &&
        !is_in(evaluators->ranges, evaluators->count, range.start_avma, &number))
        evaluators->ranges[evaluators->count++] = range;
}

/* The function at an address of the process. */
static bool find_function(const struct process_maps *maps, uint64_t avma,
                          struct merge_range *ret_range)
{
    const struct process_mapping *mapping = process_maps_find(maps, avma);
    struct cfi_range range;
    if (!mapping || !mapping->file || !mapping->has_bias ||
        !code_file_function(mapping->file, avma - mapping->bias, &range))
        return false;
    *ret_range = in_process(range, mapping->bias);
    return true;
}

void evaluators_name(struct evaluators *evaluators, const struct process_maps *maps,
                     uint64_t start_avma)
{
    const struct process_mapping *mapping = process_maps_find(maps, start_avma);
    struct merge_range range;
    if (evaluators->is_named || !mapping || !mapping->file)
        return;
    evaluators->is_named = true;
    if (find_function(maps, start_avma, &range))
        add(evaluators, range);
    struct cfi_range parts[EVALUATORS_MOST];
    size_t count =
        code_file_parts(mapping->file, "_PyEval_EvalFrameDefault", parts, EVALUATORS_MOST);
    for (size_t i = 0; i < count && mapping->has_bias; i++)
        add(evaluators, in_process(parts[i], mapping->bias));
}

void evaluators_learn(struct evaluators *evaluators, const struct process_maps *maps,
                      uint64_t pc_avma)
{
    size_t number;
    struct merge_range range;
    if (is_in(evaluators->ranges, evaluators->count, pc_avma, &number))
        return;
    if (is_in(evaluators->candidates, evaluators->candidate_count, pc_avma, &number)) {
        if (++evaluators->hits[number] == SURE_AFTER)
            add(evaluators, evaluators->candidates[number]);
        return;
    }
    if (evaluators->candidate_count == EVALUATORS_MOST || evaluators->failures > MOST_FAILURES)
        return;
    if (!find_function(maps, pc_avma, &range)) {
        evaluators->failures++;
        return;
    }
    evaluators->candidates[evaluators->candidate_count] = range;
    evaluators->hits[evaluators->candidate_count++] = 1;
}
