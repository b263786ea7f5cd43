"""Every way in which Python code comes to run, with its results printed."""
import asyncio
import ctypes
import functools
import sys
import traceback


def generator(n):
    try:
        for i in range(n):
            got = yield i
            if got:
                yield got
    except ValueError as error:
        yield f"thrown: {error}"
    finally:
        print("generator ends")


def generators():
    print(list(generator(3)))
    g = generator(5)
    print(next(g), g.send("sent"), g.throw(ValueError("in")))
    g.close()
    next(generator(2))

    def delegate():
        yield from generator(2)
    print(list(delegate()))


async def asynchronous(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def coroutine(n):
    return [i async for i in asynchronous(n)] + [await asyncio.sleep(0, i) for i in range(n)]


def coroutines():
    async def failing():
        await asyncio.sleep(0)
        raise KeyError("of a coroutine")

    async def together():
        return await asyncio.gather(coroutine(3), coroutine(4), failing(), return_exceptions=True)
    print(asyncio.run(together()))


def exceptions():
    def inner(n):
        if n == 0:
            raise LookupError("at the bottom")
        try:
            inner(n - 1)
        finally:
            n += 1

    def outer():
        try:
            inner(5)
        except LookupError as error:
            raise RuntimeError("from there") from error
    try:
        outer()
    except RuntimeError as error:
        print(len(traceback.extract_tb(error.__cause__.__traceback__)), repr(error.__cause__))
        print([frame.name for frame in traceback.extract_tb(error.__cause__.__traceback__)])


def evaluated():
    names = {}
    exec("class Made:\n    def method(self): return [x for x in range(3)]\nmade = Made()", names)
    print(eval("made.method()", names), eval("(lambda: 42)()"))


def callbacks():
    print(sorted("banana", key=lambda c: -ord(c)), functools.reduce(lambda a, b: a * b, range(1, 9)))
    print(list(map(lambda x: x + 1, range(3))), max(range(9), key=lambda x: x % 5))
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int),
                               ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * 6)(5, 1, 4, 2, 6, 3)
    ctypes.CDLL(None).qsort(numbers, 6, ctypes.sizeof(ctypes.c_int),
                            compare(lambda a, b: a[0] - b[0]))
    print(list(numbers))


class Special:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Special({self.value})"

    def __lt__(self, other):
        return self.value < other.value

    def __getattr__(self, name):
        return f"no {name}"

    def __getitem__(self, index):
        return index * self.value

    def __enter__(self):
        return self

    def __exit__(self, *what):
        return True

    def __del__(self):
        global deleted
        deleted += 1

    @property
    def twice(self):
        return self.value * 2


deleted = 0


def methods():
    for i in range(200):  # often enough to be specialised
        with Special(i) as special:
            special.twice, special[2], special.missing
            raise ValueError
    print(sorted([Special(2), Special(1)]), Special(3).twice, Special(4)[5], Special(5).missing)
    print(deleted)


def events_of(install, remove):
    """Which functions of this file a tracer sees, and how often."""
    seen = {}

    def observe(frame, event, argument):
        if frame.f_code.co_filename == __file__ and event in ("call", "return"):
            key = frame.f_code.co_name, event
            seen[key] = seen.get(key, 0) + 1
        return observe
    install(observe)
    list(generator(3))
    Special(1).twice
    remove(None)
    print(sorted(seen.items()))


def monitoring():
    if sys.version_info < (3, 12):
        return
    seen = []
    tool = sys.monitoring
    tool.use_tool_id(4, "stress")
    tool.register_callback(4, tool.events.PY_START, lambda code, _: seen.append(code.co_name))
    tool.set_events(4, tool.events.PY_START)
    list(generator(3))
    Special(1).twice
    tool.set_events(4, 0)
    tool.free_tool_id(4)
    print(seen)


generators()
coroutines()
exceptions()
evaluated()
callbacks()
methods()
events_of(sys.settrace, sys.settrace)
events_of(sys.setprofile, sys.setprofile)
monitoring()
