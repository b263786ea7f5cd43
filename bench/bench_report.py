"""Reports of recordings at 9999 Hz: ours, and perf's with what has to be done before it."""
import functools
import glob
import os
import re
import sys

from builds import program
from comparison import Comparison
from report import CHECKOUT, Recordings, run_measured

STDLIB_HEAVY = CHECKOUT / "tests" / "targets" / "json_and_re.py"
FOO_BAR_BAZ = CHECKOUT / "tests" / "targets" / "foo_bar_baz.py"
SECONDS = 5  # as in the figures of the design
ROUNDS = 3
PERF_REPORT = ["--stdio", "-n", "-g", "--no-inline"]


def newest_python():
    """A CPython from 3.13 on, which has -X perf_jit; None when there is none."""
    found = glob.glob("/usr/bin/python3.*") + glob.glob(
        os.path.expanduser("~/.pyenv/versions/*/bin/python3.*"))
    versions = [(int(match[1]), path) for path in found
                if (match := re.search(r"/python3\.(\d+)$", path))]
    newest = max(versions, default=(0, None))
    return newest[1] if newest[0] >= 13 else None


def sides(recordings, data, is_jit):
    """Functions that run our report, and perf's, and return (seconds, megabytes)."""
    ours = [[program("pitviper"), "report", *PERF_REPORT, "-i", data]]
    injected = data.with_suffix(".injected")
    theirs = [recordings.command("report", *PERF_REPORT, "-i", injected if is_jit else data)]
    if is_jit:
        theirs.insert(0, recordings.command("inject", "--jit", "-i", data, "-o", injected))
    return (functools.partial(run_measured, ours, recordings.path),
            functools.partial(run_measured, theirs, recordings.path))


def comparisons():
    python = newest_python()
    if not python:
        print("bench: report: there is no CPython 3.13 or later here", file=sys.stderr)
        return
    recordings = Recordings()
    for title, script in (("foo, bar, baz", FOO_BAR_BAZ), ("stdlib-heavy", STDLIB_HEAVY)):
        name = title.split(",")[0]
        jit = recordings.make(f"jit-{name}", ["-k", "mono", "--call-graph", "dwarf"],
                              [python, "-X", "perf_jit", script, SECONDS])
        ours, theirs = sides(recordings, jit, is_jit=True)
        yield Comparison(f"report, dwarf + jitdump, {title}", lambda run=ours: run()[0],
                         lambda run=theirs: run()[0], "perf inject, perf report", "s",
                         most_ratio=0.1, rounds=ROUNDS)
        yield Comparison(f"its memory, {title}", lambda run=ours: run()[1],
                         lambda run=theirs: run()[1], "perf inject, perf report", "MB",
                         most_ratio=0.25, rounds=1)
        fp = recordings.make(f"fp-{name}", ["-g"], [python, "-X", "perf", script, SECONDS])
        ours, theirs = sides(recordings, fp, is_jit=False)
        yield Comparison(f"report, fp, {title}", lambda run=ours: run()[0],
                         lambda run=theirs: run()[0], "perf report", "s", most_ratio=0.2,
                         rounds=ROUNDS)
