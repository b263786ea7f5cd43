"""Many functions; and functions that die, so that others get their addresses."""
import gc
import os
import sys


def many(count=50000):
    names = {}
    exec("\n".join(f"def function_{i}(): return {i}" for i in range(count)), names)
    print(sum(names[f"function_{i}"]() for i in range(count)))


def live_for_one_call(i):
    names = {}
    exec(f"def short_lived_{i}(): return {i}", names)
    return names[f"short_lived_{i}"]()


def dying(count=5000):
    """Some addresses come again at once, all of them in the end. The children look at everything
    that is noted, and must not find the dead."""
    total = 0
    for i in range(count):
        total += live_for_one_call(i)
        if i % 1000 == 999:
            gc.collect()
            pid = os.fork()
            if pid == 0:
                live_for_one_call(i)
                os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
    print(total)


{"many": many, "dying": dying}[sys.argv[1]]()
