"""Processes that begin and end in every way. The argument says which."""
import multiprocessing
import os
import sys
import threading
import time

FORKS = 200
THREADS = 4
PROCESSES = 3


def square(n):
    return n * n


def in_child(n):
    names = {}
    exec(f"def only_in_child(): return {n}", names)
    return names["only_in_child"]()


def keep_calling(stop):
    while not stop.is_set():
        square(sum(map(square, range(20))))
        time.sleep(0.0005)  # else the main thread waits for the GIL most of the time


def start_threads(stop, daemon=False):
    threads = [threading.Thread(target=keep_calling, args=(stop,), daemon=daemon)
               for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


def forks():
    """Most children end hard, right after a call; some do all that a program does at its end."""
    stop = threading.Event()
    threads = start_threads(stop)
    statuses = set()
    for i in range(FORKS):
        pid = os.fork()
        if pid == 0:
            in_child(i)
            os._exit(0)
        statuses.add(os.waitpid(pid, 0)[1])
    stop.set()
    for thread in threads:
        thread.join()
    print(statuses)


def pool(method):
    with multiprocessing.get_context(method).Pool(PROCESSES) as workers:
        print(workers.map(square, range(50)), sum(workers.map(in_child, range(50))))
        workers.close()
        workers.join()


def hard_exit():
    in_child(1)
    sys.stdout.write("ends hard\n")
    sys.stdout.flush()
    os._exit(3)


def threads_at_exit(daemon):
    stop = threading.Event()
    start_threads(stop, daemon)
    time.sleep(0.2)
    print("the main thread ends")
    if not daemon:
        threading.Timer(0.3, stop.set).start()


def killed():
    in_child(1)
    sys.stdout.write("kills itself\n")
    sys.stdout.flush()
    os.kill(os.getpid(), 9)


if __name__ == "__main__":
    what = sys.argv[1]
    if what in ("fork", "spawn", "forkserver"):
        pool(what)
    else:
        {"forks": forks, "hard_exit": hard_exit, "killed": killed,
         "daemon_threads": lambda: threads_at_exit(True),
         "running_threads": lambda: threads_at_exit(False)}[what]()
