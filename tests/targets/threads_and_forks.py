"""Work in threads (`threads`) or in forked children (`forks`): three of them, N rounds each."""
import os
import sys
import threading


def work(rounds):
    total = 0
    for i in range(rounds):
        total += len(str(i))
    return total


def threads(rounds):
    running = [threading.Thread(target=work, args=(rounds,)) for _ in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def forks(rounds):
    for _ in range(3):
        if os.fork() == 0:
            work(rounds)
            os._exit(0)
    for _ in range(3):
        os.wait()


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]))
