"""Another eval-frame hook, the one of bench/forward_hook.c, put in place before or after ours.
Prints which of the two stands in front after each step; without ours, what ours would give."""
import ctypes
import os
import sys

import trampolines

OURS = "PITVIPER" in os.environ
api = ctypes.pythonapi
for function in ("PyInterpreterState_Get", "_PyInterpreterState_GetEvalFrameFunc"):
    getattr(api, function).restype = ctypes.c_void_p
api._PyInterpreterState_GetEvalFrameFunc.argtypes = [ctypes.c_void_p]
other = ctypes.PyDLL(sys.argv[2])


def in_front():
    return api._PyInterpreterState_GetEvalFrameFunc(api.PyInterpreterState_Get())


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def called_while_both_are_there():
    return fib(12)


def before():
    """Ours comes and goes over it: it is back afterwards."""
    trampolines.deactivate()
    other.install()
    theirs = in_front()
    for _ in range(3):
        trampolines.activate("perf")
        print((in_front() != theirs) == OURS, called_while_both_are_there())
        trampolines.deactivate()
        print(in_front() == theirs, fib(12))


def is_refused():
    try:
        trampolines.activate("perf")
    except ValueError as error:
        return "does not call it" in str(error) and not trampolines.is_active()
    return False


def after():
    """It forwards to CPython, not to us: we must not remove it, nor say that we are on."""
    print(called_while_both_are_there())
    other.install()
    theirs = in_front()
    for _ in range(3):
        print(is_refused() == OURS, in_front() == theirs, fib(12))
        trampolines.deactivate()
        print(is_refused() == OURS, in_front() == theirs, fib(12))


def after_chained():
    """It forwards to us: we come and go below it, and are never called in a circle."""
    other.install_over()
    theirs = in_front()
    for _ in range(3):
        print(not is_refused(), in_front() == theirs, called_while_both_are_there())
        trampolines.deactivate()
        print(in_front() == theirs, fib(12))
    trampolines.activate("perf")
    exec("def through_the_other(): return fib(5)", globals())
    print(in_front() == theirs, through_the_other())


{"before": before, "after": after, "after_chained": after_chained}[sys.argv[1]]()
