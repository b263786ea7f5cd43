"""`pitviper export`: each format read back by its own reader, and compared with `pitviper report`
function by function."""
import collections
import gzip
import json
import os
import re
import resource
import subprocess
import sys

import pytest

from ..builds import BUILD, built, sanitized_environment
from . import exports
from .again import again
from .cli import pitviper, program
from .exports import by_function, by_line, is_python
from .interpreters import every_python
from .recorder import Recorder
from .targets import FOO_BAR_BAZ, MIXED_WORK

FORMATS = ["folded", "speedscope", "firefox", "pprof", "svg", "callgrind", "html"]
FILES = {"speedscope": "profile.speedscope.json", "firefox": "profile.json.gz",
         "pprof": "profile.pb.gz", "svg": "profile.svg", "callgrind": "callgrind.out.pitviper",
         "html": "profile.html"}


class Exported:
    """The exports of one recording."""

    def __init__(self, data, folder):
        self.data, self.folder = data, folder
        self.count = 0

    def export(self, kind, *options):
        """The path of the export."""
        self.count += 1
        path = self.folder / f"export-{self.count}.{kind}"
        result = pitviper("export", "-f", kind, "-i", self.data, "-o", path, *options)
        assert result.status == 0, result.err
        return path

    def report(self):
        return pitviper("report", "--json", "-i", self.data).json

    def stacks(self, kind, *options):
        path = self.export(kind, *options)
        if kind == "folded":
            return list(exports.read_folded(path.read_bytes(), "--lines" in options))
        if kind == "speedscope":
            return list(exports.read_speedscope(json.loads(path.read_text())))
        if kind == "firefox":
            return list(exports.read_firefox(json.loads(path.read_text())))
        return list(exports.read_pprof(exports.decode_pprof(gzip.decompress(path.read_bytes()))))


def python_rows(page, what):
    """{symbol: Sums} of the page of report; `what` is samples or periods."""
    return {f"py::{row['name']}:{row['file']}":
            exports.Sums(row[f"self_{what}"], row[f"total_{what}"]) for row in page["functions"]}


def check_stacks(exported, has_python=True):
    """All formats that have stacks say the same as report does."""
    page = exported.report()
    assert has_python is None or bool(page["functions"]) == has_python
    whole = {}
    for kind in ("folded", "speedscope", "firefox", "pprof"):
        stacks = exported.stacks(kind)
        assert sum(stack.weight for stack in stacks) == page["periods"], kind
        assert by_function(stacks, is_python) == python_rows(page, "periods"), kind
        whole[kind] = by_function(stacks)
    for kind, functions in whole.items():
        assert functions == whole["folded"], kind
    samples = exported.stacks("folded", "-n")
    assert sum(stack.weight for stack in samples) == page["samples"]
    assert by_function(samples, is_python) == python_rows(page, "samples")
    for kind in ("speedscope", "firefox"):
        assert by_function(exported.stacks(kind, "-n")) == by_function(samples), kind
    return samples


def check_lines(exported):
    page = exported.report()
    expected = {(f"py::{row['name']}:{row['file']}", line["line"]): line["self_periods"]
                for row in page["functions"] for line in row["lines"]}
    assert expected
    for kind, options in (("folded", ["--lines"]), ("firefox", []), ("pprof", [])):
        stacks = exported.stacks(kind, *options)
        assert by_line(stacks, is_python) == expected, kind


def check_native(exported, samples):
    """Functions of any kind, against the table of report, which counts by sampled address."""
    table = pitviper("report", "--stdio", "--no-children", "-g", "none", "-n", "--sort", "sym", "-i",
                     exported.data).out
    rows = collections.Counter()
    for line in table.splitlines():
        match = re.fullmatch(r"\s*[\d.]+%\s+(\d+)\s+\[.\] (.*?)\s*", line)
        if match and not match[2].startswith("0x"):
            rows[match[2]] += int(match[1])
    own = {name: sums.own for name, sums in by_function(samples).items() if sums.own}
    unnamed = {name: count for name, count in own.items() if name.startswith("[")}
    ours = collections.Counter({name: own[name] for name in own.keys() - unnamed.keys()})
    assert ours == rows, {"more": ours - rows, "fewer": rows - ours, "unnamed": unnamed}
    assert len(rows) > 3


def check_callgrind(exported):
    functions = by_function(exported.stacks("folded"))
    page = exported.report()
    path = exported.export("callgrind")
    for inclusive in (False, True):
        rows, whole = exports.annotate(path, inclusive)
        assert whole == (page["periods"], page["samples"])
        expected = {name: sums.total if inclusive else sums.own
                    for name, sums in functions.items()}
        ours = collections.Counter()
        for name, (weight, _) in rows.items():
            file, function = name.split(":", 1) if name.startswith("???") else name.rsplit(":", 1)
            if file != "[command]":
                ours[function if file == "???" else f"py::{function}:{file}"] += weight
        assert ours == {name: weight for name, weight in expected.items() if weight}, inclusive


def tree(stacks):
    """{path of labels: weight}: the flame graph that stacks stand for."""
    weights = collections.Counter()
    for stack in stacks:
        path = ("all", stack.thread)
        weights[path[:1]] += stack.weight
        weights[path] += stack.weight
        for name, _ in stack.frames:
            match = re.fullmatch(r"py::([^:]*):.*", name)
            path += (match[1] if match else name,)
            weights[path] += stack.weight
    return weights


def check_svg(exported):
    """Every box is below one that it is no wider than, and weighs what the stacks through it do."""
    boxes = exports.read_svg(exported.export("svg").read_bytes())
    rows = collections.defaultdict(list)
    for box in boxes:
        rows[box.y].append(box)
    assert len(boxes) > 10
    found, above = collections.Counter(), {}
    for y in sorted(rows):
        here = {}
        for box in rows[y]:
            path = next((path for other, path in above.items()
                         if other.x - 0.02 <= box.x and
                         box.x + box.width <= other.x + other.width + 0.02), None)
            assert path is not None or not above, box
            here[box] = (path or ()) + (box.label,)
            found[here[box]] += box.weight
        above = here
    expected = tree(exported.stacks("folded"))
    visible = expected[("all",)] / 1180
    assert {path for path, weight in expected.items() if weight > visible} <= set(found)
    # Two functions of one name in different files are two boxes; both were added up here. Boxes
    # below a quarter of a pixel are not drawn.
    assert all(weight <= expected[path] < weight + visible for path, weight in found.items())


@every_python()
def test_recordings_of_our_own(python, recordings):
    recorder = Recorder(recordings)
    assert recorder.run("-F", 997, python, MIXED_WORK, 0.7)[0] == 0
    exported = Exported(recorder.data, recordings)
    samples = check_stacks(exported)
    check_native(exported, samples)
    check_lines(exported)
    check_callgrind(exported)
    check_svg(exported)


@every_python(at_least=(3, 12))
@again
def test_recordings_of_perf(python, perf):
    recording = perf.record(python, "-X", "perf", MIXED_WORK, 0.5, frequency=997)
    exported = Exported(recording.data, perf.folder)
    # Without frame pointers in the interpreter few chains lead to a Python function, or none.
    check_native(exported, check_stacks(exported, has_python=None))
    check_callgrind(exported)
    check_svg(exported)


@every_python(at_least=(3, 13))
def test_recordings_with_copies_of_the_stack(python, perf):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 0.5, call_graph="dwarf",
                            clock="mono", frequency=499)
    exported = Exported(recording.data, perf.folder)
    check_stacks(exported)
    check_callgrind(exported)


def test_recordings_without_python(perf):
    recording = perf.record("/bin/sh", "-c", "for i in $(seq 100); do /bin/true; done")
    exported = Exported(recording.data, perf.folder)
    check_stacks(exported, has_python=False)
    check_callgrind(exported)
    check_svg(exported)


@pytest.fixture(scope="module")
def threads(tmp_path_factory):
    """A recording of threads and processes."""
    folder = tmp_path_factory.mktemp("threads")
    recorder = Recorder(folder)
    command = f"{sys.executable} {MIXED_WORK} 0.5 threads; {sys.executable} {MIXED_WORK} 0.3 children"
    assert recorder.run("-F", 997, "sh", "-c", command)[0] == 0
    return Exported(recorder.data, folder)


def test_speedscope_itself_reads_the_same(threads):
    path = threads.export("speedscope")
    ours = json.loads(path.read_text())
    theirs = exports.saved_by_speedscope(path)
    assert len(theirs["profiles"]) == len(ours["profiles"]) > 1
    for mine, its in zip(ours["profiles"], theirs["profiles"]):
        for name in ("name", "unit"):
            assert mine[name] == its[name]
    assert theirs["activeProfileIndex"] == ours["activeProfileIndex"]

    def sums(document):
        weights = collections.Counter()
        for stack in exports.read_speedscope(document):
            weights[stack.thread, stack.frames] += stack.weight
        return weights
    assert sums(theirs) == sums(ours)


def test_the_firefox_profiler_itself_reads_the_same(threads):
    expected = collections.defaultdict(list)
    for stack in threads.stacks("firefox"):
        expected[tuple(stack.thread.split(" ")[0].split("/"))].append(stack)
    theirs = exports.firefox_functions(threads.export("firefox"))
    assert set(theirs) == set(expected) and len(theirs) > 2
    for thread, stacks in expected.items():
        ours = sorted((re.sub(r"py::([^:]*):.*", r"\1", name), sums.own, sums.total)
                      for name, sums in by_function(stacks).items())
        assert theirs[thread] == ours


def test_samply_loads_what_is_for_firefox(threads, samply):
    path = threads.export("firefox")
    loaded = samply.load(path)
    assert loaded == json.loads(path.read_text())
    assert list(exports.read_firefox(loaded))


def test_threads_are_told_apart(threads):
    firefox, pprof = threads.stacks("firefox"), threads.stacks("pprof")
    sums = [collections.Counter(), collections.Counter()]
    for counter, stacks in zip(sums, (firefox, pprof)):
        for stack in stacks:
            counter[stack.thread] += stack.weight
    assert sums[0] == sums[1] and len(sums[0]) > 2
    speedscope = collections.Counter()
    for stack in threads.stacks("speedscope"):
        name, pid, tid = re.fullmatch(r"(.*) \(pid (\d+), tid (\d+)\)", stack.thread).groups()
        speedscope[f"{pid}/{tid} {name}"] += stack.weight
    assert speedscope == sums[0]


def test_filters_leave_others_out(threads):
    stacks = threads.stacks("pprof")
    pid, tid = stacks[-1].thread.split(" ")[0].split("/")
    whole = sum(stack.weight for stack in stacks)
    for option, number, place in (("--pid", pid, 0), ("--tid", tid, 1)):
        expected = sum(stack.weight for stack in stacks
                       if stack.thread.split(" ")[0].split("/")[place] == number)
        some = threads.stacks("folded", option, number)
        assert sum(stack.weight for stack in some) == expected < whole
    comm = stacks[-1].thread.split(" ", 1)[1]
    assert {stack.thread for stack in threads.stacks("folded", "--comms", comm)} == {comm}


def test_pprof_has_mappings_periods_and_times(threads):
    path = threads.export("pprof")
    profile = exports.decode_pprof(gzip.decompress(path.read_bytes()))
    strings = profile["string_table"]
    types = [(strings[exports.one(kind, "type")], strings[exports.one(kind, "unit")])
             for kind in profile["sample_type"] + profile["period_type"]]
    assert types == [("samples", "count"), ("cpu", "nanoseconds"), ("cpu", "nanoseconds")]
    assert exports.one(profile, "period") == 1000000000 // 997
    paths = {strings[exports.one(mapping, "filename")]: strings[exports.one(mapping, "build_id")]
             for mapping in profile["mapping"]}
    libc, = (build_id for path, build_id in paths.items() if path.endswith("/libc.so.6"))
    assert re.fullmatch("[0-9a-f]{40}", libc)
    recorded = os.stat(threads.data).st_mtime
    assert abs(exports.one(profile, "time_nanos") / 1e9 - recorded) < 60
    assert 0 < exports.one(profile, "duration_nanos") < 60e9
    assert exports.read_pprof(profile, 0)
    assert sum(stack.weight for stack in exports.read_pprof(profile, 0)) == \
        threads.report()["samples"]


def test_fold_leaves_out_the_interpreter(threads):
    page = threads.report()
    for kind in ("folded", "speedscope", "firefox", "pprof"):
        stacks = threads.stacks(kind, "--fold")
        assert sum(stack.weight for stack in stacks) == page["periods"]
        assert by_function(stacks, is_python) == python_rows(page, "periods")
        assert not any("_PyEval_EvalFrameDefault" in name for stack in stacks
                       for name, _ in stack.frames if any(map(is_python, dict(stack.frames))))
    assert any("_PyEval" in name or "[python" in name or "[libpython" in name
               for stack in threads.stacks("folded") for name, _ in stack.frames)


# --- names ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """A recording with names of the worst kind."""
    folder = tmp_path_factory.mktemp("nasty")
    subprocess.run([built(BUILD, "tests/make_recording"), folder, "6000", "2500", "120"], check=True,
                   timeout=60)
    return Exported(folder / "perf.data", folder)


def test_any_name_can_be_exported(nasty):
    page = nasty.report()
    names = {row["name"] for row in page["functions"]}
    assert any("</script>" in name for name in names)
    assert any(len(name) > 1000 for name in names) and any("\ufffd" in name for name in names)
    for kind in ("speedscope", "firefox", "pprof"):
        stacks = nasty.stacks(kind)
        assert sum(stack.weight for stack in stacks) == page["periods"]
        assert by_function(stacks, is_python) == python_rows(page, "periods"), kind
    folded = nasty.stacks("folded")
    assert sum(stack.weight for stack in folded) == page["periods"]
    ours = sorted(by_function(folded, is_python).values())
    assert ours == sorted(python_rows(page, "periods").values())
    names = {name for stack in folded for name, _ in stack.frames}
    assert any("semi\\x3bcolon" in name for name in names)
    assert any("line\\x0aline" in stack.thread for stack in folded)


def test_any_name_can_be_drawn(nasty):
    boxes = exports.read_svg(nasty.export("svg").read_bytes())
    assert boxes[0].weight == nasty.report()["periods"]


def test_any_name_can_be_annotated(nasty):
    page = nasty.report()
    path = nasty.export("callgrind")
    rows, whole = exports.annotate(path, inclusive=True)
    assert whole == (page["periods"], page["samples"])
    totals = collections.Counter(weights for name, weights in rows.items()
                                 if not name.startswith("[command]"))
    expected = collections.Counter((row["total_periods"], row["total_samples"])
                                   for row in page["functions"])
    assert totals == expected


def test_speedscope_itself_reads_any_name(nasty):
    path = nasty.export("speedscope")
    ours, theirs = json.loads(path.read_text()), exports.saved_by_speedscope(path)
    assert by_function(exports.read_speedscope(theirs)) == \
        by_function(exports.read_speedscope(ours))


# --- where it goes --------------------------------------------------------------------------------

def run_in(folder, *arguments, **options):
    return subprocess.run([program(), "export", *map(str, arguments)], cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          env=sanitized_environment(), **options)


@pytest.mark.parametrize("kind", FORMATS)
def test_each_format_has_a_place_of_its_own(nasty, tmp_path, kind):
    result = run_in(tmp_path, "-f", kind, "-i", nasty.data)
    assert result.returncode == 0, result.stderr
    if kind == "folded":
        assert os.listdir(tmp_path) == [] and result.stdout and not result.stderr
    else:
        assert os.listdir(tmp_path) == [FILES[kind]] and not result.stdout
        assert FILES[kind] in result.stderr.decode()


@pytest.mark.parametrize("kind", FORMATS)
def test_standard_output_gets_the_same_bytes(nasty, tmp_path, kind):
    piped = run_in(tmp_path, "-f", kind, "-i", nasty.data, "-o", "-")
    assert (piped.returncode, piped.stderr) == (0, b"") and os.listdir(tmp_path) == []
    assert nasty.export(kind).read_bytes() == piped.stdout


def test_a_name_that_ends_in_gz_is_packed(nasty, tmp_path):
    path = tmp_path / "stacks.gz"
    assert pitviper("export", "-f", "folded", "-i", nasty.data, "-o", path).status == 0
    assert gzip.decompress(path.read_bytes()) == nasty.export("folded").read_bytes()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_reader_that_goes_away_is_no_error(nasty, kind):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = pitviper("export", "-f", kind, "-i", nasty.data, "-o", "-", stdout=writing)
    finally:
        os.close(writing)
    assert (result.status, result.err) == (0, "")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_full_disk_leaves_no_half_file(nasty, tmp_path, kind):
    path = tmp_path / "profile"
    path.write_text("what was there before")

    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    result = run_in(tmp_path, "-f", kind, "-i", nasty.data, "-o", path, preexec_fn=limit_files)
    complaint, = result.stderr.decode().splitlines()
    assert result.returncode == 1
    assert str(path) in complaint and "could not be written" in complaint
    assert os.listdir(tmp_path) == ["profile"] and path.read_text() == "what was there before"


def test_a_full_device_is_said(nasty):
    result = pitviper("export", "-f", "pprof", "-i", nasty.data, "-o", "/dev/full")
    assert result.status == 1 and "No space left" in result.complaint


def test_a_damaged_recording_is_exported_as_far_as_it_goes(nasty, tmp_path):
    cut = tmp_path / "cut.data"
    data = nasty.data.read_bytes()
    cut.write_bytes(data[:len(data) // 2])
    result = pitviper("export", "-f", "folded", "-i", cut)
    assert result.status == 1 and str(cut) in result.complaint and "exported" in result.complaint
    assert list(exports.read_folded(result.out.encode()))


@pytest.mark.parametrize("arguments, complaint", [
    ([], "which format"),
    (["-f", "fodled"], "folded"),
    (["-f", "quarterly"], "there are: folded, speedscope"),
    (["-f", "pprof", "-n"], "-n"),
    (["-f", "folded", "one.data", "two.data"], "one FILE"),
    (["-f", "folded", "--flod"], "--fold"),
])
def test_a_wrong_command_line_is_refused(arguments, complaint):
    result = pitviper("export", *arguments)
    assert result.status == 2 and complaint in result.complaint


def test_what_is_not_there_is_said(nasty):
    result = pitviper("export", "-f", "folded", "-i", "/nonexistent/perf.data")
    assert result.status == 1 and "no such file" in result.complaint
    result = pitviper("export", "-f", "folded", "-i", nasty.data, "--event", "cycles")
    assert result.status == 1 and "cycles" in result.complaint and "cpu-clock" in result.complaint
