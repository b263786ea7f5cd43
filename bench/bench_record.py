"""`pitviper record`: what it costs the program that is recorded, and what it needs itself.

The figure is the CPU time of a fixed amount of work, measured inside the program. Beside ours: the
program alone, `perf record -g`, and what has to be done to see Python functions with perf or samply;
on 3.15 Python's own sampling profiler.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from builds import program
from comparison import Comparison

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.e2e import interpreters, name_files  # noqa: E402

ROUNDS = 5
WORKLOADS = {"calls": 3000, "stdlib-mix": 300, "8-threads": 3000, "300-deep": 3000,
             "900-deep": 3000}  # how often: a second or so each


class Runner:
    """Runs commands in a folder of its own, which is their home too: nobody's ~/.debug is touched."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pitviper-bench-")
        self.environment = {**os.environ, "HOME": self.folder.name, "PERF_CONFIG": os.devnull}

    def run(self, command):
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder.name,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment)
        out, err = process.communicate()
        assert process.returncode == 0, (command, err[-500:])
        name_files.remove(process.pid)
        return float(out.split()[0]), err

    def seconds(self, command):
        return lambda: self.run(command)[0]


def bytes_a_sample(runner, command):
    def measure():
        _, err = runner.run(command)
        samples = int(re.search(r"([\d,]+) samples", err)[1].replace(",", ""))
        return (Path(runner.folder.name) / "perf.data").stat().st_size / samples
    return measure


def lost(runner, command):
    def measure():
        _, err = runner.run(command)
        return float(re.search(r"([\d,]+) lost", err)[1].replace(",", ""))
    return measure


def comparisons():
    pitviper = program("pitviper")
    program("pitviper.so")
    found = interpreters.found()
    runner = Runner()
    for python in (found[0], found[-1]):
        for workload, amount in WORKLOADS.items():
            work = [python.executable, HERE / "record_workloads.py", workload, amount]
            label = f"{python.label} {workload}"

            def ours(hertz):
                return [pitviper, "record", "-F", hertz, "-o", "perf.data", "--", *work]

            perf = ["perf", "record", "-q", "-F", "9999", "-g", "-o", "other.data", "--", *work]
            yield Comparison(f"{label}, 999 Hz", runner.seconds(ours(999)), runner.seconds(work),
                             "alone", "s", most_ratio=1.03, rounds=ROUNDS)
            yield Comparison(f"{label}, 9999 Hz", runner.seconds(ours(9999)), runner.seconds(perf),
                             "perf record -g", "s", most_ratio=1.10, rounds=ROUNDS)
            if python.version >= (3, 12):
                perf_support = [*perf[:-3], "-X", "perf", *perf[-3:]]
                yield Comparison(f"{label}, 9999 Hz", runner.seconds(ours(9999)),
                                 runner.seconds(perf_support), "perf record -g, -X perf", "s",
                                 rounds=2)
                if shutil.which("samply"):
                    samply = ["samply", "record", "-r", "9999", "--save-only", "-o", "samply.json",
                              "--", python.executable, "-X", "perf", *work[1:]]
                    yield Comparison(f"{label}, 9999 Hz", runner.seconds(ours(9999)),
                                     runner.seconds(samply), "samply, -X perf", "s", rounds=2)
            yield Comparison(f"{label}, size of a sample", bytes_a_sample(runner, ours(9999)),
                             lambda: 0, "-", "bytes", most=400, rounds=1)
            yield Comparison(f"{label}, lost samples", lost(runner, ours(9999)), lambda: 0, "-", "",
                             most=0, rounds=1)
