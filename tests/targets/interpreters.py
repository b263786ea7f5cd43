"""Functions that let another interpreter run something, in the way that the argument names. Each
prints what came out.

    nested      in the main thread, called through C
    unlocked    the same, and the inner function works without the GIL
    twice       in an interpreter that lets a third one do it
    threads     in threads, each with an interpreter of its own, which has its own GIL from 3.12 on
    others      in threads that did not make the interpreters themselves
    pool        in an InterpreterPoolExecutor
    churn       in threads that make and end interpreters all the time
"""
import os
import sys
import threading

NAME = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
interpreters = __import__(NAME)

# Says by a file descriptor that it came to its end.
SPIN = """
import os, time
def leaf():
    return sum(i * i for i in range(1000))
def inner():
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        leaf()
inner()
os.write(FILE, b"+")
"""

UNLOCKED = """
import os, time, zlib
DATA = bytes(1 << 20)
def inner():
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        zlib.crc32(DATA)
inner()
os.write(FILE, b"+")
"""

TWICE = f"""
import {NAME} as interpreters
def middle(identity):
    assert interpreters.run_string(identity, SPIN) is None
identity = interpreters.create()
middle(identity)
interpreters.destroy(identity)
"""


def outer(identity, code):
    assert interpreters.run_string(identity, code) is None


def once(code):
    identity = interpreters.create()
    for _ in map(outer, [identity], [code]):
        pass
    interpreters.destroy(identity)


def in_threads(function, arguments):
    threads = [threading.Thread(target=function, args=[argument]) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def other(both):
    outer(*both)


def others(code):
    identities = [interpreters.create() for _ in range(2)]
    in_threads(other, [(identity, code) for identity in identities])
    for identity in identities:
        interpreters.destroy(identity)


def churn(code):
    for _ in range(20):
        once(code)


def work(number):
    total = 0
    for i in range(number):
        total += i * i
    return total


def pool():
    from concurrent.futures import InterpreterPoolExecutor
    with InterpreterPoolExecutor(2) as executor:
        print(sum(executor.map(work, [300_000] * 60)))


def main(way):
    reader, writer = os.pipe()

    def fill(code, seconds):
        return code.replace("SECONDS", str(seconds)).replace("FILE", str(writer))
    if way == "nested":
        once(fill(SPIN, 1))
    elif way == "unlocked":
        once(fill(UNLOCKED, 1))
    elif way == "twice":
        once(TWICE.replace("SPIN", repr(fill(SPIN, 1))))
    elif way == "threads":
        in_threads(once, [fill(SPIN, 0.7)] * 3)
    elif way == "others":
        others(fill(SPIN, 0.7))
    elif way == "churn":
        in_threads(churn, [fill(SPIN, 0.003)] * 3)
    elif way == "pool":
        pool()
    os.close(writer)
    print(os.read(reader, 1000).decode())


if __name__ == "__main__":
    main(sys.argv[1])
