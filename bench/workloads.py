"""Programs whose speed is compared, run as `python workloads.py NAME [forward_hook.so]`.

Prints the best CPU time of a few repetitions, in seconds; for `memory` the growth of the process per
function, in bytes. Start-up is not part of it.
"""
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls():
    fib(23)


class Account:
    def __init__(self):
        self.balance = 0

    def add(self, amount):
        self.balance += amount
        return self.current()

    def current(self):
        return self.balance


def methods():
    account = Account()
    for amount in range(40000):
        account.add(amount)


def numbers(n):
    for i in range(n):
        yield i


def generators():
    for _ in range(400):
        sum(x for x in numbers(200))


def stdlib_mix():
    import json
    import re
    import textwrap
    data = [{"name": f"user{i}", "tags": ["a", "b"], "n": i} for i in range(300)]
    for _ in range(4):
        text = json.dumps(data, indent=1)
        json.loads(text)
        re.findall(r"user(\d+)", text)
        textwrap.fill(text, 60)


FUNCTIONS = 20000


def make_functions():
    source = "\n".join(f"def f{i}(): return {i}" for i in range(FUNCTIONS))
    names = {}
    exec(compile(source, "generated.py", "exec"), names)
    return [names[f"f{i}"] for i in range(FUNCTIONS)]


def first_call_seconds():
    functions = make_functions()
    begin = time.perf_counter()
    for function in functions:
        function()
    return time.perf_counter() - begin


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def bytes_per_function():
    functions = make_functions()
    before = resident_bytes()
    for function in functions:
        function()
    return (resident_bytes() - before) / FUNCTIONS


def best_seconds(work, repetitions=12):
    times = []
    for _ in range(repetitions):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def main(name, hook=None):
    if hook:
        import ctypes
        if ctypes.PyDLL(hook).install() != 0:
            sys.exit("the forwarding hook could not be installed")
    if name == "first-calls":
        return first_call_seconds()
    if name == "memory":
        return bytes_per_function()
    return best_seconds(globals()[name.replace("-", "_")])


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
