"""Work of many kinds, so that stacks have many shapes: C code that calls back into Python, the
kernel, garbage collection, other libraries.

    mixed_work.py SECONDS [threads|children]        (of CPU time, each child)
"""
import gc
import hashlib
import json
import os
import re
import sys
import threading
import time


class Node:
    def __init__(self, value):
        self.value = value
        self.me = self


def work():
    text = json.dumps({"numbers": list(range(200)), "words": [str(i) for i in range(50)]})
    json.loads(text)
    re.sub(r"(\d+)", lambda match: match.group(1) + "_", text)
    hashlib.sha256(text.encode() * 50).hexdigest()
    sorted(range(500), key=lambda x: -x)
    [Node(i) for i in range(200)]
    os.stat("/tmp")


def work_until(end):
    while time.process_time() < end:
        for _ in range(20):
            work()
        gc.collect()


def main(seconds, way="alone"):
    end = time.process_time() + float(seconds)  # a child's clock starts at 0
    if way == "threads":
        threads = [threading.Thread(target=work_until, args=(end,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif way == "children":
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                work_until(end)
                os._exit(0)
            children.append(child)
        for child in children:
            os.waitpid(child, 0)
    else:
        work_until(end)


main(*sys.argv[1:])
