"""Python functions in perf and samply, on every CPython from 3.9 to 3.15.

    import pitviper
    pitviper.activate_stack_trampoline("perf")      # or "perf_jit"
    do_profiled_stuff()
    pitviper.deactivate_stack_trampoline()

The same from the start of a program: python -X pitviper=perf, or PITVIPER=perf in the environment.
On 3.9 to 3.11 the functions of the same names in sys, -X perf, -X perf_jit, PYTHONPERFSUPPORT and
PYTHON_PERF_JIT_SUPPORT are ours as well; on 3.12, what concerns perf_jit.
"""

import sys

__all__ = [
    "activate_stack_trampoline",
    "deactivate_stack_trampoline",
    "is_stack_trampoline_active",
    "status",
]

# Up to 3.12 the start-up hook (pitviper.pth) puts stand-ins into sys that import this package when
# they are called and then call what has taken their place. What they stand for, if anything, is the
# default of their argument _o; it comes back first.
for _name in __all__[:3]:
    _defaults = getattr(getattr(sys, _name, None), "__kwdefaults__", None) or {}
    if _defaults.get("_o"):
        setattr(sys, _name, _defaults["_o"])
    elif "_o" in _defaults:
        delattr(sys, _name)

try:
    from ._pitviper import (
        _install_sys_functions,
        _startup,
        activate_stack_trampoline,
        deactivate_stack_trampoline,
        is_stack_trampoline_active,
        status,
    )
except ImportError as error:
    from ._unavailable import (
        _install_sys_functions,
        _startup,
        activate_stack_trampoline,
        deactivate_stack_trampoline,
        is_stack_trampoline_active,
        set_reason,
        status,
    )

    set_reason(error)

_install_sys_functions()
