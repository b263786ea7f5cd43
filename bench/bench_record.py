"""`pitviper record`: what it costs the program that is recorded, and what it needs itself.

The first figure is what being sampled at 999 Hz costs, in one process that is sampled and not sampled in
turn (switch.py): two processes that do the same differ by more than that.

Then the CPU time of a fixed amount of work in processes of their own, in parts: of each part the best round
counts, since hardly any round is undisturbed as a whole. Beside ours: the program alone, `perf record -g`, and
what has to be done to see Python functions otherwise: perf or samply with -X perf, and from 3.15 on Python's
own sampling profiler. Eight threads can't be switched off for a moment, so they have these figures only.

The others are of one recording at 9999 Hz, of three times the work: how many samples there are and how good
they are, what they take on the disk, and the CPU time of the recorder itself.

On this machine: the oldest and the newest interpreter. In the sid root (PITVIPER_MATRIX): its newest.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from builds import program
from comparison import Comparison, InTurn, WithinProcess

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.e2e import interpreters, name_files, perf as perf_module  # noqa: E402
from tests.e2e import samply as samply_module  # noqa: E402

ROUNDS = 15
PEER_ROUNDS = 3
SWITCHED_ROUNDS = 8
SWITCHED_TIMES = 4  # as much work
HERTZ = 9999
LOW_HERTZ = 999
WORKLOADS = {"calls": 800, "stdlib-mix": 200, "8-threads": 800, "300-deep": 800,
             "900-deep": 800}  # how often: half a second or so each
SINGLE = [name for name in WORKLOADS if name != "8-threads"]
TICKS = os.sysconf("SC_CLK_TCK")


class Run:
    """A command that has ended: what the workload in it told, and what it cost itself."""

    def __init__(self, command, folder):
        environment = {**os.environ, "HOME": folder, "PERF_CONFIG": os.devnull}
        with tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen([str(word) for word in command], cwd=folder, env=environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err,
                                       text=True)
            out = process.stdout.read()
            self.own_s = self.time_of(process.pid)
            process.wait()
            err.seek(0)
            self.err = err.read()
        assert process.returncode == 0, (command, self.err[-500:])
        pid, *seconds = re.search(r"^workload (.*)", out, re.M)[1].split()
        self.process_s, *self.parts_s = map(float, seconds)
        name_files.remove(int(pid))

    @staticmethod
    def time_of(pid):
        """CPU time of a process that ends, without its children's."""
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def figure(self, pattern):
        return float(re.search(pattern, self.err)[1].replace(",", ""))


class Workload:
    """One workload on one interpreter, with all its commands."""

    def __init__(self, python, name):
        self.python = python
        self.name = name
        self.folder = tempfile.TemporaryDirectory(prefix="pitviper-bench-")
        self.script = [HERE / "record_workloads.py", name, WORKLOADS[name]]
        self.kept = None

    def run(self, command):
        return Run(command, self.folder.name)

    def parts(self, *before, options=()):
        command = [*before, self.python.executable, *options, *self.script]
        return lambda: self.run(command).parts_s

    @staticmethod
    def ours(hertz):
        return [program("pitviper"), "record", "-F", hertz, "-o", "perf.data", "--"]

    def recording(self):
        """One that all figures of quality are of."""
        if not self.kept:
            *script, rounds = self.script
            self.kept = self.run([*self.ours(HERTZ), self.python.executable, *script, 3 * rounds])
            path = Path(self.folder.name) / "perf.data"
            self.kept.bytes = path.stat().st_size
            page = subprocess.run([program("pitviper"), "report", "--json", path], check=True,
                                  stdout=subprocess.PIPE).stdout
            self.kept.stood_for_s = json.loads(page)["periods"] / 1e9
        return self.kept


def own_name(hertz):
    return f"{hertz} Hz"


def has_events(work):
    return "interrupted by perf events" in work.recording().err


def switched(work, label):
    """What a program costs while it is sampled, beside what it costs while it is not."""
    def run():
        *script, rounds = work.script
        done = work.run([*work.ours(LOW_HERTZ), work.python.executable, *script,
                         SWITCHED_TIMES * rounds, "in-turn"])
        sampled_s = done.process_s - sum(done.parts_s[1::2])
        assert 0.9 < done.figure(r"([\d,]+) samples") / (sampled_s * LOW_HERTZ) < 1.1, done.err
        return done.parts_s
    turn = WithinProcess(SWITCHED_ROUNDS, run)
    yield turn.compare(f"{label}, sampled at {LOW_HERTZ} Hz", "not sampled", "s", most_ratio=1.03)


def times(work, label, has_budget):
    """Our CPU time beside that of others. has_budget: there is no better figure for 999 Hz."""
    ours = {own_name(hertz): work.parts(*work.ours(hertz)) for hertz in (LOW_HERTZ, HERTZ)}
    full, low = own_name(HERTZ), own_name(LOW_HERTZ)
    has_perf, has_support = not perf_module.obstacle(), work.python.perf_support
    def perf(hertz):
        return [perf_module.find()[0], "record", "-q", "-F", hertz, "-g", "-o", "other.data", "--"]
    sides = {"alone": work.parts(), "alone again": work.parts(), **ours}
    if has_perf:
        sides.update({f"perf record -g, {hertz} Hz": work.parts(*perf(hertz))
                      for hertz in (LOW_HERTZ, HERTZ)})
    turn = InTurn(ROUNDS, sides)
    is_single = work.name in SINGLE
    yield turn.compare(f"{label}, alone again: noise", "alone again", "alone", "s")
    yield turn.compare(f"{label}, {low}", low, "alone", "s", most_ratio=1.03 if has_budget else None)
    if has_perf:
        yield turn.compare(f"{label}, {low}", low, f"perf record -g, {low}", "s")
        yield turn.compare(f"{label}, {full}", full, f"perf record -g, {full}", "s",
                           most_ratio=1.10 if is_single else None)

    peers = {}
    if has_perf and has_support:
        peers["perf record -g, -X perf"] = work.parts(*perf(HERTZ), options=["-X", "perf"])
    if has_support and not samply_module.obstacle():
        samply = ["samply", "record", "-r", HERTZ, "--save-only", "-o", "samply.json", "--"]
        peers["samply, -X perf"] = work.parts(*samply, options=["-X", "perf"])
    if work.python.version >= (3, 15):
        own = ["-m", "profiling.sampling", "run", "-a", "-r", HERTZ, "--collapsed", "-o", "own.txt"]
        peers["profiling.sampling"] = work.parts(options=own)
    turn = InTurn(PEER_ROUNDS, {full: ours[full], **peers})
    for peer in peers:
        yield turn.compare(f"{label}, {full}", full, peer, "s")


def quality(work, label):
    """What a recording is like."""
    def one(what, unit, figure, **limits):
        return Comparison(f"{label}, {what}", lambda: figure(work.recording()), None, "", unit,
                          rounds=1, **limits)

    def missing(run):
        asked = run.process_s * HERTZ
        return abs(run.figure(r"([\d,]+) samples") / asked - 1) * 100
    def unaccounted(run):
        return abs(run.stood_for_s / run.process_s - 1) * 100
    yield one("samples other than asked for", "%", missing, most=2 if has_events(work) else None)
    yield one("time that they stand for, other than CPU time", "%", unaccounted)
    yield one("lost samples", "", lambda run: run.figure(r"([\d,]+) lost"), most=0)
    yield one("stacks not complete", "%",
              lambda run: 100 - run.figure(r"complete stacks ([\d.]+) %"), most=0.5)
    yield one("unmatched", "%", lambda run: run.figure(r"unmatched ([\d.]+) %"), most=0.2)
    yield one("size of a sample", "bytes", lambda run: run.bytes / run.figure(r"([\d,]+) samples"),
              most=400)
    # Of the time in which there are samples, however long the machine takes for it.
    yield one("recorder's CPU time", "% of a core", lambda run: run.own_s / run.process_s * 100,
              most=15)


def comparisons():
    program("pitviper.so")
    found = interpreters.found()
    chosen = [found[-1]] if "PITVIPER_MATRIX" in os.environ else [found[0], found[-1]]
    with samply_module.permitted():
        for python in chosen:
            for name in WORKLOADS:
                work = Workload(python, name)
                label = f"{python.label} {name}"
                can_switch = name in SINGLE and has_events(work)
                if can_switch:
                    yield from switched(work, label)
                yield from times(work, label, has_budget=not can_switch)
                yield from quality(work, label)
