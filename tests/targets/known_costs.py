"""Programs whose costs are known: known_costs.py PROGRAM SECONDS

    lines, functions  the same work, a different number of times: the truth is in the code
    languages         work in C and in Python; the CPU time of each part is measured around it
    sleep             half of the time asleep, half at work

Prints a JSON object with the truth: what each part costs, in some unit. A line is named by the
comment behind it."""
import json
import re
import sys
import time
import zlib

# Work of ten milliseconds or so: what it costs to call it does not count, and each gets samples. Shorter
# than the time between two samples, a part would have as many as chance gives it.
DIGITS = "0123456789" * 1000000


def unit():
    return DIGITS.count("345678901234567891")


def lines():
    unit()  # once
    unit(), unit(), unit()  # three times


def one():
    for _ in range(1):
        unit()


def nine():
    for _ in range(9):
        unit()


def until(seconds, step):
    end = time.process_time() + seconds
    while time.process_time() < end:
        step()


def both():
    one()
    nine()


def sorting():
    sorted(NUMBERS)


def json_text():
    json.loads(JSON)


def regex():
    re.findall(r"(\d+)([a-z]+)x?", TEXT)


def compression():
    zlib.compress(BYTES, 6)


def python_code():
    total = 0
    for n in range(30000):
        total += n & 7
    return total


NUMBERS = [(n * 7919) % 100003 for n in range(20000)]
JSON = json.dumps([{"name": str(n), "values": [n, n + 1, n + 2]} for n in range(2000)])
TEXT = "123abc 45def 6789ghijk " * 2000
BYTES = DIGITS[:300000].encode()


def languages(seconds):
    times = {}
    end = time.process_time() + seconds
    while time.process_time() < end:
        for part in (sorting, json_text, regex, compression, python_code):
            begin = time.process_time()
            for _ in range(10):
                part()
            times[part.__name__] = times.get(part.__name__, 0) + time.process_time() - begin
    return times


def asleep(seconds):
    time.sleep(seconds)


def awake(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def sleep(seconds):
    times = {"asleep": 0, "awake": 0}
    for _ in range(10):
        for part in (asleep, awake):
            begin = time.monotonic()
            part(seconds / 20)
            times[part.__name__] += time.monotonic() - begin
    return times


def main(program, seconds):
    if program == "lines":
        until(seconds, lines)
        return {"once": 1, "three times": 3}
    if program == "functions":
        until(seconds, both)
        return {"one": 1, "nine": 9}
    return {"languages": languages, "sleep": sleep}[program](seconds)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], float(sys.argv[2]))))
