#include "cmd/output_file.h"

#include "base/new_file.h"
#include "cmd/terminal.h"

#include <errno.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16, MODE = 0666 };

static int write_content(struct new_file *file, output_file_content *content, const void *what)
{
    int copy = dup(file->fd); /* fclose closes it */
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    if (!out) {
        int error = -errno;
        if (copy >= 0)
            close(copy);
        return error;
    }
    setvbuf(out, NULL, _IOFBF, BUFFER_BYTES);
    int error = content(out, what);
    if (fclose(out) != 0 && error == 0)
        error = -errno;
    return error;
}

/* While interrupts are held back, the terminal knows of the temporary file as long as there is
 * one. */
int output_file_write(const char *path, output_file_content *content, const void *what)
{
    struct new_file file;
    terminal_hold_interrupts(true);
    int error = new_file_open(&file, path, MODE);
    if (error == 0) {
        terminal_set_temporary(file.temporary);
        terminal_hold_interrupts(false);
        error = write_content(&file, content, what);
        terminal_hold_interrupts(true);
        if (error == 0)
            error = new_file_commit(&file);
        terminal_set_temporary(NULL);
        new_file_done(&file);
    }
    terminal_hold_interrupts(false);
    return error;
}
