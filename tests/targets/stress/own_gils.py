"""Interpreters in threads, from 3.12 on each with a GIL of its own: they call, make and drop
functions and switch on and off at the same time, while the main one takes the file away, so that
all functions of all of them must be named again. At the end the file is new once more, and each
calls a function that it has called all the time."""
import os
import sys
import threading
import time

import trampolines

INTERPRETERS = 4
SECONDS = 1.5
MAP = f"/tmp/perf-{os.getpid()}.map"
STOP = "/tmp/stop"

CODE = f"""
import os, sys
sys.path.insert(0, {sys.path[0]!r})
import trampolines
trampolines.activate("perf")
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def known_NUMBER():
    return fib(8)
rounds = 0
while not os.path.exists({STOP!r}):
    rounds += 1
    names = {{}}
    exec("def made(): return 1\\nclass Made:\\n def __init__(self): self.value = made()", names)
    assert known_NUMBER() == 21 and names["Made"]().value == 1
    if rounds % 7 == 0:
        trampolines.deactivate()
        trampolines.activate("perf")
known_NUMBER()
"""


def create():
    """An interpreter, as (run a text, end it)."""
    if sys.version_info >= (3, 14):
        from concurrent import interpreters
        interpreter = interpreters.create()
        return interpreter.exec, interpreter.close
    if sys.version_info >= (3, 13):
        import _interpreters as module
    else:
        import _xxsubinterpreters as module
    identity = module.create()
    return lambda text: fail_on(module.run_string(identity, text)), lambda: module.destroy(identity)


def fail_on(failure):
    assert failure is None, failure


def run_one(number, results):
    run, end = create()
    run(CODE.replace("NUMBER", str(number)))
    end()
    results.append(number)


def new_file():
    if os.path.exists(MAP):
        os.unlink(MAP)
    trampolines.activate("perf")


results = []
threads = [threading.Thread(target=run_one, args=(number, results))
           for number in range(INTERPRETERS)]
for thread in threads:
    thread.start()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    new_file()
    time.sleep(0.001)
new_file()
open(STOP, "w").close()
for thread in threads:
    thread.join()
print(sorted(results))
