"""Real perf: record a command, read it back as a profile.

    perf.record(python, "-X", "perf_jit", SCRIPT, 1, call_graph="dwarf", clock="mono")
        .inject().profile()

Everything happens in a folder of the test, with a build-id cache of its own and without the user's
configuration, so that neither leaves traces in the other. Only the files in /tmp that tell perf the
names (name_files.py) cannot be elsewhere; close() removes them.
"""
import functools
import glob
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import name_files
from .command import words
from .profiles import Frame, Profile, Sample

TIME_LIMIT_S = 120
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

# `perf script`: a line for the sample, one line per frame (innermost first), an empty line.
SAMPLE_LINE = re.compile(r"(?P<command>\S.*?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s+(?P<time>[\d.]+):"
                         r"(\s+(?P<weight>\d+))?\s*$")
FRAME_LINE = re.compile(
    r"\s+[0-9a-f]+ (?P<symbol>.*) \((?P<module>[^()]*(?:\([^()]*\))?)\)$")

ENVIRONMENT = {**os.environ, "PERF_CONFIG": os.devnull, "DEBUGINFOD_URLS": "", "LC_ALL": "C.UTF-8"}


@functools.lru_cache(maxsize=None)
def find():
    """(path, version) of a perf that runs here, or None. Ubuntu's /usr/bin/perf is a wrapper that
    insists on the running kernel's version; those of other versions beside it do as well."""
    for path in [shutil.which("perf"), *sorted(glob.glob("/usr/lib/linux-tools/*/perf"))]:
        if path:
            result = subprocess.run([path, "--version"], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, timeout=60)
            if result.returncode == 0:
                return path, result.stdout.strip().replace("perf version ", "")
    return None


def version():
    """(6, 1, 170) of the perf that find() finds."""
    return tuple(int(number) for number in re.findall(r"\d+", find()[1]))


@functools.lru_cache(maxsize=None)
def obstacle():
    """Why perf cannot record here and what to do about it, or None."""
    if not find():
        return "perf is not installed: apt install linux-perf (Ubuntu: linux-tools-generic)"
    with tempfile.TemporaryDirectory() as folder:
        attempt = subprocess.run([find()[0], "--buildid-dir", folder, "record", "-o",
                                  Path(folder, "perf.data"), "true"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 env=ENVIRONMENT, timeout=60)
    if attempt.returncode == 0:
        return None
    level = PARANOID.read_text().strip() if PARANOID.exists() else "missing"
    return (f"perf may not record here ({attempt.stdout.strip().splitlines()[0].strip()}; "
            f"kernel.perf_event_paranoid is {level}): sudo sysctl kernel.perf_event_paranoid=1")


def describe():
    return "perf {1}: {0}".format(*find()) if find() else f"perf: none ({obstacle()})"


class Perf:
    """Records into a folder; one per test."""

    def __init__(self, folder):
        self.path, _ = find()
        self.folder = folder
        self.recordings = []

    def run(self, *arguments):
        command = words(self.path, "--buildid-dir", self.folder / "buildids", *arguments)
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                cwd=self.folder, env=ENVIRONMENT, timeout=TIME_LIMIT_S)
        assert result.returncode == 0, result.stderr.decode(errors="replace")
        return result.stdout.decode(errors="backslashreplace")

    def record(self, *command, call_graph="fp", frequency=1999, clock=None, options=()):
        data = self.folder / f"perf.{len(self.recordings)}.data"
        clock_option = ["-k", clock] if clock else []
        graph_option = ["--call-graph", call_graph] if call_graph else []
        self.recordings.append(Recording(self, data))
        self.run("record", "-F", frequency, *graph_option, *clock_option, *options, "-o", data,
                 "--", *command)
        return self.recordings[-1]

    def record_to_pipe(self, *command, frequency=1999):
        """`perf record -o -`: another layout of the file."""
        data = self.folder / f"perf.{len(self.recordings)}.data"
        self.recordings.append(Recording(self, data))
        with open(data, "wb") as out:
            subprocess.run(words(self.path, "--buildid-dir", self.folder / "buildids", "record",
                                 "-F", frequency, "-g", "-o", "-", "--", *command),
                           stdout=out, stderr=subprocess.PIPE, cwd=self.folder, env=ENVIRONMENT,
                           timeout=TIME_LIMIT_S, check=True)
        return self.recordings[-1]

    def close(self):
        for recording in self.recordings:
            if recording.data.exists():
                for pid in recording.pids():
                    name_files.remove(pid)


class Recording:
    def __init__(self, perf, data):
        self.perf = perf
        self.data = data

    def inject(self):
        """Merges the jitdump: `perf inject --jit`."""
        injected = self.data.with_suffix(".injected")
        self.perf.run("inject", "--jit", "-i", self.data, "-o", injected)
        return Recording(self.perf, injected)

    def pids(self):
        return {int(pid) for pid in
                self.perf.run("script", "-i", self.data, "-G", "-F", "pid").split()}

    def report(self, *options):
        """What `perf report --stdio` prints."""
        return self.perf.run("report", "--stdio", "-i", self.data, *options)

    def profile(self):
        return Profile(read_script(self.perf.run(
            "script", "-i", self.data, "--no-inline", "-F", "comm,pid,tid,time,period,ip,sym,dso")))


def read_script(text):
    """The samples in the output of `perf script`."""
    for block in text.split("\n\n"):
        lines = block.lstrip("\n").split("\n")
        head = SAMPLE_LINE.match(lines[0])
        if not head:
            assert not block.strip(), f"perf script printed something unknown:\n{block}"
            continue
        frames = [FRAME_LINE.match(line) for line in lines[1:] if line.strip()]
        assert all(frames), f"perf script printed something unknown:\n{block}"
        yield Sample(head["command"], int(head["pid"]), int(head["tid"]), float(head["time"]),
                     tuple(Frame(frame["symbol"], frame["module"]) for frame in reversed(frames)),
                     int(head["weight"] or 1))
