#include "interp/sample_chain.h"
#include "unit.h"

enum { FRAMES = 2000, ENTRY_BORDER = 1000000 };

static struct sample_chain chain;
static uint8_t *memory;

/* A thread with its Python frames, as it is when a sample comes: the outermost first. */
static struct frame {
    char *address;
    uint64_t entry;
    bool has_border;
} stack[FRAMES];
static size_t depth;
static char places[4 * FRAMES]; /* of frames */

static int begin_chain(void **state)
{
    (void)state;
    memory = calloc(1, sample_chain_bytes());
    assert_non_null(memory);
    sample_chain_init(&chain, memory);
    depth = 0;
    return 0;
}

static int end_chain(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

static void call(size_t place, uint64_t entry)
{
    stack[depth++] =
        (struct frame){.address = &places[place], .entry = entry, .has_border = entry % 3 == 0};
}

static void call_many(size_t count)
{
    for (size_t i = 0; i < count; i++)
        call(depth, 1 + depth % 7);
}

static bool add_frame(const struct frame *frame)
{
    sample_chain_step(&chain, (struct sample_step){.frame = frame->address, .key = frame->entry});
    return sample_chain_add(&chain, frame->entry) &&
           (!frame->has_border || sample_chain_add(&chain, ENTRY_BORDER + frame->entry));
}

/* The known steps that are as they were, without looking at entries. */
static size_t pass_known(size_t left)
{
    const struct sample_step *known = sample_chain_known(&chain);
    size_t step = chain.next_step;
    while (left > 0 && step < chain.known_steps.count &&
           known[step].frame == stack[left - 1].address &&
           known[step].key == stack[left - 1].entry) {
        step++;
        left--;
    }
    sample_chain_pass(&chain, step);
    return left;
}

/* As sample_frames.c does it. */
static bool walk(bool may_pass)
{
    sample_chain_begin(&chain);
    size_t steps = 0, next = 8, left = depth;
    while (left > 0) {
        if (steps >= next) {
            next = 2 * steps;
            sample_chain_join(&chain, stack[left - 1].address);
        }
        if (may_pass && chain.next)
            left = pass_known(left);
        if (left > 0 && !add_frame(&stack[--left]))
            return false;
        steps++;
    }
    assert_ptr_equal(sample_chain_outermost(&chain), depth ? stack[0].address : NULL);
    sample_chain_end(&chain);
    return true;
}

static void assert_found(void)
{
    size_t number = 0, total = chain.count + chain.kept;
    for (size_t i = depth; i > 0; i--) {
        uint64_t wanted[2] = {stack[i - 1].entry, ENTRY_BORDER + stack[i - 1].entry};
        for (size_t k = 0; k < 1 + (size_t)stack[i - 1].has_border; k++, number++) {
            assert_true(number <= total - 1);
            uint64_t found = number < chain.count ? chain.entries[number]
                                                  : sample_chain_kept(&chain)[number - chain.count];
            assert_int_equal(found, wanted[k]);
        }
    }
    assert_int_equal(number, total);
}

static void first_walk_is_all_new(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    assert_int_equal(chain.kept, 0);
    assert_found();
}

static void what_is_as_before_is_kept(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    size_t total = chain.count;
    sample_chain_keep(&chain);
    assert_true(walk(true));
    assert_int_equal(chain.count, 0);
    assert_int_equal(chain.kept, total);
    assert_true(chain.kept_steps >= 200 && chain.kept_steps <= 300);
    assert_found();
}

static void deeper_and_less_deep_stacks_keep_the_rest(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    sample_chain_keep(&chain);
    for (size_t i = 0; i < 40; i++)
        call(1000 + i, 50 + i);
    assert_true(walk(true));
    assert_true(chain.count >= 40 && chain.count <= 80);
    assert_true(chain.kept_steps >= 200 && chain.kept_steps <= 300);
    assert_found();
    sample_chain_keep(&chain);
    depth = 250;
    assert_true(walk(true));
    assert_int_equal(chain.count, 0);
    assert_found();
}

static void another_instruction_far_out_is_noticed(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    sample_chain_keep(&chain);
    stack[20].entry = 77;
    assert_true(walk(true));
    assert_true(chain.kept_steps <= 20); /* it may have joined again behind */
    assert_true(chain.kept >= 20 && chain.kept <= 40);
    assert_found();
}

static void another_frame_far_out_is_noticed(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    sample_chain_keep(&chain);
    stack[20].address = &places[1500];
    assert_true(walk(true));
    assert_true(chain.kept_steps <= 20);
    assert_int_equal(chain.count, 0); /* it says the same */
    assert_found();
    sample_chain_keep(&chain);
    assert_true(walk(true));
    assert_true(chain.kept_steps >= 200 && chain.kept_steps <= 300);
}

static void outermost_frames_that_come_or_go_are_noticed(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    sample_chain_keep(&chain);
    memmove(&stack[1], &stack[0], depth++ * sizeof *stack);
    stack[0] = (struct frame){.address = &places[1600], .entry = 99};
    assert_true(walk(true));
    assert_found();
    sample_chain_keep(&chain);
    depth -= 2;
    memmove(&stack[0], &stack[2], depth * sizeof *stack);
    assert_true(walk(true));
    assert_found();
}

static void walk_that_begins_again_forgets_its_first_half(void **state)
{
    (void)state;
    call_many(300);
    assert_true(walk(true));
    sample_chain_keep(&chain);
    sample_chain_begin(&chain);
    sample_chain_join(&chain, stack[200].address);
    add_frame(&stack[200]);
    assert_true(walk(true));
    assert_found();
}

static void full_chain_says_so(void **state)
{
    (void)state;
    sample_chain_begin(&chain);
    for (size_t i = 0; i < SAMPLE_CHAIN_MOST; i++)
        assert_true(sample_chain_add(&chain, 1 + i));
    assert_false(sample_chain_add(&chain, 1));
    sample_chain_end(&chain);
    assert_int_equal(chain.count, SAMPLE_CHAIN_MOST);
    sample_chain_keep(&chain);
    assert_int_equal(chain.known_count, SAMPLE_CHAIN_MOST);
}

/* Calls and returns of every kind between samples, of which some are not kept. */
static void every_walk_finds_what_is_there(void **state)
{
    (void)state;
    srand(7);
    size_t kept_steps = 0;
    for (int round = 0; round < 3000; round++) {
        depth -= (size_t)rand() % (1 + (rand() % 10 ? depth / 16 : depth));
        for (size_t calls = (size_t)rand() % 60; calls > 0 && depth < FRAMES; calls--)
            call((depth + (size_t)rand() % 2 * FRAMES) % sizeof places, 1 + (uint64_t)rand() % 5);
        for (size_t changes = (size_t)rand() % 4; depth && changes > 0; changes--)
            stack[(size_t)rand() % depth].entry = 1 + (uint64_t)rand() % 5;
        for (size_t i = 0; i < depth; i++)
            stack[i].has_border = stack[i].entry % 3 == 0;
        assert_true(walk(rand() % 2));
        assert_found();
        kept_steps += chain.kept_steps;
        if (rand() % 8)
            sample_chain_keep(&chain);
    }
    assert_true(kept_steps >= 3000 * 20 && kept_steps <= 3000 * FRAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_walk_is_all_new, begin_chain, end_chain),
        cmocka_unit_test_setup_teardown(what_is_as_before_is_kept, begin_chain, end_chain),
        cmocka_unit_test_setup_teardown(deeper_and_less_deep_stacks_keep_the_rest, begin_chain,
                                        end_chain),
        cmocka_unit_test_setup_teardown(another_instruction_far_out_is_noticed, begin_chain,
                                        end_chain),
        cmocka_unit_test_setup_teardown(another_frame_far_out_is_noticed, begin_chain, end_chain),
        cmocka_unit_test_setup_teardown(outermost_frames_that_come_or_go_are_noticed, begin_chain,
                                        end_chain),
        cmocka_unit_test_setup_teardown(walk_that_begins_again_forgets_its_first_half, begin_chain,
                                        end_chain),
        cmocka_unit_test_setup_teardown(full_chain_says_so, begin_chain, end_chain),
        cmocka_unit_test_setup_teardown(every_walk_finds_what_is_there, begin_chain, end_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
