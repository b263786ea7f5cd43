"""Threads that wait, each for something else, and one that works: python waits.py SECONDS"""
import os
import select
import socket
import subprocess
import sys
import threading
import time

SECONDS = float(sys.argv[1])
held = threading.Lock()
silent, other_end = socket.socketpair()
impatient, silent_end = socket.socketpair()
impatient.settimeout(SECONDS + 60)
poll = select.epoll()
poll.register(silent, select.EPOLLIN)
pipe = os.pipe()


def for_sleep():
    time.sleep(SECONDS)


def for_lock():
    held.acquire()


def for_network():
    silent.recv(1)


def for_ready():
    select.select([silent], [], [], SECONDS)


def for_epoll():
    poll.poll(SECONDS)


def for_answer():
    impatient.recv(1)


def for_event():
    threading.Event().wait(SECONDS)


def for_pipe():
    os.read(pipe[0], 1)


def for_process():
    os.waitpid(subprocess.Popen(["sleep", str(SECONDS)]).pid, 0)


def works():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        sum(range(1000))


held.acquire()
names = [for_sleep, for_lock, for_network, for_ready, for_epoll, for_answer, for_event, for_pipe,
         for_process, works]
threads = [threading.Thread(target=function) for function in names]
for thread in threads:
    thread.start()
threads[-1].join()
held.release()
other_end.send(b"x")
silent_end.send(b"x")
os.write(pipe[1], b"x")
for thread in threads:
    thread.join()
