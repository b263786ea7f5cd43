/* sanitized [overflow]: a function that is busy in four threads, with variables that a sanitizer
 * has put guards around; and one that writes behind its memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *busy(void *unused)
{
    volatile char text[40];
    (void)unused;
    for (unsigned i = 0; i < 100000000; i++)
        text[i % sizeof text] = (char)i;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, busy, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    if (argc > 1 && strcmp(argv[1], "overflow") == 0) {
        volatile char *memory = malloc(16);
        memory[16 * argc] = 1;
        free((void *)memory);
    }
    return 0;
}
