"""Trampolines: what our support costs, on every interpreter found.

Compared with the same interpreter without any hook, with a hook that does nothing but forward, and
with its own `-X perf` (3.12 and later) or `-X perf_jit` (3.13 and later).
"""
import subprocess
import sys
from pathlib import Path

from builds import program
from comparison import Comparison

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.e2e import interpreters, name_files  # noqa: E402

WORKLOADS = ["calls", "methods", "generators", "stdlib-mix"]


def figure(command):
    """A function that runs the command once and returns the number that it prints."""
    def run():
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        out, _ = process.communicate()
        assert process.returncode == 0, command
        name_files.remove(process.pid)
        return float(out)
    return run


def comparisons():
    hook = program("bench/forward_hook.so")
    pitviper = program("pitviper")
    program("pitviper.so")
    script = HERE / "workloads.py"
    for python in interpreters.found():
        label = python.label

        def ours(workload, *options):
            return figure([pitviper, "run", *options, "--", python.executable, script, workload])

        def theirs(workload, *options):
            return figure([python.executable, *options, script, workload])

        for workload in WORKLOADS:
            yield Comparison(f"{label} {workload}", ours(workload), theirs(workload), "no hook", "s")
            yield Comparison(f"{label} {workload}", ours(workload),
                             figure([python.executable, script, workload, hook]),
                             "forwarding hook", "s", most_ratio=1.06)
            if python.version >= (3, 12):
                yield Comparison(f"{label} {workload}", ours(workload),
                                 theirs(workload, "-X", "perf"), "-X perf", "s", most_ratio=1.0)
        if python.version >= (3, 12):
            yield Comparison(f"{label} first call of 20,000", ours("first-calls"),
                             theirs("first-calls", "-X", "perf"), "-X perf", "s", most_ratio=1.0)
        if python.version >= (3, 13):
            yield Comparison(f"{label} first call of 20,000", ours("first-calls", "--jit"),
                             theirs("first-calls", "-X", "perf_jit"), "-X perf_jit", "s",
                             most_ratio=1.0)
        yield Comparison(f"{label} memory per function", ours("memory"), theirs("memory"), "no hook",
                         "bytes", most_more=128, rounds=3)
