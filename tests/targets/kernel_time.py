"""Works inside and outside the kernel, and sleeps: python kernel_time.py SECONDS

Prints the CPU time of each part in seconds, and of the whole process, as JSON."""
import json
import sys
import time

CPU_S = dict.fromkeys(["outside", "short_calls", "long_calls"], 0.0)


def outside():
    sum(number * number for number in range(30000))


def short_calls(source):
    for _ in range(250):
        source.read(4096)


def long_calls(source):
    source.read(4 << 20)  # some milliseconds


def timed(part, *arguments):
    begin = time.process_time()
    part(*arguments)
    CPU_S[part.__name__] += time.process_time() - begin


def main():
    end = time.process_time() + float(sys.argv[1])
    with open("/dev/urandom", "rb", buffering=0) as source:
        while time.process_time() < end:
            timed(outside)
            timed(short_calls, source)
            timed(long_calls, source)
            time.sleep(0.001)
    print(json.dumps({**CPU_S, "all": time.process_time()}))


main()
