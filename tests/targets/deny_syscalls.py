"""Runs a command under a seccomp filter that answers some system calls with "not permitted":

    deny_syscalls.py executable_memory,memfd,fallocate,perf_events CMD...

executable_memory is mprotect and mmap with PROT_EXEC for memory without a file, which is how W^X
policies work. As a module, deny(names) does it to the process itself. x86-64."""
import ctypes
import errno
import os
import struct
import sys

PROT_EXEC, MAP_ANONYMOUS = 4, 0x20
SYS = {"mmap": 9, "mprotect": 10, "memfd_create": 319, "fallocate": 285,
       "perf_event_open": 298}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06
NUMBER, THIRD_ARGUMENT, FOURTH_ARGUMENT = 0, 16 + 2 * 8, 16 + 3 * 8
ALLOW, DENY = 0x7fff0000, 0x00050000 | errno.EPERM


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value)


def denied(name):
    """Instructions that return when it is this call, and go on behind them when it is not."""
    number = instruction(LOAD, NUMBER)
    deny = instruction(RETURN, DENY)
    executable = instruction(LOAD, THIRD_ARGUMENT) + instruction(JUMP_IF_SET, PROT_EXEC, 0, 1)
    if name == "mprotect":
        return number + instruction(JUMP_IF_EQUAL, SYS[name], 0, 3) + executable + deny
    if name == "mmap":
        anonymous = (instruction(LOAD, FOURTH_ARGUMENT)
                     + instruction(JUMP_IF_SET, MAP_ANONYMOUS, 0, 1))
        executable = instruction(LOAD, THIRD_ARGUMENT) + instruction(JUMP_IF_SET, PROT_EXEC, 0, 3)
        return number + instruction(JUMP_IF_EQUAL, SYS[name], 0, 5) + executable + anonymous + deny
    return number + instruction(JUMP_IF_EQUAL, SYS[name], 0, 1) + deny


GROUPS = {"executable_memory": ["mprotect", "mmap"], "memfd": ["memfd_create"],
          "fallocate": ["fallocate"], "perf_events": ["perf_event_open"]}


def deny(names):
    calls = [call for name in names for call in GROUPS[name]]
    program = b"".join(map(denied, calls)) + instruction(RETURN, ALLOW)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, *arguments) or \
            libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(FILTER), ctypes.c_char_p(header)):
        raise OSError(ctypes.get_errno(), "no seccomp filters here")


if __name__ == "__main__":
    deny(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
