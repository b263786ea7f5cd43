/* Spends its time in functions that are inlined into each other. */
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long innermost(unsigned long x)
{
    for (int i = 0; i < 1000; i++)
        x = x * 6364136223846793005ul + 1442695040888963407ul;
    return x;
}
static inline __attribute__((always_inline)) unsigned long middle(unsigned long x)
{
    return innermost(x) ^ innermost(x + 1);
}
static __attribute__((noinline)) void outer(void)
{
    sink += middle(sink);
}
int main(void)
{
    for (int i = 0; i < 150000; i++)
        outer();
    return 0;
}
