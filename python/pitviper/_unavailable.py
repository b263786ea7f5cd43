"""The functions of the package in an interpreter that the shared object does not support."""

import os
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


def _is_set(name):
    digits = os.environ.get(name, "").lstrip(" +-")
    return not sys.flags.ignore_environment and digits.isdigit() and int(digits) != 0


def _is_wanted():
    """Whether anything asks for trampolines, by the rules of src/interp/startup.c."""
    if "pitviper" in sys._xoptions or os.environ.get("PITVIPER", "0") not in ("", "0"):
        return True
    ours = {"perf_jit": "PYTHON_PERF_JIT_SUPPORT"} if sys.version_info < (3, 13) else {}
    if sys.version_info < (3, 12):
        ours["perf"] = "PYTHONPERFSUPPORT"
    return any(option in sys._xoptions or _is_set(name) for option, name in ours.items())


def _startup():
    """Says why there is nothing: once, though `site` goes through start-up hooks twice in virtual
    environments and `pitviper run` may have said it; and past sys.stderr, which may be None."""
    if hasattr(sys, "_pitviper_said") or not _is_wanted():
        return
    sys._pitviper_said = None
    try:
        os.write(2, f"pitviper: perf trampoline not available: {_reason}\n".encode(errors="replace"))
    except OSError:
        pass  # nobody is left to tell
