"""Interpreters in the same process, on at the same time as the main one, ending before it."""
import sys

import trampolines

CODE = f"""
import sys
sys.path.insert(0, {sys.path[0]!r})
import trampolines
trampolines.activate("perf")
def in_subinterpreter(n):
    return sum(i for i in range(n))
assert in_subinterpreter(10) == 45
assert trampolines.is_active() in (True, None)
for _ in range(20):
    trampolines.deactivate()
    trampolines.activate("perf")
    in_subinterpreter(3)
"""


def in_main(n):
    return sum(i for i in range(n))


def run_one():
    if sys.version_info >= (3, 14):
        from concurrent import interpreters
        interpreter = interpreters.create()
        interpreter.exec(CODE)
        interpreter.close()
        return
    if sys.version_info >= (3, 13):
        import _interpreters as module
    else:
        import _xxsubinterpreters as module
    identity = module.create()
    failure = module.run_string(identity, CODE)
    assert failure is None, failure
    module.destroy(identity)


for _ in range(5):
    run_one()
    print(in_main(10), trampolines.is_active() in (True, None))
