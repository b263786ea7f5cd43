"""First parse, then draw, each for its seconds of CPU time: phases.py PARSE DRAW

Most time of each phase goes to one line, which says so. Then a function calls itself, and three
threads work a little."""
import sys
import threading
import time
import zlib

TEXT = "name=value;" * 400
BLOCK = bytes(range(256)) * 40


def split_fields(text):
    fields = []
    for field in text.split(";"):
        fields.append(field.partition("=")[::2])  # the hot line of parse
    return fields


def parse(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        split_fields(TEXT)


def draw(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        zlib.compress(BLOCK, 9)  # the hot line of draw


def descend(depth):
    if depth:
        return descend(depth - 1)  # the hot line of descend: on the stack a hundred times
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass


def helper():
    for _ in range(20):
        split_fields(TEXT)
        time.sleep(0.002)


def main():
    parse(float(sys.argv[1]))
    draw(float(sys.argv[2]))
    descend(100)
    threads = [threading.Thread(target=helper) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
