/* A shared object of two pages, for jit_around.c to put between generated functions. */
void leaf(unsigned long rounds);

void leaf(unsigned long rounds)
{
    for (; rounds; rounds--)
        __asm__ volatile("");
}
