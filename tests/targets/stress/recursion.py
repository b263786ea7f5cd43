"""Calls itself until Python says no, in the way that the first argument names; prints how deep it
was and what Python said. Then the recursion limit, or "default"; then, for a thread with a stack of
that size, kilobytes."""
import functools
import re
import sys
import threading

depth = 0


def deeper():
    global depth
    depth += 1


def plain():
    deeper()
    plain()


def with_handlers():
    deeper()
    try:
        with_handlers()
    except ZeroDivisionError:
        pass
    finally:
        deeper()


def generators():
    deeper()
    for x in generators():
        yield x


def by_map():
    deeper()
    list(map(lambda _: by_map(), [1]))


def by_eval():
    deeper()
    eval("by_eval()")


def by_re():
    deeper()
    re.sub("a", lambda match: by_re(), "a")


class Recursive:
    def __repr__(self):
        deeper()
        return repr(self)

    def __lt__(self, other):
        deeper()
        return sorted([self, other])

    def __getattr__(self, name):
        deeper()
        return getattr(self, name + "x")

    def __getitem__(self, index):
        deeper()
        return self[index]

    def __call__(self, *arguments):
        deeper()
        return functools.reduce(self, [1, 2])


KINDS = {
    "plain": plain, "handlers": with_handlers, "generators": lambda: list(generators()),
    "map": by_map, "eval": by_eval, "re": by_re, "repr": lambda: repr(Recursive()),
    "comparison": lambda: Recursive() < Recursive(), "getattr": lambda: Recursive().a,
    "getitem": lambda: Recursive()[0], "reduce": lambda: Recursive()(),
}


def run():
    global said
    try:
        KINDS[sys.argv[1]]()
    except (RecursionError, MemoryError) as error:
        said = type(error).__name__


said = "nothing"
if sys.argv[2] != "default":
    sys.setrecursionlimit(int(sys.argv[2]))
if len(sys.argv) > 3:
    threading.stack_size(int(sys.argv[3]) << 10)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
print(depth, said)
