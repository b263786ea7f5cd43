/* Folded stacks, the input of flamegraph.pl, inferno, speedscope and many others:
 *
 *     python3;_start;main;py::work:/app.py;read 1250000
 *
 * a line per stack: the name of the command, the functions from the outermost on, and what it
 * weighs. Names are perf's own, so that they equal what `perf script` and a collapsing script give.
 * `;` and what would break a line are part of a name only as \x3b, \x0a. */
#include "base/text.h"
#include "export/export.h"
#include "export/weights.h"

#include <inttypes.h>
#include <string.h>

struct folded {
    const struct export_view *view;
    FILE *out;
    struct arena arena;
    struct strings_text *labels; /* per name: safe to write; made when first needed */
    VECTOR(uint32_t) path;       /* nodes, innermost first */
};

enum { ESCAPED_BYTES = 4 };

/* A name of any bytes, as text without `;`, line breaks and other control characters. */
static int make_safe(struct arena *arena, struct strings_text text, struct strings_text *ret_text)
{
    char *safe = arena_alloc(arena, text.length * ESCAPED_BYTES + 1);
    if (!safe)
        return -ENOMEM;
    size_t length = 0;
    for (size_t i = 0; i < text.length;) {
        size_t size = text_utf8_length(text.bytes + i, text.length - i);
        unsigned char first = (unsigned char)text.bytes[i];
        if (!size || first < ' ' || first == 0x7f || first == ';') {
            length += (size_t)sprintf(safe + length, "\\x%02x", first);
            size = 1;
        } else {
            memcpy(safe + length, text.bytes + i, size);
            length += size;
        }
        i += size;
    }
    *ret_text = (struct strings_text){safe, length};
    return 0;
}

static int label_of(struct folded *folded, uint32_t name, struct strings_text *ret_text)
{
    struct strings_text *label = &folded->labels[name];
    if (!label->bytes &&
        make_safe(&folded->arena, folded->view->names.items.items[name].symbol, label) < 0)
        return -ENOMEM;
    *ret_text = *label;
    return 0;
}

static int write_frames(struct folded *folded, uint32_t node)
{
    const struct export_node *nodes = folded->view->nodes.items;
    folded->path.count = 0;
    for (; node; node = nodes[node].parent)
        if (vector_push(&folded->path, node) < 0)
            return -ENOMEM;
    for (size_t i = folded->path.count; i-- > 0;) {
        const struct export_node *frame = &nodes[folded->path.items[i]];
        struct strings_text label;
        if (label_of(folded, frame->name, &label) < 0)
            return -ENOMEM;
        putc_unlocked(';', folded->out);
        fwrite_unlocked(label.bytes, 1, label.length, folded->out);
        if (frame->line)
            fprintf(folded->out, ":%" PRIu32, frame->line);
    }
    return 0;
}

static int write_rows(struct folded *folded, const struct export_weights *weights)
{
    const struct profile *profile = folded->view->profile;
    struct strings_text comm = {0};
    uint32_t last = PROFILE_NONE;
    for (size_t i = 0; i < weights->rows.count; i++) {
        const struct export_weight_row *row = &weights->rows.items[i];
        if (row->comm != last &&
            make_safe(&folded->arena, strings_get(&profile->strings, row->comm), &comm) < 0)
            return -ENOMEM;
        last = row->comm;
        fwrite_unlocked(comm.bytes, 1, comm.length, folded->out);
        if (write_frames(folded, row->node) < 0)
            return -ENOMEM;
        fprintf(folded->out, " %" PRIu64 "\n", row->weight);
    }
    return 0;
}

int export_folded(const struct export_view *view, FILE *out)
{
    struct folded folded = {.view = view, .out = out};
    struct export_weights weights;
    if (export_weights_init(&weights, view) < 0)
        return -ENOMEM;
    folded.labels = calloc(view->names.items.count + 1, sizeof *folded.labels);
    int result = folded.labels ? write_rows(&folded, &weights) : -ENOMEM;
    export_weights_done(&weights);
    free(folded.labels);
    vector_done(&folded.path);
    arena_done(&folded.arena);
    return result;
}
