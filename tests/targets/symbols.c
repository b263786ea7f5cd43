/* Spends its time in code whose name is a matter of choice: several names at one address, names
 * without a size, functions chosen at run time, the procedure linkage table, the vdso, the kernel.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long (*spinner)(unsigned long rounds);

/* Machine code of a loop: rdi rounds. */
#define SPIN "mov %rdi, %rax\n1: dec %rax\njnz 1b\nret\n"

/* Names at one address, of every kind of binding, with more and fewer underscores and letters. */
__asm__(".text\n.p2align 4\n"
        ".globl aliases_global, aliases_globally_longer, __aliases_global_underscored\n"
        ".weak aliases_weak_and_very_much_longer\n"
        ".type aliases_global, @function\n.type aliases_globally_longer, @function\n"
        ".type __aliases_global_underscored, @function\n"
        ".type aliases_weak_and_very_much_longer, @function\n"
        ".type aliases_local_and_very_much_longer, @function\n"
        "aliases_weak_and_very_much_longer:\naliases_local_and_very_much_longer:\n"
        "__aliases_global_underscored:\naliases_global:\naliases_globally_longer:\n" SPIN
        ".size aliases_weak_and_very_much_longer, .-aliases_weak_and_very_much_longer\n"
        ".size aliases_local_and_very_much_longer, .-aliases_local_and_very_much_longer\n"
        ".size __aliases_global_underscored, .-__aliases_global_underscored\n"
        ".size aliases_global, .-aliases_global\n"
        ".size aliases_globally_longer, .-aliases_globally_longer\n");
unsigned long aliases_global(unsigned long rounds);

/* One with a size and one without at the same address; then two without, a gap between them. */
__asm__(".p2align 4\n.globl sized\n.type sized, @function\n.globl sizeless_but_longer\n"
        ".type sizeless_but_longer, @function\nsizeless_but_longer:\nsized:\n" SPIN
        ".size sized, .-sized\n"
        ".p2align 4\n.globl sizeless\n.type sizeless, @function\nsizeless:\n" SPIN
        ".p2align 6\n.globl label\nlabel:\n" SPIN);
unsigned long sized(unsigned long rounds);
unsigned long sizeless(unsigned long rounds);
unsigned long label(unsigned long rounds);

/* A function inside of a function, and the rest of the outer one behind it. */
__asm__(".p2align 4\n.globl around\n.type around, @function\naround:\n"
        "mov %rdi, %rax\n1: dec %rax\njnz 1b\n"
        ".globl within\n.type within, @function\nwithin:\n"
        "mov %rdi, %rax\n1: dec %rax\njnz 1b\n.size within, .-within\n"
        "mov %rdi, %rax\n1: dec %rax\njnz 1b\nret\n.size around, .-around\n");
unsigned long around(unsigned long rounds);

/* Names of other languages. */
__asm__(".p2align 4\n.globl _ZN5space8functionEim\n.type _ZN5space8functionEim, @function\n"
        "_ZN5space8functionEim:\n" SPIN ".size _ZN5space8functionEim, .-_ZN5space8functionEim\n");
unsigned long mangled(unsigned long rounds) __asm__("_ZN5space8functionEim");

static unsigned long chosen_implementation(unsigned long rounds)
{
    return aliases_global(rounds);
}

__attribute__((used)) static spinner choose(void)
{
    return chosen_implementation;
}

unsigned long chosen(unsigned long rounds) __attribute__((ifunc("choose")));

static void time_passes(unsigned long rounds)
{
    struct timespec now;
    for (unsigned long i = 0; i < rounds / 64; i++)
        clock_gettime(CLOCK_MONOTONIC, &now);
}

static void the_kernel_works(unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds / 512; i++)
        getppid();
}

/* Short functions of libc, through the procedure linkage table, one of them chosen at run time. */
static void the_table_is_used(unsigned long rounds)
{
    static volatile size_t sink;
    const char *volatile text = "1";
    for (unsigned long i = 0; i < rounds; i++)
        sink += strlen(text) + (size_t)labs((long)i) + (size_t)atoi(text);
    if (sink == 1)
        abort();
}

int main(void)
{
    const spinner spinners[] = {aliases_global, sized, sizeless, label, around, mangled, chosen};
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof spinners / sizeof *spinners; i++)
            spinners[i](1ul << 20);
        time_passes(1ul << 20);
        the_kernel_works(1ul << 20);
        the_table_is_used(1ul << 20);
    }
    return 0;
}
