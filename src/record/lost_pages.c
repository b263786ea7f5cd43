/* A profiled program can shorten the file of its ring while the recorder has it mapped, and anybody
 * an object file that is being read. Reading what is gone is SIGBUS. The handler puts an empty page
 * in its place and the instruction is repeated: readers of all these files expect anything to be in
 * them. What can't be helped that way ends the process, as without the handler. */
#include "record/lost_pages.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t page_bytes;

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    void *page = (void *)((uintptr_t)info->si_addr & ~(page_bytes - 1));
    if (info->si_code == BUS_ADRERR &&
        mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) != MAP_FAILED)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

void lost_pages_are_zeros(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigaction(SIGBUS, &action, NULL);
}
