"""The functions of the package in an interpreter that the shared object does not support."""

import sys

_reason = "this interpreter is not supported"


def set_reason(error):
    global _reason
    if sys.implementation.name != "cpython":
        _reason = "this is not a CPython"
    elif error.path is None:  # raised by the shared object itself, which says why
        _reason = str(error)
    else:
        _reason = f"the shared object cannot be loaded: {error}"


def activate_stack_trampoline(backend, /):
    if not isinstance(backend, str):
        kind = "None" if backend is None else type(backend).__name__
        raise TypeError(f"activate_stack_trampoline() argument must be str, not {kind}")
    if backend not in ("perf", "perf_jit"):
        raise ValueError(f"invalid backend: {backend}")
    raise ValueError(f"perf trampoline not available: {_reason}")


def deactivate_stack_trampoline():
    pass


def is_stack_trampoline_active():
    return False


def status():
    return {
        "unavailable": _reason,
        "mode": None,
        "file": None,
        "written": 0,
        "lost": 0,
        "last_error": 0,
        "memory_bytes": 0,
    }


def _install_sys_functions():
    if sys.version_info < (3, 12):
        for function in activate_stack_trampoline, deactivate_stack_trampoline, is_stack_trampoline_active:
            setattr(sys, function.__name__, function)


def _startup():
    print(f"pitviper: perf trampoline not available: {_reason}", file=sys.stderr)
