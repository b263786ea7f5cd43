"""pitviper inject in the place of perf's: real perf, on what it makes, shows every function."""
import os
import re
import subprocess

import pytest

from . import name_files
from .cli import pitviper
from .interpreters import every_python
from .perf import Recording
from .profiles import calls, chain
from .targets import FOO_BAR_BAZ, jit_around, jit_spin
from ..builds import BUILD, built

WHOLE_CHAIN = chain("<module>", "baz", "bar", "foo")

FORKING = """
import os, time
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: inner(20000)
def inner(n):
    for i in range(n): pass
def parent(): spin(0.5)
def child(): spin(0.5)
pid = os.fork()
if pid == 0:
    child()
    os._exit(0)
parent()
os.waitpid(pid, 0)
"""


def inject(recording, *options, status=0):
    output = recording.data.with_suffix(".ours")
    result = pitviper("inject", "--jit", "-i", recording.data, "-o", output, *options)
    assert result.status == status, result.err
    return Recording(recording.perf, output), result


def run_jit(*command):
    return [built(BUILD, "pitviper"), "run", "--jit", "--", *command]


def record_script(perf, python, seconds=1, **options):
    return perf.record(*run_jit(python, FOO_BAR_BAZ, seconds), call_graph="dwarf", **options)


def share(recording):
    """Of the script's samples, those with the whole chain."""
    return recording.profile().while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN)


def dump_of(recording):
    """The dump of the recording's only process that has one."""
    dump, = [path for path in map(name_files.jitdump_of, recording.pids()) if path.exists()]
    return dump


@pytest.fixture
def spun(perf):
    """A second of a function made at run time; every sample of it has its name."""
    return perf.record(jit_spin(), "jitdump", 1, call_graph="dwarf", clock="mono")


@every_python()
def test_the_walkthrough_of_the_documents(python, perf):
    recording = record_script(perf, python, clock="mono")
    assert share(inject(recording)[0]) >= 0.97


@every_python(at_least=(3, 13))
def test_what_cpython_itself_writes(python, perf):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1, call_graph="dwarf",
                            clock="mono")
    assert share(inject(recording)[0]) >= 0.97


@every_python()
def test_no_clock_has_to_be_asked_for(python, perf):
    recording = record_script(perf, python)
    assert share(inject(recording)[0]) >= 0.97


def test_an_image_per_function(perf, spun):
    injected, _ = inject(spun, "--per-function")
    images = list(injected.data.parent.glob("jitted-*-1.so"))
    assert len(images) == 1
    assert injected.profile().of("jit_spin").share_of(calls("spin", "made_at_run_time")) >= 0.95


@pytest.mark.parametrize("clock", ["mono", None, "boottime"])
def test_memory_that_is_used_again(perf, clock):
    recording = perf.record(jit_spin(), "reuse", 1, call_graph="dwarf", clock=clock)
    profile = inject(recording)[0].profile().of("jit_spin")
    for name in ("made_at_run_time", "made_later"):
        assert 0.45 <= profile.share_of(calls("spin", name)) <= 0.55
    first = [sample.time for sample in profile.samples if calls("made_at_run_time")(sample)]
    later = [sample.time for sample in profile.samples if calls("made_later")(sample)]
    assert max(first) <= min(later) + 0.002


def test_a_file_between_generated_functions(perf):
    """perf 7.2 takes the place of an image in the process from the image itself: were this file in
    it, all stacks would be cut from the first sample in it on."""
    recording = perf.record(*jit_around(), 1, call_graph="dwarf")
    profile = inject(recording)[0].profile().of("jit_around")
    below = profile.share_of(calls("main", "spin", "made_below", "native"))
    above = profile.share_of(calls("main", "spin", "made_above", "leaf"))
    assert below >= 0.2 and above >= 0.2 and below + above >= 0.95


@every_python(at_least=(3, 11))
def test_a_forked_child_has_its_own_functions_and_its_parents(python, perf, recordings):
    script = recordings / "forking.py"
    script.write_text(FORKING)
    recording = perf.record(*run_jit(python, script), call_graph="dwarf")
    profile = inject(recording)[0].profile()
    for name in ("parent", "child"):
        samples = [sample for sample in profile.samples
                   if chain("<module>", name, "spin", "inner")(sample)]
        assert len(samples) >= 500
        assert len({sample.pid for sample in samples}) == 1


def test_lines_are_shown(perf, spun):
    injected, _ = inject(spun)
    report = perf.run("report", "-i", injected.data, "--stdio", "-g", "none", "--no-children",
                      "--sort", "srcline")
    assert "made_at_run_time.s:3" in report


def test_everything_else_is_the_same(perf, spun):
    injected, _ = inject(spun)
    for question in (["script", "-F", "comm,pid,tid,time,event,period"],
                     ["report", "--header-only"], ["buildid-list"]):
        theirs, ours = (perf.run(*question, "-i", data).splitlines()
                        for data in (spun.data, injected.data))
        # Of the header, only what speaks of the file itself differs. perf 7.2 lists the new images
        # and the map among the build-ids, and the vdso under another name each time; it lists what it
        # finds in samples, so there may be more than before, but not less.
        before, after = set(theirs), set(ours)
        differing = [line for line in (before - after if question == ["buildid-list"] else before ^ after)
                     if not line.startswith(("# data size", "# feat offset", "# captured on"))
                     and not re.search(r"/jitted-|perf-vdso\.so-|/perf-\d+\.map", line)]
        assert differing == [], (theirs, ours)


@pytest.mark.parametrize("option", ["-z", "--no-buffering"])
def test_other_kinds_of_recordings(perf, option):
    data = perf.folder / "perf.kind.data"
    recording = Recording(perf, data)
    perf.recordings.append(recording)
    perf.run("record", option, "-F", 999, "--call-graph", "dwarf", "-o", data, "--", jit_spin(),
             "jitdump", 1)
    profile = inject(recording)[0].profile()
    assert profile.of("jit_spin").share_of(calls("spin", "made_at_run_time")) >= 0.95


def test_from_pipe_to_pipe(perf):
    command = [built(BUILD, "pitviper"), "inject", "--jit", "-i", "-", "-o", "-"]
    data = perf.folder / "perf.pipe.data"
    with open(data, "wb") as out:
        record = subprocess.Popen([perf.path, "record", "-q", "-F", "999", "--call-graph", "dwarf",
                                   "-o", "-", "--", jit_spin(), "jitdump", "1"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        subprocess.run(command, stdin=record.stdout, stdout=out, cwd=perf.folder, check=True,
                       timeout=60)
        record.wait()
    profile = Recording(perf, data).profile()
    for pid in profile.pids:
        name_files.remove(pid)
    assert profile.of("jit_spin").share_of(calls("spin", "made_at_run_time")) >= 0.95


def test_a_missing_dump_costs_only_its_names(spun):
    dump = dump_of(spun)
    dump.unlink()
    injected, result = inject(spun, status=1)
    assert str(dump) in result.complaint and "No such file" in result.complaint
    assert len(injected.profile().samples) == len(spun.profile().samples)


def test_a_truncated_dump_is_used_up_to_its_end(spun):
    dump = dump_of(spun)
    os.truncate(dump, dump.stat().st_size - 3)
    injected, result = inject(spun, status=1)
    assert str(dump) in result.complaint
    assert injected.profile().of("jit_spin").share_of(calls("spin", "made_at_run_time")) >= 0.95


def test_a_damaged_dump_is_used_where_it_is_whole(perf):
    recording = perf.record(jit_spin(), "reuse", 1, call_graph="dwarf", clock="mono")
    dump = dump_of(recording)
    content = bytearray(dump.read_bytes())
    records = name_files.read_jitdump(content).records
    content[records[0].offset + 4:records[0].offset + 8] = b"\xff" * 4
    dump.write_bytes(content)
    injected, result = inject(recording, status=1)
    assert "damaged" in result.complaint
    assert injected.profile().of("jit_spin").share_of(calls("spin", "made_later")) >= 0.45


@pytest.mark.parametrize("content", [b"", b"something else", b"DTiJ"])
def test_a_dump_that_is_none(spun, content):
    dump = dump_of(spun)
    dump.write_bytes(content)
    _, result = inject(spun, status=1)
    assert str(dump) in result.complaint


def test_a_recording_that_was_cut_off(spun):
    content = spun.data.read_bytes()
    cut = Recording(spun.perf, spun.data.with_suffix(".cut"))
    cut.data.write_bytes(content[:len(content) * 2 // 3])
    injected, result = inject(cut, status=1)
    assert "never finished" in result.complaint
    assert injected.profile().of("jit_spin").share_of(calls("spin", "made_at_run_time")) >= 0.95


def test_a_recording_without_dumps_says_how_to_get_them(perf):
    recording = perf.record("true")
    _, result = inject(recording, status=1)
    assert "pitviper run --jit" in result.complaint


def test_a_folder_that_is_not_there(spun):
    result = pitviper("inject", "--jit", "-i", spun.data, "-o", "/nonexistent/perf.data")
    assert result.status == 1 and "/nonexistent/perf.data" in result.complaint


def test_a_full_disk_leaves_no_output(spun):
    result = pitviper("inject", "--jit", "-i", spun.data, "-o", "/dev/full")
    assert result.status == 1 and result.err


@pytest.mark.parametrize("arguments", [[], ["--jit"], ["-o", "x"], ["--jit", "-o", "x", "y"]])
def test_a_wrong_command_line(arguments):
    result = pitviper("inject", *arguments)
    assert result.status == 2 and result.complaint.startswith("pitviper inject: ")
