"""A server that has a thread, or a process, for each request, and each takes less time than there is
between two samples: short_lived.py threads|crowds|forks|phases REQUESTS SECONDS

    threads  one after the other
    crowds   eight at a time
    forks    processes, which end without cleaning up
    phases   threads with a short part at their end

Prints a JSON object with the CPU time that each function has taken, in seconds."""
import json
import os
import sys
import threading
import time


def request(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def most_of_it(seconds):
    request(seconds)


def end_of_it(seconds):
    request(seconds)


def request_in_phases(seconds):
    most_of_it(0.8 * seconds)
    end_of_it(0.2 * seconds)


def one_after_the_other(count, seconds, at_once=1, target=request):
    for _ in range(count // at_once):
        threads = [threading.Thread(target=target, args=(seconds,)) for _ in range(at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def crowds(count, seconds):
    one_after_the_other(count, seconds, at_once=8)


def phases(count, seconds):
    one_after_the_other(count, seconds, target=request_in_phases)


def forks(count, seconds):
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            request(seconds)
            os._exit(0)
        os.waitpid(pid, 0)


def afterwards():
    request(0.3)


def main(kind, count, seconds):
    serve = {"threads": one_after_the_other, "crowds": crowds, "forks": forks, "phases": phases}[kind]
    begin = time.thread_time()
    serve(count, seconds)
    print(json.dumps({"request": count * seconds, "serve": time.thread_time() - begin, "afterwards": 0.3}))
    afterwards()


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
