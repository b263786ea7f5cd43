"""Real samply: record a command, read the profile it saves (Firefox Profiler's processed format).

    samply.record(python, "-X", "perf", SCRIPT, 1)

The format is tables of columns: a sample names a stack, a stack a frame and the stack it was called
from, a frame a function, a function a string. Names of native code are not in the profile but in a
.syms.json beside it (--unstable-presymbolicate), by library and address. For Python samply adds
frames of its own next to the real ones, marked as JavaScript; those are left out.
"""
import bisect
import contextlib
import functools
import gzip
import itertools
import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

from . import name_files
from .command import words
from .perf import ENVIRONMENT, PARANOID
from .profiles import Frame, Profile, Sample

TIME_LIMIT_S = 120
MOST_PARANOID = 1  # samply refuses to start above it


@functools.lru_cache(maxsize=None)
def find():
    """(path, version), or None."""
    path = shutil.which("samply")
    if not path:
        return None
    return path, subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, timeout=60,
                                check=True).stdout.strip().replace("samply ", "")


def describe():
    return "samply {1}: {0}".format(*find()) if find() else "samply: none"


def obstacle():
    """Why samply cannot record here and what to do about it, or None."""
    if not find():
        return "samply is not installed: apt install samply (Debian sid), or cargo install samply"
    level = int(PARANOID.read_text())
    if level > MOST_PARANOID:
        return (f"samply may not record here (kernel.perf_event_paranoid is {level}): "
                "sudo sysctl kernel.perf_event_paranoid=1")
    return None


@contextlib.contextmanager
def permitted():
    """Root may permit what samply needs; what was set before comes back at the end."""
    before = PARANOID.read_text()
    must_change = find() and int(before) > MOST_PARANOID and os.access(PARANOID, os.W_OK)
    if must_change:
        PARANOID.write_text(str(MOST_PARANOID))
    try:
        yield
    finally:
        if must_change:
            PARANOID.write_text(before)


class Samply:
    """Records into a folder; one per test."""

    def __init__(self, folder):
        self.path, _ = find()
        self.folder = folder
        self.pids = set()

    def record(self, *command, frequency=1999):
        output = self.folder / "profile.json"
        result = subprocess.run(
            words(self.path, "record", "--save-only", "--unstable-presymbolicate", "--rate",
                  frequency, "--output", output, "--", *command),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder,
            env=ENVIRONMENT, timeout=TIME_LIMIT_S)
        assert result.returncode == 0, result.stdout
        profile = Profile(read_profile(json.loads(output.read_text()),
                                       json.loads(output.with_suffix(".syms.json").read_text())))
        self.pids |= profile.pids
        return profile

    def import_lines(self, data):
        """Of each sample in a perf.data, (name, file, line) of its frames, innermost first: what
        samply's server tells the viewer."""
        with self.serving("import", data) as address:
            profile = ask(f"{address}/profile.json")
            chains = [chain_of(thread, stack) for thread in profile["threads"]
                      for stack in thread["samples"]["stack"]]
            modules = [[lib["debugName"], lib["breakpadId"]] for lib in profile["libs"]]
            answer = ask(f"{address}/symbolicate/v5", {"memoryMap": modules, "stacks": chains})
        for stack in answer["results"][0]["stacks"]:
            yield [(frame.get("function"), frame.get("file"), frame.get("line"))
                   for frame in stack]

    def load(self, path):
        """A profile in its own format, as samply's server hands it to the viewer."""
        with self.serving("load", path) as address:
            return ask(f"{address}/profile.json")

    @contextlib.contextmanager
    def serving(self, verb, path):
        """The address of samply's server for a file."""
        server = subprocess.Popen(words(self.path, verb, "--no-open", path), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  cwd=self.folder, env=ENVIRONMENT)
        try:
            said = itertools.takewhile(lambda line: "Ctrl+C" not in line, server.stdout)
            address, = re.findall(r"symbolServer=(\S+)", "".join(said))
            yield urllib.parse.unquote(address)
        finally:
            server.terminate()
            server.wait()

    def close(self):
        for pid in self.pids:
            name_files.remove(pid)


def ask(address, question=None):
    """JSON from samply's server, which packs it."""
    data = json.dumps(question).encode() if question else None
    with urllib.request.urlopen(address, data, timeout=TIME_LIMIT_S) as response:
        content = response.read()
    return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)


def chain_of(thread, stack):
    """[library, address] of the frames of a stack, innermost first."""
    chain = []
    while stack is not None:
        row = thread["stackTable"]["frame"][stack]
        resource = thread["funcTable"]["resource"][thread["frameTable"]["func"][row]]
        chain.append([thread["resourceTable"]["lib"][resource], thread["frameTable"]["address"][row]])
        stack = thread["stackTable"]["prefix"][stack]
    return chain


def read_profile(profile, symbols):
    """The samples of a processed profile."""
    names = Names(profile["libs"], symbols)
    for thread in profile["threads"]:
        stacks = read_stacks(thread, names)
        # samply tells processes of the same number apart by a suffix: 1234.1
        pid, tid = (int(thread[key].split(".")[0]) for key in ("pid", "tid"))
        times = itertools.accumulate(thread["samples"]["timeDeltas"])
        for time_ms, stack in zip(times, thread["samples"]["stack"]):
            frames = () if stack is None else stacks[stack]
            yield Sample(thread["processName"], pid, tid, time_ms / 1000, frames)


def read_stacks(thread, names):
    """For each row of the stack table its frames, root first."""
    functions, frames, stacks = thread["funcTable"], thread["frameTable"], []
    for prefix, row in zip(thread["stackTable"]["prefix"], thread["stackTable"]["frame"]):
        function = frames["func"][row]
        above = () if prefix is None else stacks[prefix]
        if functions["isJS"][function]:
            stacks.append(above)
            continue
        text = thread["stringArray"][functions["name"][function]]
        resource = functions["resource"][function]
        library = thread["resourceTable"]["lib"][resource] if resource >= 0 else None
        stacks.append(above + (names.frame(text, library, frames["address"][row]),))
    return stacks


class Names:
    """The names of native code, by library and address."""

    def __init__(self, libraries, symbols):
        self.libraries = libraries
        self.strings = symbols["string_table"]
        self.tables = {(table["debug_name"], table["code_id"]): table["symbol_table"]
                       for table in symbols["data"]}

    def frame(self, text, library, address):
        if library is None:
            return Frame(text, "")
        library = self.libraries[library]
        if not re.fullmatch(r"0x[0-9a-f]+", text):
            return Frame(text, library["path"])
        table = self.tables.get((library["debugName"], library["codeId"]), [])
        starts = [symbol["rva"] for symbol in table]
        row = bisect.bisect_right(starts, address) - 1
        if row < 0 or address >= starts[row] + table[row]["size"]:
            return Frame(text, library["path"])
        return Frame(self.strings[table[row]["symbol"]], library["path"])
