/* A program that embeds Python: starts it, runs a text and ends it, several times in one process.
 *
 *     embed TIMES TEXT */
#include <stdio.h>
#include <stdlib.h>

/* Declared by hand, so that no headers are needed. */
void Py_Initialize(void);
int Py_FinalizeEx(void);
int PyRun_SimpleString(const char *text);

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    for (int round = 0; round < atoi(argv[1]); round++) {
        Py_Initialize();
        printf("round %d: %d\n", round, PyRun_SimpleString(argv[2]));
        fflush(stdout);
        if (Py_FinalizeEx() < 0)
            return 1;
    }
    return 0;
}
