"""Programs that are recorded: `python record_workloads.py NAME ROUNDS` does a fixed amount of work and
prints "workload": the number of the process, its CPU time up to here, in seconds, and that of each part of
the work. Start-up is in the second only. Threads get in each other's way as it happens: their work is
one part. With a third word, `in-turn`, every second part of the work is not recorded."""
import os
import sys
import threading
import time

from switch import Switch
from workloads import fib, stdlib_mix


IS_IN_TURN = "in-turn" in sys.argv
PARTS = 80 if IS_IN_TURN else 20


def calls(rounds):
    for _ in range(rounds):
        fib(18)


def mix(rounds):
    for _ in range(max(rounds // 10, 1)):
        stdlib_mix()


def threads(rounds):
    running = [threading.Thread(target=calls, args=(max(rounds // 8, 1),)) for _ in range(8)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def in_parts(work, rounds, parts=PARTS):
    """The CPU time of each part."""
    switch = Switch()
    times = []
    for i in range(parts):
        if IS_IN_TURN:
            (switch.off if i % 2 else switch.on)()
        begin = time.process_time()
        work(rounds // parts)
        times.append(time.process_time() - begin)
    return times


def at_depth(depth, rounds):
    return at_depth(depth - 1, rounds) if depth else in_parts(calls, rounds)


WORK = {
    "calls": lambda rounds: in_parts(calls, rounds),
    "stdlib-mix": lambda rounds: in_parts(mix, rounds),
    "8-threads": lambda rounds: in_parts(threads, rounds, parts=1),
    "300-deep": lambda rounds: at_depth(300, rounds),
    "900-deep": lambda rounds: at_depth(900, rounds),
}

if __name__ == "__main__":
    parts_s = WORK[sys.argv[1]](int(sys.argv[2]))
    print("workload", os.getpid(), time.process_time(), *parts_s)
