/* Calls the functions of undescribed_x86_64.S, in turns: undescribed ROUNDS. Also a shared library,
 * for ctypes. */
#include <stddef.h>
#include <stdlib.h>

typedef void function(void);

function by_pushes, by_moves, with_buffer, with_kept_pointer, with_frame, by_a_jump, with_inner,
    before_the_pointer, by_an_index, with_agreement;

void spend(void);

static volatile unsigned long sink;

/* What they call. */
__attribute__((noinline)) void spend(void)
{
    for (unsigned long i = 0; i < 2000; i++)
        sink += i * i;
}

static function *const FUNCTIONS[] = {by_pushes,   by_moves,      with_buffer, with_kept_pointer,
                                      with_frame,  by_a_jump,     with_inner,  before_the_pointer,
                                      by_an_index, with_agreement};

int main(int argc, char **argv)
{
    for (long left = argc > 1 ? strtol(argv[1], NULL, 10) : 0; left > 0; left--)
        for (size_t i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++)
            FUNCTIONS[i]();
    return 0;
}
