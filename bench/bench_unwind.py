"""Unwinding the stacks of a real recording, about 50 frames each: our tables and elfutils' libdw."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from builds import program
from comparison import Comparison

PEER = "libdw"
BUDGET_NS = 1e9 / 250000 / 50  # a frame: 250,000 stacks of 50 frames a second

# Python functions that call each other through C, so that each of them has several C frames.
DEEP = """
import time
def spin(end):
    while time.process_time() < end:
        sum(range(1000))
def deep(n, end):
    if n:
        list(map(lambda item: deep(n - 1, end), [1]))
    else:
        spin(end)
deep(8, time.process_time() + 2)
"""


def record(folder):
    data = Path(folder, "perf.data")
    subprocess.run(["perf", "record", "-q", "-F", "4999", "--call-graph", "dwarf,16384", "-o", data,
                    "--", sys.executable, "-I", "-c", DEEP], check=True, capture_output=True,
                   env={**os.environ, "PERF_CONFIG": os.devnull})
    return data


def comparisons():
    bench_unwind = program("bench/bench_unwind")
    folder = tempfile.TemporaryDirectory(prefix="pitviper-bench-")
    data = record(folder.name)

    def figure(side):
        def run():
            out = subprocess.run([bench_unwind, side, data], check=True, capture_output=True,
                                 text=True)
            _, _, frames, ns, _ = map(int, out.stdout.split())
            return ns / frames
        run.folder = folder  # which goes with the last user of it
        return run

    yield Comparison("unwinding, per frame", figure("ours"), figure("libdw"), PEER, "ns",
                     most_ratio=0.2, most=BUDGET_NS)
