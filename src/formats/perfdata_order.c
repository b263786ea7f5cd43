/* The kernel writes records into one buffer per processor, and perf empties these one after the
 * other into the file:
 *
 *     cpu 0: 1 3 5 | cpu 1: 2 4 6 | ROUND | cpu 0: 7 9 | cpu 1: 5 8 | ROUND
 *
 * Each buffer is sorted; the file is not. FINISHED_ROUND says that every buffer has been emptied
 * once. While the second round is written, a buffer can only hold records that are newer than its
 * emptying in the first round, but maybe older than the newest of another buffer (the 5 above). So
 * at the end of a round everything up to the newest time of the round *before* is complete.
 *
 * What is queued consists of a few sorted runs, one for each buffer. Merging neighbours until one
 * is left takes n * log(runs) steps, is stable, and does nothing where all is sorted already. */
#include "formats/perfdata_order.h"

#include <string.h>

void perfdata_order_done(struct perfdata_order *order)
{
    vector_done(&order->queue);
    vector_done(&order->spare);
    vector_done(&order->runs);
}

void perfdata_order_clear(struct perfdata_order *order)
{
    order->queue.count = order->head = order->ready = 0;
    order->limit_ns = order->newest_ns = 0;
}

int perfdata_order_push(struct perfdata_order *order, struct perfdata_queued item)
{
    if (item.time_ns > order->newest_ns)
        order->newest_ns = item.time_ns;
    return vector_push(&order->queue, item);
}

/* Moves what is left to the start of the queue. */
static void compact(struct perfdata_order *order)
{
    size_t left = order->queue.count - order->head;
    if (order->head && left)
        memmove(order->queue.items, order->queue.items + order->head,
                left * sizeof *order->queue.items);
    order->queue.count = left;
    order->head = order->ready = 0;
}

/* Notes where the time goes back, and the end. */
static int find_runs(struct perfdata_order *order)
{
    const struct perfdata_queued *items = order->queue.items;
    order->runs.count = 0;
    if (vector_push(&order->runs, 0) < 0)
        return -ENOMEM;
    for (size_t i = 1; i < order->queue.count; i++)
        if (items[i].time_ns < items[i - 1].time_ns && vector_push(&order->runs, i) < 0)
            return -ENOMEM;
    return vector_push(&order->runs, order->queue.count);
}

/* Merges [start, middle) and [middle, end), each sorted, from `from` into `to`. */
static void merge(const struct perfdata_queued *from, struct perfdata_queued *to,
                  const size_t bounds[3])
{
    size_t left = bounds[0], right = bounds[1], out = bounds[0];
    while (left < bounds[1] && right < bounds[2])
        to[out++] = from[right].time_ns < from[left].time_ns ? from[right++] : from[left++];
    if (left < bounds[1])
        memcpy(to + out, from + left, (bounds[1] - left) * sizeof *to);
    else if (right < bounds[2])
        memcpy(to + out, from + right, (bounds[2] - right) * sizeof *to);
}

/* Merges each two neighbouring runs into the spare vector, and exchanges the vectors. */
static void merge_neighbours(struct perfdata_order *order)
{
    size_t *runs = order->runs.items;
    size_t run_count = order->runs.count - 1, kept = 0;
    for (size_t i = 0; i < run_count; i += 2) {
        size_t last = i + 2 <= run_count ? i + 2 : run_count;
        size_t bounds[3] = {runs[i], runs[i + 1], runs[last]};
        merge(order->queue.items, order->spare.items, bounds);
        runs[kept++] = bounds[0];
    }
    runs[kept++] = order->queue.count;
    order->runs.count = kept;
    struct perfdata_queued *items = order->queue.items;
    size_t capacity = order->queue.capacity;
    order->queue.items = order->spare.items;
    order->queue.capacity = order->spare.capacity;
    order->spare.items = items;
    order->spare.capacity = capacity;
}

static int sort(struct perfdata_order *order)
{
    if (!order->queue.count)
        return 0;
    if (find_runs(order) < 0)
        return -ENOMEM;
    if (order->runs.count > 2 && vector_reserve(&order->spare, order->queue.count) < 0)
        return -ENOMEM;
    while (order->runs.count > 2)
        merge_neighbours(order);
    return 0;
}

int perfdata_order_finish(struct perfdata_order *order, bool all)
{
    compact(order);
    if (sort(order) < 0)
        return -ENOMEM;
    uint64_t limit_ns = all ? UINT64_MAX : order->limit_ns;
    size_t low = 0, high = order->queue.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order->queue.items[middle].time_ns <= limit_ns)
            low = middle + 1;
        else
            high = middle;
    }
    order->ready = low;
    order->limit_ns = order->newest_ns;
    return 0;
}

bool perfdata_order_pop(struct perfdata_order *order, struct perfdata_queued *ret_item)
{
    if (order->head == order->ready)
        return false;
    *ret_item = order->queue.items[order->head++];
    return true;
}
