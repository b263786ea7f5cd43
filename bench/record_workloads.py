"""Programs that are recorded: `python record_workloads.py NAME ROUNDS` does a fixed amount of work and
prints "workload": the CPU time that it took, in seconds, that of the whole process up to here, and the
number of the process. Start-up is part of the second only."""
import os
import sys
import threading
import time

from workloads import fib, stdlib_mix


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


def at_depth(depth, rounds):
    return at_depth(depth - 1, rounds) if depth else calls(rounds)


WORK = {
    "calls": calls,
    "stdlib-mix": mix,
    "8-threads": threads,
    "300-deep": lambda rounds: at_depth(300, rounds),
    "900-deep": lambda rounds: at_depth(900, rounds),
}

if __name__ == "__main__":
    begin = time.process_time()
    WORK[sys.argv[1]](int(sys.argv[2]))
    end = time.process_time()
    print("workload", end - begin, end, os.getpid())
