/* A flame graph as a picture: SVG without scripts, for pages, documents and mails. Details are in
 * the tooltip of each box; whoever wants to zoom takes `pitviper view`.
 *
 *     +--------------------+  everything, and the names of commands
 *     | python3            |
 *     +-----------------+--+
 *     | work            |     below them the functions, the widest to the left
 *     +--------+-----+--+
 *     | read   | f   |
 *     +--------+-----+
 *
 * It grows downward: what a page shows first is the wide part, not the tip of the deepest stack.
 * Boxes are as wide as their part of the weight. Those narrower than a fraction of a pixel are left
 * out, and so is all that is below them: nobody could see it, and files stay small. */
#include "base/text.h"
#include "export/export.h"
#include "export/weights.h"
#include "profile/pairmap.h"

#include <inttypes.h>
#include <string.h>

enum {
    WIDTH = 1200,
    MARGIN = 10,
    ROW = 17,
    HEAD = 62,
    FOOT = 10,
    TEXT_INDENT = 3,
    TOOLTIP_BYTES = 1000,
    NO_PLACE = EXPORT_PLACES, /* of the highest rows */
};
static const double LEAST_PIXELS = 0.25, BORDER_PIXELS = 3, CHARACTER_PIXELS = 6.65;

static const char STYLE[] =
    "svg{background:#fff;font:11px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    "text{fill:#111;white-space:pre}.h{font-size:16px}"
    ".b{stroke:#fff;stroke-width:.5}g:hover>rect{stroke:#000;stroke-width:1}"
    ".p0{fill:#ffd43b}.p1{fill:#8ce99a}.p2{fill:#a5d8ff}.p3{fill:#c5b9e8}.p4{fill:#ffa877}"
    ".p5{fill:#f783ac}.p6{fill:#b2dfc4}.p7{fill:#ced4da}.p8{fill:#e9ecef}";

struct box {
    uint32_t parent;
    uint32_t node; /* of the view; 0 for the two highest rows */
    uint32_t comm; /* string of the profile; PROFILE_NONE for the highest */
    uint32_t depth;
    uint64_t weight;
    double x;     /* pixels */
    double right; /* where the next box below this one begins */
};

struct svg {
    const struct export_view *view;
    FILE *out;
    VECTOR(struct box) boxes; /* parents first; 0 is everything */
    VECTOR(uint32_t) drawn;   /* those that are wide enough; callers first, the widest first */
    VECTOR(uint32_t) path;
    struct pairmap box_of; /* (comm, node) */
    uint32_t deepest;
};

/* --- text ------------------------------------------------------------------------------------ */

/* One character of any bytes as XML. Control characters can't be in XML at all, not even escaped:
 * they become \xNN; what is not UTF-8 and the two numbers that are no characters become U+FFFD. */
static size_t write_character(FILE *out, const char *bytes, size_t length)
{
    size_t size = text_utf8_length(bytes, length);
    unsigned char first = (unsigned char)bytes[0];
    if (size == 1 && (first < ' ' || first == 0x7f))
        fprintf(out, "\\x%02x", first);
    else if (!size || (size == 3 && memcmp(bytes, "\357\277\276", 2) == 0 &&
                       (unsigned char)bytes[2] >= 0xbe))
        fputs("\357\277\275", out);
    else if (first == '<')
        fputs("&lt;", out);
    else if (first == '>')
        fputs("&gt;", out);
    else if (first == '&')
        fputs("&amp;", out);
    else
        fwrite(bytes, 1, size, out);
    return size ? size : 1;
}

/* Columns that a character takes: most of those outside of the alphabets take two. */
static unsigned columns_of(const char *bytes, size_t length)
{
    size_t size = text_utf8_length(bytes, length);
    unsigned char first = (unsigned char)bytes[0];
    if (size == 1 && (first < ' ' || first == 0x7f))
        return 4;
    return size >= 3 ? 2 : 1;
}

/* As much of a text as has room in so many columns; ".." stands for what has not. */
static void write_cut(FILE *out, struct strings_text text, unsigned room)
{
    unsigned columns = 0;
    size_t whole = 0, cut = 0; /* bytes that fit, and that fit with the dots */
    while (whole < text.length && columns <= room) {
        size_t size = text_utf8_length(text.bytes + whole, text.length - whole);
        columns += columns_of(text.bytes + whole, text.length - whole);
        if (columns <= room)
            whole += size ? size : 1;
        if (columns + 2 <= room)
            cut = whole;
    }
    size_t end = whole < text.length ? cut : text.length;
    for (size_t i = 0; i < end;)
        i += write_character(out, text.bytes + i, text.length - i);
    if (whole < text.length)
        fputs("..", out);
}

static void write_all(FILE *out, struct strings_text text)
{
    write_cut(out, text, TOOLTIP_BYTES);
}

static struct strings_text plain(const char *words)
{
    return (struct strings_text){words, strlen(words)};
}

/* --- boxes ----------------------------------------------------------------------------------- */

static int add_box(struct svg *svg, struct box box, uint32_t *ret_box)
{
    box.depth = svg->boxes.count ? svg->boxes.items[box.parent].depth + 1 : 0;
    *ret_box = (uint32_t)svg->boxes.count;
    return vector_push(&svg->boxes, box);
}

/* The box of a node, with those above it made first where they are new. */
static int find_box(struct svg *svg, uint32_t comm, uint32_t node, uint32_t *ret_box)
{
    const struct export_node *nodes = svg->view->nodes.items;
    svg->path.count = 0;
    while (!pairmap_get(&svg->box_of, comm, node, ret_box)) {
        if (vector_push(&svg->path, node) < 0)
            return -ENOMEM;
        if (!node) {
            *ret_box = 0;
            break;
        }
        node = nodes[node].parent;
    }
    for (size_t i = svg->path.count; i-- > 0;) {
        struct box box = {.parent = *ret_box, .node = svg->path.items[i], .comm = comm};
        if (add_box(svg, box, ret_box) < 0 ||
            pairmap_set(&svg->box_of, comm, box.node, *ret_box) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int make_boxes(struct svg *svg)
{
    struct export_weights weights;
    struct box everything = {.comm = PROFILE_NONE};
    uint32_t box;
    if (add_box(svg, everything, &box) < 0 || export_weights_init(&weights, svg->view) < 0)
        return -ENOMEM;
    int result = 0;
    for (size_t i = 0; i < weights.rows.count && result == 0; i++) {
        const struct export_weight_row *row = &weights.rows.items[i];
        result = find_box(svg, row->comm, row->node, &box);
        if (result == 0)
            svg->boxes.items[box].weight += row->weight;
    }
    export_weights_done(&weights);
    for (size_t i = svg->boxes.count; i-- > 1;)
        svg->boxes.items[svg->boxes.items[i].parent].weight += svg->boxes.items[i].weight;
    return result;
}

static double pixels_of(const struct svg *svg, uint64_t weight)
{
    uint64_t all = svg->boxes.items[0].weight;
    return all ? (double)(WIDTH - 2 * MARGIN) * (double)weight / (double)all : 0;
}

static int compare(const void *a, const void *b, void *context)
{
    const struct box *boxes = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    if (boxes[left].parent != boxes[right].parent)
        return boxes[left].parent < boxes[right].parent ? -1 : 1;
    if (boxes[left].weight != boxes[right].weight)
        return boxes[left].weight > boxes[right].weight ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* Boxes that can be seen, and where they stand. Numbers of parents are lower, so in the order of
 * parents each box has its place before those below it ask for theirs. */
static int place_boxes(struct svg *svg)
{
    for (uint32_t i = 1; i < svg->boxes.count; i++)
        if (pixels_of(svg, svg->boxes.items[i].weight) >= LEAST_PIXELS &&
            vector_push(&svg->drawn, i) < 0)
            return -ENOMEM;
    if (svg->drawn.count)
        qsort_r(svg->drawn.items, svg->drawn.count, sizeof *svg->drawn.items, compare,
                svg->boxes.items);
    svg->boxes.items[0].x = svg->boxes.items[0].right = MARGIN;
    for (size_t i = 0; i < svg->drawn.count; i++) {
        struct box *box = &svg->boxes.items[svg->drawn.items[i]];
        struct box *parent = &svg->boxes.items[box->parent];
        box->x = box->right = parent->right;
        parent->right += pixels_of(svg, box->weight);
        if (box->depth > svg->deepest)
            svg->deepest = box->depth;
    }
    return 0;
}

/* --- drawing --------------------------------------------------------------------------------- */

static unsigned height_of(const struct svg *svg)
{
    return HEAD + (svg->deepest + 1) * ROW + FOOT;
}

static const char *unit_label(const struct export_view *view)
{
    return view->unit == EXPORT_NANOSECONDS ? "ns"
           : view->unit == EXPORT_SAMPLES   ? "samples"
                                            : "events";
}

static void write_box(struct svg *svg, const struct box *box)
{
    const struct export_view *view = svg->view;
    const struct export_node *node = &view->nodes.items[box->node];
    const struct export_name *name = box->node ? &view->names.items.items[node->name] : NULL;
    struct strings_text label = name ? name->name
                                : box->comm == PROFILE_NONE
                                    ? plain("all")
                                    : strings_get(&view->profile->strings, box->comm);
    double width = pixels_of(svg, box->weight);
    unsigned y = HEAD + box->depth * ROW;
    char number[TEXT_NUMBER_BYTES];
    fputs("<g><title>", svg->out);
    write_all(svg->out, label);
    if (name && name->file.length) {
        fputs("\n", svg->out);
        write_all(svg->out, name->file);
        if (node->line || name->line)
            fprintf(svg->out, ":%" PRIu32, node->line ? node->line : name->line);
    }
    if (name && !name->is_python) {
        const struct profile_module *module = &view->profile->modules.items[name->module];
        fputs("\n", svg->out);
        write_all(svg->out, strings_get(&view->profile->strings, module->path));
    }
    fprintf(svg->out, "\n%.2f %%, %s %s</title>",
            100.0 * (double)box->weight /
                (double)(svg->boxes.items[0].weight ? svg->boxes.items[0].weight : 1),
            text_number(box->weight, number), unit_label(view));
    fprintf(svg->out, "<rect class=\"p%u%s\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%u\"/>",
            name ? name->place : NO_PLACE, width > BORDER_PIXELS ? " b" : "", box->x, y, width,
            ROW - 1);
    double room = (width - 2 * TEXT_INDENT) / CHARACTER_PIXELS;
    if (room >= 3) {
        fprintf(svg->out, "<text x=\"%.2f\" y=\"%u\">", box->x + TEXT_INDENT, y + ROW - 5);
        write_cut(svg->out, label, (unsigned)room);
        fputs("</text>", svg->out);
    }
    fputs("</g>\n", svg->out);
}

static void write_head(const struct svg *svg)
{
    const struct export_view *view = svg->view;
    char number[TEXT_NUMBER_BYTES];
    unsigned height = height_of(svg), x = MARGIN;
    fprintf(svg->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
            "width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\">\n<style>%s</style>\n",
            WIDTH, height, WIDTH, height, STYLE);
    fprintf(svg->out, "<text class=\"h\" x=\"%d\" y=\"22\">", MARGIN);
    write_cut(svg->out, plain(view->settings.source), 60);
    fprintf(svg->out, "</text>\n<text x=\"%d\" y=\"38\">", MARGIN);
    fprintf(svg->out, "%s samples of ", text_number(view->sample_count, number));
    write_cut(svg->out, plain(export_event_name(view)), 60);
    if (view->unit != EXPORT_SAMPLES)
        fprintf(svg->out, ", %s %s", text_number(view->weight, number), unit_label(view));
    fputs("</text>\n", svg->out);
    for (unsigned i = 0; i < EXPORT_PLACES; i++) {
        const char *label = export_place_label(i);
        fprintf(svg->out,
                "<rect class=\"p%u\" x=\"%u\" y=\"44\" width=\"10\" height=\"10\"/>"
                "<text x=\"%u\" y=\"53\">%s</text>\n",
                i, x, x + 14, label);
        x += 30 + (unsigned)(CHARACTER_PIXELS * (double)strlen(label));
    }
}

int export_svg(const struct export_view *view, FILE *out)
{
    struct svg svg = {.view = view, .out = out};
    int result = make_boxes(&svg);
    if (result == 0)
        result = place_boxes(&svg);
    if (result == 0) {
        write_head(&svg);
        write_box(&svg, &svg.boxes.items[0]);
        for (size_t i = 0; i < svg.drawn.count; i++)
            write_box(&svg, &svg.boxes.items[svg.drawn.items[i]]);
        fputs("</svg>\n", out);
    }
    vector_done(&svg.boxes);
    vector_done(&svg.drawn);
    vector_done(&svg.path);
    pairmap_done(&svg.box_of);
    return result;
}
