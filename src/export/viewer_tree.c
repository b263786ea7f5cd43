/* Nodes are numbered in the order of a walk that goes down first:
 *
 *     0 root
 *     1  main               parents  0 0 1 2 2 1
 *     2   work              as differences to the one before: mostly 1
 *     3    read
 *     4    write
 *     5   idle
 *
 * so most nodes follow their parent, and this column costs next to nothing. */
#include "export/viewer_tree.h"

#include "profile/pairmap.h"

#include <string.h>

/* The tree before it has its order. */
struct building {
    struct viewer_tree *tree;
    struct pairmap by_frame; /* (parent, frame) -> node */
    uint32_t *first_child;   /* per node; 0: none */
    uint32_t *next_sibling;
    uint32_t *number_of; /* per node: its place in the order */
};

void viewer_tree_mark_callers(const struct profile_stack *stacks, size_t count, bool *is_used)
{
    for (size_t i = count; i-- > 1;)
        if (is_used[i])
            is_used[stacks[i].parent] = true;
    is_used[PROFILE_ROOT] = true;
}

static int add_node(struct building *building, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
    struct viewer_tree *tree = building->tree;
    struct viewer_stack node = {.parent = parent, .frame = frame};
    if (pairmap_get(&building->by_frame, parent, frame, ret_node))
        return 0;
    if (vector_push(&tree->nodes, node) < 0)
        return -ENOMEM;
    *ret_node = (uint32_t)(tree->nodes.count - 1);
    return pairmap_set(&building->by_frame, parent, frame, *ret_node);
}

static int add_nodes(struct building *building, const struct viewer_tree_source *source)
{
    struct viewer_tree *tree = building->tree;
    struct viewer_stack root = {0};
    int error = vector_push(&tree->nodes, root);
    tree->node_of[PROFILE_ROOT] = PROFILE_ROOT;
    for (size_t i = 1; i < source->count && error == 0; i++) {
        const struct profile_stack *stack = &source->stacks[i];
        tree->node_of[i] = PROFILE_NONE;
        if (source->is_used[i])
            error = add_node(building, tree->node_of[stack->parent], source->frame_of[stack->frame],
                             &tree->node_of[i]);
    }
    return error;
}

/* The last child is linked first, so that the oldest one comes first. */
static void link_children(struct building *building)
{
    const struct viewer_stack *nodes = building->tree->nodes.items;
    for (size_t i = building->tree->nodes.count; i-- > 1;) {
        building->next_sibling[i] = building->first_child[nodes[i].parent];
        building->first_child[nodes[i].parent] = (uint32_t)i;
    }
}

static uint32_t next_in_walk(const struct building *building, uint32_t node)
{
    if (building->first_child[node])
        return building->first_child[node];
    while (node && !building->next_sibling[node])
        node = building->tree->nodes.items[node].parent;
    return building->next_sibling[node];
}

static int put_in_order(struct building *building, size_t stack_count)
{
    struct viewer_tree *tree = building->tree;
    struct viewer_stack *ordered = calloc(tree->nodes.count, sizeof *ordered);
    if (!ordered)
        return -ENOMEM;
    uint32_t number = 0;
    for (uint32_t node = building->first_child[0]; node; node = next_in_walk(building, node)) {
        building->number_of[node] = ++number;
        ordered[number] =
            (struct viewer_stack){.parent = building->number_of[tree->nodes.items[node].parent],
                                  .frame = tree->nodes.items[node].frame};
    }
    free(tree->nodes.items);
    tree->nodes.items = ordered;
    tree->nodes.capacity = tree->nodes.count;
    for (size_t i = 0; i < stack_count; i++)
        if (tree->node_of[i] != PROFILE_NONE)
            tree->node_of[i] = building->number_of[tree->node_of[i]];
    return 0;
}

int viewer_tree_init(struct viewer_tree *tree, const struct viewer_tree_source *source)
{
    *tree = (struct viewer_tree){.node_of = calloc(source->count + 1, sizeof *tree->node_of)};
    struct building building = {.tree = tree};
    int error = tree->node_of ? add_nodes(&building, source) : -ENOMEM;
    if (error == 0) {
        size_t count = tree->nodes.count;
        building.first_child = calloc(count, sizeof *building.first_child);
        building.next_sibling = calloc(count, sizeof *building.next_sibling);
        building.number_of = calloc(count, sizeof *building.number_of);
        if (!building.first_child || !building.next_sibling || !building.number_of)
            error = -ENOMEM;
    }
    if (error == 0) {
        link_children(&building);
        error = put_in_order(&building, source->count);
    }
    pairmap_done(&building.by_frame);
    free(building.first_child);
    free(building.next_sibling);
    free(building.number_of);
    if (error < 0)
        viewer_tree_done(tree);
    return error;
}

void viewer_tree_done(struct viewer_tree *tree)
{
    vector_done(&tree->nodes);
    free(tree->node_of);
    tree->node_of = NULL;
}
