"""Classes of every kind, made and called while trampolines go on and off. 3.13 is special here: see
src/interp/class_calls.c. Prints what instances hold, and whether classes are as they were."""
import copy
import ctypes
import gc
import pickle
import sys
import threading

import trampolines

CALLS = 50  # more than it takes for a call to be specialised
ROUNDS = 30
TP_ALLOC = 304  # of 3.13


class Plain:
    def __init__(self, value=1):
        self.value = value


class Inherits(Plain):
    pass


class Slots:
    __slots__ = ("value",)

    def __init__(self):
        self.value = 2


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    def __init__(self):
        self.value = 3


class WithNew:
    def __new__(cls):
        return object.__new__(cls)

    def __init__(self):
        self.value = 4


def allocates_as_ever(kind):
    if sys.version_info[:2] != (3, 13):
        return True
    allocator = ctypes.c_void_p.from_address(id(kind) + TP_ALLOC).value
    return allocator == ctypes.cast(ctypes.pythonapi.PyType_GenericAlloc, ctypes.c_void_p).value


def use(kind):
    for _ in range(CALLS):
        instance = kind()
    copies = copy.copy(instance), copy.deepcopy(instance), pickle.loads(pickle.dumps(instance, 2))
    return instance.value, [type(each) is kind and each.value for each in copies]


def kinds():
    """Those above, those that are made while trampolines are on, and what becomes of them later."""
    class Made:
        def __init__(self):
            self.value = 5

    globals()["Made"] = Made
    Made.__qualname__ = "Made"
    all_kinds = [Plain, Inherits, Slots, WithMeta, WithNew, Made]
    print([use(kind) for kind in all_kinds])
    instance = Plain(6)
    for kind in (Inherits, Made, WithMeta, Plain):
        instance.__class__ = kind
    print(instance.value, isinstance(instance, Plain))
    trampolines.deactivate()
    print([allocates_as_ever(kind) for kind in all_kinds], [use(kind) for kind in all_kinds])
    print(allocates_as_ever(type("Later", (Made,), {})))


def frozen():
    gc.freeze()
    for _ in range(3):
        trampolines.deactivate()
        print([use(kind) for kind in (Plain, Inherits, Slots)])
        trampolines.activate("perf")
        print([use(kind) for kind in (Plain, Inherits, Slots)])


def functions_named_init():
    """What is called __init__ need not have a first argument: its place holds what the function
    before left there, here an address where nothing is any more."""
    def leaves_nothing():
        gone = bytes(1 << 24)  # noqa: F841

    def __init__():
        return 7

    def anything(*arguments):
        return len(arguments)

    body = compile("8", "<string>", "eval").replace(co_name="__init__")
    rest = anything.__code__.replace(co_name="__init__")
    for _ in range(ROUNDS):
        leaves_nothing()
        result = [__init__()]
        leaves_nothing()
        result.append(eval(body))
        leaves_nothing()
        exec("class __init__: pass", {"__name__": "made"})
        leaves_nothing()
        result.append(type(anything)(rest, globals())(1, 2))
    print(result)


def while_instances_are_made():
    """Threads make classes and instances while another switches."""
    stop = threading.Event()
    wrong = []

    def make():
        while not stop.is_set():
            kind = type("Short", (Plain,), {"__init__": lambda self: setattr(self, "value", 9)})
            if [kind().value, Plain().value, Slots().value, Inherits(8).value] != [9, 1, 2, 8]:
                wrong.append(kind)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        trampolines.deactivate()
        trampolines.activate("perf")
        Plain()
    stop.set()
    for thread in threads:
        thread.join()
    gc.collect()
    print(wrong)


globals()[sys.argv[1]]()
