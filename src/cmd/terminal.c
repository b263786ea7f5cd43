/* The state is static because signal handlers need it; there is one terminal. Handlers only write
 * constant bytes and end the program. */
#include "cmd/terminal.h"

#include "base/clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DELAY_MS = 1000, INTERVAL_MS = 100 };

static const char CLEAR_LINE[] = "\r\033[K";
static const char RESET_COLOURS[] = "\033[0m";

static struct {
    const char *what;
    uint64_t begin_ms;
    uint64_t next_ms; /* no earlier update */
    bool shows_progress;
    volatile sig_atomic_t has_line;
    volatile sig_atomic_t is_coloured;
    volatile sig_atomic_t status;
    const char *volatile temporary;
} terminal;

static void write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(fd, bytes, length);
        if (written <= 0)
            return;
        bytes += written;
        length -= (size_t)written;
    }
}

static void on_interrupt(int number)
{
    if (terminal.temporary)
        unlink(terminal.temporary);
    if (terminal.has_line)
        write_all(STDERR_FILENO, CLEAR_LINE, sizeof CLEAR_LINE - 1);
    if (terminal.is_coloured)
        write_all(STDOUT_FILENO, RESET_COLOURS, sizeof RESET_COLOURS - 1);
    signal(number, SIG_DFL);
    raise(number);
}

static void on_closed_pipe(int number)
{
    (void)number;
    _exit(terminal.status);
}

static uint64_t now_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

void terminal_begin(const char *what)
{
    terminal.what = what;
    terminal.begin_ms = now_ms();
    terminal.next_ms = terminal.begin_ms + DELAY_MS;
    terminal.shows_progress = isatty(STDERR_FILENO);
    struct sigaction action = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_closed_pipe;
    sigaction(SIGPIPE, &action, NULL);
}

void terminal_set_status(int status)
{
    terminal.status = status;
}

void terminal_set_temporary(const char *path)
{
    terminal.temporary = path;
}

void terminal_hold_interrupts(bool hold)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &signals, NULL);
}

bool terminal_has_colour(void)
{
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    bool has =
        isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
    terminal.is_coloured = has;
    return has;
}

bool terminal_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    uint64_t now = terminal.shows_progress ? now_ms() : 0;
    if (!terminal.shows_progress || now < terminal.next_ms)
        return true;
    terminal.next_ms = now + INTERVAL_MS;
    terminal.has_line = 1;
    double share = total ? 100.0 * (double)done / (double)total : 0.0;
    fprintf(stderr, "%s%s: %.0f %%", CLEAR_LINE, terminal.what, share);
    fflush(stderr);
    return true;
}

void terminal_progress_end(void)
{
    if (terminal.has_line) {
        fputs(CLEAR_LINE, stderr);
        fflush(stderr);
    }
    terminal.has_line = 0;
    terminal.shows_progress = false;
}
