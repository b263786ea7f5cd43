"""deep_and_changing.py SECONDS: a deep stack that is never the same for long.

Each level calls the next one directly, or lets libc's qsort call it: then libc stands between the two.
Now and then a level does so again, another way, so that what is deeper is made anew.
"""
import ctypes
import random
import sys
import time

LEVELS = 400
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc = ctypes.CDLL(None)
two_numbers = (ctypes.c_int * 2)(1, 2)
end = time.monotonic() + float(sys.argv[1])


def down(level):
    if level == 0:
        return work()
    for _ in range(3 if random.random() < 0.02 else 1):
        if time.monotonic() > end:
            return
        if random.random() < 0.6:
            down(level - 1)
        else:
            def compare(a, b):
                down(level - 1)
                return 0
            libc.qsort(two_numbers, 2, 4, COMPARE(compare))


def work():
    for _ in range(3):
        sum(range(3000))


sys.setrecursionlimit(10000)
random.seed(1)
while time.monotonic() < end:
    down(LEVELS)
