/* A signal that comes in a system call ends it. When the handler has SA_RESTART, as ours, the
 * kernel goes back to the instruction, and the call is made again; some calls give EINTR all the
 * same:
 *
 *     syscall            <- RIP: made again     RAX: its number    RCX: behind it
 *     ...                <- RIP: it has ended   RAX: -EINTR        RCX: the same
 *
 * That is for the first signal that comes. One of the program's that comes while our handler runs
 * is delivered behind it, where the thread stands before the instruction, outside of any call. If
 * its handler has no SA_RESTART, the program wants the call to end; but it would begin again, and
 * may wait for ever: of 300 alarms in a read, 20 to 40 at 999 Hz of wall-clock time, and 2 to 4 of
 * CPU time. So before a handler of the program's runs at the place where we have left the thread,
 * the call is made to have ended. It may be that the thread has come to the same place anew: then
 * the signal is taken as one that came a moment later. That is why only calls are ended that a
 * signal may end.
 *
 * RCX is the processor's doing: those with FRED leave it alone. There only what has ended is found,
 * by the instruction. */
#include "interp/interrupted_call.h"

#include "interp/interpose.h"
#include "interp/sample_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

static const uint8_t INSTRUCTION[] = {0x0f, 0x05};

static bool is_before_call(const greg_t *registers)
{
    return registers[REG_RCX] == registers[REG_RIP] + (greg_t)sizeof INSTRUCTION;
}

static bool is_behind_call(const greg_t *registers)
{
    uint8_t before[sizeof INSTRUCTION];
    return registers[REG_RCX] == registers[REG_RIP] ||
           (sample_memory_read((const uint8_t *)registers[REG_RIP] - sizeof before, before,
                               sizeof before) &&
            memcmp(before, INSTRUCTION, sizeof before) == 0);
}

static bool may_end_with_signal(greg_t call)
{
    switch (call) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_open:
    case SYS_openat:
    case SYS_ioctl:
    case SYS_fcntl:
    case SYS_flock:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_futex:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_getrandom:
        return true;
    default:
        return false;
    }
}

void interrupted_call_note(struct sample_thread *thread, const ucontext_t *at, bool has_waits)
{
    const greg_t *registers = at->uc_mcontext.gregs;
    if (is_before_call(registers) && may_end_with_signal(registers[REG_RAX])) {
        thread->again_pc = registers[REG_RIP];
        thread->again_call = registers[REG_RAX];
    }
    if (has_waits)
        thread->has_ended_call |= is_behind_call(registers);
}

static bool has_restart(int signal)
{
    struct sigaction now;
    return interpose_sigaction(signal, NULL, &now) < 0 || now.sa_flags & SA_RESTART;
}

bool interrupted_call_goes_on(const struct sample_thread *thread, int signal, ucontext_t *at)
{
    greg_t *registers = at->uc_mcontext.gregs;
    if (!is_before_call(registers))
        return false;
    if (has_restart(signal))
        return true;
    if (registers[REG_RIP] == thread->again_pc && registers[REG_RAX] == thread->again_call) {
        registers[REG_RIP] += (greg_t)sizeof INSTRUCTION;
        registers[REG_RAX] = -EINTR;
    }
    return false;
}
