/* A program that loads Python when it runs, as web servers do: plug_in LIBRARY TEXT. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!library) {
        fprintf(stderr, "plug_in: %s\n", argc > 2 ? dlerror() : "LIBRARY TEXT");
        return 1;
    }
    void (*initialize)(void);
    int (*run)(const char *, void *);
    *(void **)&initialize = dlsym(library, "Py_Initialize");
    *(void **)&run = dlsym(library, "PyRun_SimpleStringFlags");
    initialize();
    return run(argv[2], NULL);
}
