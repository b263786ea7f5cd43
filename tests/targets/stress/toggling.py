"""On and off, again and again. The argument says how."""
import sys
import threading
import time

import trampolines

CYCLES = 1000
THREADS = 20
SECONDS = 2


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def new_function(i):
    names = {}
    exec(f"def made_{i}(): return 1", names)
    return names[f"made_{i}"]


def cycles():
    for i in range(CYCLES):
        trampolines.deactivate()
        assert not trampolines.is_active()
        new_function(f"while_off_{i}")()
        trampolines.activate("perf")
        assert trampolines.is_active() in (True, None)
        new_function(i)()
    return fib(10)


def switching():
    for i in range(CYCLES):
        trampolines.activate("perf_jit" if i % 2 == 0 else "perf")
        new_function(i)()
        fib(3)
    return fib(10)


def twice():
    for i in range(CYCLES):
        trampolines.activate("perf")
        trampolines.activate("perf")
        trampolines.deactivate()
        trampolines.deactivate()
    trampolines.activate("perf")
    return fib(10)


def threads():
    end = time.monotonic() + SECONDS
    wrong = []

    def work(number):
        i = 0
        while time.monotonic() < end:
            i += 1
            if fib(6) != 8 or new_function(f"{number}_{i % 50}")() != 1:
                wrong.append(i)
            if sum(x for x in range(10)) != 45:
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
    for worker in workers:
        worker.start()
    while time.monotonic() < end:
        trampolines.deactivate()
        time.sleep(0.0005)
        trampolines.activate("perf")
        time.sleep(0.0005)
        trampolines.activate("perf_jit")
    for worker in workers:
        worker.join()
    trampolines.activate("perf")
    return fib(10), wrong


print({"cycles": cycles, "switching": switching, "twice": twice, "threads": threads}[sys.argv[1]]())
