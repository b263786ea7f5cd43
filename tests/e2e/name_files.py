"""The files that tell profilers the names of code made at run time: making, reading, removing them.

The readers are the oracle for `pitviper inspect`, so they share nothing with it: a page of Python
that knows just what CPython and jit_spin write, and takes only whole files.
"""
import functools
import glob
import os
import struct
import subprocess
from pathlib import Path
from typing import Dict, List, NamedTuple

from .command import words
from .targets import MY_SCRIPT

JITDUMP_HEADER = struct.Struct("=IIIIIIQQ")  # magic, version, size, machine, pad, pid, time, flags
JITDUMP_PREFIX = struct.Struct("=IIQ")       # type, size, time
JITDUMP_LOAD = struct.Struct("=IIQQQQ")      # pid, tid, vma, address, size, index
RECORD_TYPES = ["load", "move", "debug_info", "close", "unwinding_info"]


class Entry(NamedTuple):
    start: int
    size: int
    name: str


class Record(NamedTuple):
    kind: str
    offset: int
    size: int


class Jitdump(NamedTuple):
    pid: int
    records: List[Record]
    functions: List[Entry]

    def counts(self) -> Dict[str, int]:
        kinds = [record.kind for record in self.records]
        return {kind: kinds.count(kind) for kind in RECORD_TYPES}


def perf_map_of(pid):
    return Path(f"/tmp/perf-{pid}.map")


def jitdump_of(pid):
    return Path(f"/tmp/jit-{pid}.dump")


def remove(pid):
    """Removes what a process left in /tmp, and what `perf inject` made of it."""
    for path in [perf_map_of(pid), jitdump_of(pid), *glob.glob(f"/tmp/jitted-{pid}-*.so")]:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)


def written_by(file_of, *command):
    """The content of perf_map_of or jitdump_of a process that runs the command to its end."""
    process = subprocess.Popen(words(*command))
    try:
        assert process.wait(timeout=60) == 0
        return file_of(process.pid).read_bytes()
    finally:
        process.kill()
        remove(process.pid)


def read_perf_map(data):
    entries = []
    for line in data.decode().split("\n")[:-1]:  # str.splitlines() knows more line ends
        start, size, name = line.split(" ", 2)
        entries.append(Entry(int(start, 16), int(size, 16), name))
    return entries


def read_jitdump(data):
    _, _, offset, _, _, pid, _, _ = JITDUMP_HEADER.unpack_from(data)
    records, functions = [], []
    while offset < len(data):
        kind, size, _ = JITDUMP_PREFIX.unpack_from(data, offset)
        records.append(Record(RECORD_TYPES[kind], offset, size))
        if records[-1].kind == "load":
            body = offset + JITDUMP_PREFIX.size
            _, _, _, start, code_size, _ = JITDUMP_LOAD.unpack_from(data, body)
            name = data[body + JITDUMP_LOAD.size:].split(b"\0", 1)[0]
            functions.append(Entry(start, code_size, name.decode()))
        offset += size
    return Jitdump(pid, records, functions)


@functools.lru_cache(maxsize=None)
def perf_map_by(python):
    """What an interpreter writes about the documents' script."""
    return written_by(perf_map_of, python, "-X", "perf", MY_SCRIPT)


@functools.lru_cache(maxsize=None)
def jitdump_by(python):
    return written_by(jitdump_of, python, "-X", "perf_jit", MY_SCRIPT)
