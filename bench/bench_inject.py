"""Putting 50,000 generated functions into a recording: ours and perf's inject on the same file.

perf's takes the better part of a minute. So it runs once, for both rows; ours runs three times. The
difference is far larger than the noise.
"""
import functools
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from builds import program
from comparison import Comparison

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.e2e import name_files, perf as perf_module  # noqa: E402

FUNCTIONS = 50000
SCRIPT = f"""
names = {{}}
exec("\\n".join(f"def f{{i}}(): return {{i}}" for i in range({FUNCTIONS})), names)
for i in range({FUNCTIONS}):
    names[f"f{{i}}"]()
import os
print(os.getpid())
"""


def record(perf, data):
    """Records a program with that many functions; its process number."""
    out = subprocess.run([perf, "record", "-q", "-F", "99", "-k", "1", "--call-graph", "dwarf",
                          "-o", data, "--", program("pitviper"), "run", "--jit", "--",
                          "/usr/bin/python3", "-c", SCRIPT],
                         check=True, stdout=subprocess.PIPE, text=True, env=perf_module.ENVIRONMENT)
    return int(out.stdout)


def seconds(folder, *command):
    """A function that runs the command once in a folder that is empty again afterwards."""
    def run():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        begin = time.perf_counter()
        subprocess.run(command, check=True, cwd=folder, env={**perf_module.ENVIRONMENT, "HOME": folder},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.perf_counter() - begin
    return run


def comparisons():
    program("pitviper.so")
    if perf_module.obstacle():
        print(f"bench: inject: left out: {perf_module.obstacle()}", file=sys.stderr)
        return
    perf, _ = perf_module.find()
    pitviper = program("pitviper")
    with tempfile.TemporaryDirectory(prefix="pitviper-bench-") as folder:
        data = Path(folder, "perf.data")
        pid = record(perf, data)
        try:
            theirs = functools.lru_cache(maxsize=None)(
                seconds(Path(folder, "theirs"), perf, "inject", "--jit", "-i", data, "-o",
                        "perf.jit.data"))
            what = f"inject, {FUNCTIONS:,} functions"
            yield Comparison(what, seconds(Path(folder, "ours"), pitviper, "inject", "--jit", "-i",
                                           data, "-o", "perf.jit.data"),
                             theirs, "perf inject, once", "s", most_ratio=0.2, rounds=3)
            yield Comparison(f"{what}, an image each",
                             seconds(Path(folder, "each"), pitviper, "inject", "--jit",
                                     "--per-function", "-i", data, "-o", "perf.jit.data"),
                             theirs, "perf inject, once", "s", rounds=3)
        finally:
            name_files.remove(pid)
