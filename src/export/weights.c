#include "export/weights.h"

#include "profile/pairmap.h"

static int add(struct export_weights *weights, struct pairmap *known, uint32_t comm, uint32_t node,
               uint64_t weight)
{
    uint32_t row;
    if (!pairmap_get(known, comm, node, &row)) {
        struct export_weight_row new = {.comm = comm, .node = node};
        row = (uint32_t)weights->rows.count;
        if (vector_push(&weights->rows, new) < 0 || pairmap_set(known, comm, node, row) < 0)
            return -ENOMEM;
    }
    weights->rows.items[row].weight += weight;
    weights->rows.items[row].samples++;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct export_weight_row *left = a, *right = b;
    if (left->comm != right->comm)
        return left->comm < right->comm ? -1 : 1;
    return left->node < right->node ? -1 : left->node > right->node;
}

int export_weights_init(struct export_weights *weights, const struct export_view *view)
{
    *weights = (struct export_weights){0};
    struct pairmap known = {0};
    int result = 0;
    for (uint32_t i = 0; i < view->sample_count && result == 0; i++) {
        const struct profile_sample *sample = &view->profile->samples.items[view->samples[i]];
        result = add(weights, &known, sample->comm, view->node_of[sample->stack],
                     export_weight(view, sample));
    }
    pairmap_done(&known);
    if (result < 0)
        export_weights_done(weights);
    else if (weights->rows.count)
        qsort(weights->rows.items, weights->rows.count, sizeof *weights->rows.items, compare);
    return result;
}

void export_weights_done(struct export_weights *weights)
{
    vector_done(&weights->rows);
}
