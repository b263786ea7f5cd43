"""Sends and receives in ways that a signal may end half-way, and prints what a program without signals never
sees: how many of each were not whole, or did not take the time that was set. python transfers.py"""
import json
import os
import socket
import struct
import time

MUCH = b"x" * (1 << 20)
LIMIT_S = 0.3


def reader(read, end, pause_s=0.0005):
    """Another process that reads slowly to the end."""
    if os.fork() == 0:
        end()
        while read(1 << 16):
            time.sleep(pause_s)
        os._exit(0)


def writes(write_of):
    receiving, sending = os.pipe()
    reader(lambda most: os.read(receiving, most), lambda: os.close(sending))
    write = write_of(sending)
    short = sum(write() != len(MUCH) for _ in range(8))
    os.close(sending)
    os.wait()
    return short


def sends(send):
    one, other = socket.socketpair()
    reader(other.recv, one.close)
    other.close()
    short = sum(send(one) != len(MUCH) for _ in range(8))
    one.close()
    os.wait()
    return short


def receives(receive):
    """Two halves, one some time after the other."""
    one, other = socket.socketpair()
    if os.fork() == 0:
        one.close()
        for _ in range(20):
            other.sendall(b"a" * 100)
            time.sleep(0.01)
            other.sendall(b"b" * 100)
            time.sleep(0.01)
        os._exit(0)
    other.close()
    wrong = 0
    for _ in range(20):
        data = receive(one)
        wrong += data != b"a" * 100 + b"b" * 100
        while 0 < len(data) < 200:
            data += one.recv(200 - len(data))
    os.wait()
    return wrong


def receive_parts(one):
    parts = [bytearray(30), bytearray(120), bytearray(50)]
    count = one.recvmsg_into(parts, 0, socket.MSG_WAITALL)[0]
    return b"".join(parts)[:count]


def ends_in_time(option, call, kind=socket.SOCK_STREAM):
    """1 if a call on a socket with a time limit did not end with it."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    one.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 0, int(LIMIT_S * 1e6)))
    begin = time.monotonic()
    try:
        call(one)
    except BlockingIOError:
        return 0 if LIMIT_S * 0.9 < time.monotonic() - begin < LIMIT_S * 5 else 1
    return 1


def fill(one):
    while True:
        one.send(MUCH)


def accepts_in_time():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(LIMIT_S * 1e6)))
        begin = time.monotonic()
        try:
            listener.accept()
        except BlockingIOError:
            return 0 if LIMIT_S * 0.9 < time.monotonic() - begin < LIMIT_S * 5 else 1
    return 1


def reads_parts():
    """Of a device that never has less."""
    with open("/dev/zero", "rb", 0) as zero:
        parts = [bytearray(1 << 23), bytearray(1 << 24)]
        return sum(os.readv(zero.fileno(), parts) != 3 << 23 for _ in range(5))


def never_waits():
    """A socket that does not wait has no use for its time limit."""
    one, other = socket.socketpair()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))
    one.setblocking(False)
    begin = time.monotonic()
    for _ in range(2000):
        try:
            one.send(MUCH)
        except BlockingIOError:
            other.recv(1 << 20)
    return int(time.monotonic() - begin > 5)


thirds = [MUCH[:1000], MUCH[1000:400000], MUCH[400000:]]
print(json.dumps({
    "write": writes(lambda fd: lambda: os.write(fd, MUCH)),
    "writev": writes(lambda fd: lambda: os.writev(fd, thirds)),
    "send": sends(lambda one: one.send(MUCH)),
    "sendmsg": sends(lambda one: one.sendmsg(thirds)),
    "recv": receives(lambda one: one.recv(200, socket.MSG_WAITALL)),
    "recvmsg": receives(receive_parts),
    "recv with a time limit": ends_in_time(socket.SO_RCVTIMEO, lambda one: one.recv(1)),
    "recvfrom with a time limit": ends_in_time(socket.SO_RCVTIMEO, lambda one: one.recvfrom(1),
                                               socket.SOCK_DGRAM),
    "recvmsg with a time limit": ends_in_time(socket.SO_RCVTIMEO, lambda one: one.recvmsg(1)),
    "read with a time limit": ends_in_time(socket.SO_RCVTIMEO, lambda one: os.read(one.fileno(), 1)),
    "send with a time limit": ends_in_time(socket.SO_SNDTIMEO, fill),
    "accept with a time limit": accepts_in_time(),
    "readv": reads_parts(),
    "never waits": never_waits(),
}))
