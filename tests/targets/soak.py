"""Everything that a long-running program does, round after round: soak.py SECONDS

Threads that start and end, forks, programs, exceptions, garbage, shared objects that come and go,
signals of its own, code objects that are made and thrown away. Each part checks its own result. The
last line is a JSON object: rounds, what was done, and the resident memory in KB of this process and
of its parent at a third of the time and at the end."""
import gc
import glob
import json
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import warnings
import _ctypes

CHILD_STATUS = 7
FUNCTIONS = 20
counts = {"threads": 0, "forks": 0, "programs": 0, "exceptions": 0, "objects": 0, "signals": 0,
          "alarms": 0, "functions": 0}


def check(holds, what):
    if not holds:
        sys.exit(f"soak: {what}")


def work(rounds):
    return sum(len(str(n)) for n in range(rounds))


def threads():
    results = []
    running = [threading.Thread(target=lambda: results.append(work(2000))) for _ in range(6)]
    for thread in running:
        thread.start()
    forks()  # while they run
    for thread in running:
        thread.join()
    check(results == [work(2000)] * 6, "a thread has lost its result")
    counts["threads"] += 6


def end_of(pid):
    return os.waitpid(pid, 0) == (pid, CHILD_STATUS << 8)


def forks():
    children = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            os._exit(CHILD_STATUS if work(1000) == 2890 else 1)
        children.append(pid)
    check(all([end_of(pid) for pid in children]), "a forked child is lost")
    counts["forks"] += 2


def programs():
    code = "import sys; sys.stdout.write(str(sum(range(1000)))); sys.exit(7)"
    ended = subprocess.run([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    check((ended.returncode, ended.stdout) == (7, b"499500"), "a program is lost")
    counts["programs"] += 1


def deep(depth):
    if depth == 0:
        raise LookupError("deep")
    try:
        return deep(depth - 1)
    finally:
        counts["exceptions"] += 1


def exceptions():
    try:
        deep(300)
    except LookupError as error:
        check(str(error) == "deep", "another exception")
    else:
        check(False, "no exception")
    endless = iter(lambda: next(n for n in [1]), 2)
    check([next(endless) for _ in range(100)] == [1] * 100, "an iterator is wrong")


class Node:
    freed = 0

    def __del__(self):
        Node.freed += 1


def garbage():
    before = Node.freed
    for _ in range(500):
        one, other = Node(), Node()
        one.other, other.other = other, one
    del one, other
    gc.collect()
    check(Node.freed - before == 1000, "garbage is not collected")


def shared_objects():
    for path in sorted(glob.glob(os.path.join(sysconfig.get_path("platstdlib"), "lib-dynload",
                                              "*.so")))[:4]:
        _ctypes.dlclose(_ctypes.dlopen(path, os.RTLD_LAZY))
        counts["objects"] += 1


def on_signal(number, frame):
    counts["signals"] += 1


def on_alarm(number, frame):
    counts["alarms"] += 1


def signals():
    before = counts["signals"]
    for _ in range(20):
        os.kill(os.getpid(), signal.SIGUSR1)
    check(counts["signals"] - before == 20, "a signal is lost")


def functions(serial):
    for n in range(FUNCTIONS):
        name = f"made_{serial}_{n}"
        names = {}
        exec(compile(f"def {name}(n):\n  total = 0\n  for i in range(n):\n    total += i\n"
                     f"  return total\n", f"<{name}>", "exec"), names)
        check(names[name](500) == 124750, "a function is wrong")
        counts["functions"] += 1


def resident_kb(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def memory():
    return [resident_kb(os.getpid()), resident_kb(os.getppid())]


def main(seconds):
    warnings.simplefilter("ignore")  # newer versions warn of fork beside threads
    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    begin = time.monotonic()
    rounds, third = 0, None
    while time.monotonic() < begin + seconds:
        threads()
        exceptions()
        garbage()
        shared_objects()
        signals()
        functions(rounds)
        if rounds % 10 == 0:
            programs()
        if third is None and time.monotonic() > begin + seconds / 3:
            third = memory()
        rounds += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        os.waitpid(-1, os.WNOHANG)
        check(False, "there is a child that nobody knows")
    except ChildProcessError:
        pass
    check(threading.active_count() == 1, "a thread has not ended")
    check(counts["alarms"] > 10 * seconds, "the timer is lost")
    print(json.dumps({"rounds": rounds, **counts, "third_kb": third, "end_kb": memory()}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
