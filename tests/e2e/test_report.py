"""`pitviper report`: its page for Python people, and how it treats command lines and files. Its table
is compared with perf's in test_report_perf.py.
"""
import os
import pty
import signal
import subprocess

import pytest

from .cli import pitviper, program
from .interpreters import every_python
from .targets import FOO_BAR_BAZ, MY_SCRIPT
from ..builds import sanitized_environment

@every_python(at_least=(3, 13))
def test_a_recording_with_a_jitdump_needs_no_inject(python, perf):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1, call_graph="dwarf",
                            clock="mono")
    page = pitviper("report", "--json", "-i", recording.data).json
    foo = next(row for row in page["functions"] if row["name"] == "foo")
    baz = next(row for row in page["functions"] if row["name"] == "baz")
    assert foo["file"] == str(FOO_BAR_BAZ)
    assert foo["self_samples"] >= 0.9 * page["samples"] * 0.5
    assert baz["total_samples"] >= foo["total_samples"]


@every_python(at_least=(3, 12))
def test_the_page_counts_what_perf_script_shows(python, perf):
    recording = perf.record(python, "-X", "perf", MY_SCRIPT)
    page = pitviper("report", "--json", "-i", recording.data).json
    samples = recording.profile().samples
    expected = {}
    for sample in samples:
        python_frames = [frame.name for frame in sample.stack if frame.function]
        if python_frames:
            expected[python_frames[-1]] = expected.get(python_frames[-1], 0) + 1
    ours = {f"py::{row['name']}:{row['file']}": row["self_samples"] for row in page["functions"]
            if row["self_samples"]}
    assert ours == expected
    assert page["samples"] == len(samples)
    quality = page["quality"]
    assert quality["samples"] == len(samples) == sum(
        quality[end] for end in ("complete", "truncated", "broken", "without_callers"))
    assert sum(place["samples"] for place in page["below_python"]) == len(samples)


def test_without_python_functions_the_page_says_how_to_record(perf):
    recording = perf.record("/bin/sh", "-c", "for i in 1 2 3; do /bin/true; done")
    result = pitviper("report", "-i", recording.data)
    assert result.status == 0
    assert "no Python functions" in result.out and "pitviper run" in result.out
    assert "% complete" in result.out.splitlines()[-1]


def test_a_recording_cut_short_is_reported_as_far_as_it_goes(perf):
    recording = perf.record("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done")
    data = recording.data.read_bytes()
    cut = recording.data.with_suffix(".cut")
    cut.write_bytes(data[:len(data) // 2])
    result = pitviper("report", "--stdio", "-n", "-i", cut)
    assert result.status == 1
    assert str(cut) in result.complaint and "offset" in result.complaint
    assert "# Samples:" in result.out


@pytest.mark.parametrize("arguments, complaint", [
    (["-i", "/nonexistent/perf.data"], "no such file"),
    (["-i", "/etc/hostname"], "/etc/hostname"),
    (["-i", "/etc"], "/etc"),
])
def test_what_is_no_recording_is_refused(arguments, complaint):
    result = pitviper("report", *arguments)
    assert result.status == 1
    assert complaint in result.complaint


@pytest.mark.parametrize("arguments, complaint", [
    (["--sort", "comm,colour"], "colour"),
    (["-g", "spiral"], "spiral"),
    (["--percent-limit", "many"], "many"),
    (["--max-stack", "-3"], "-3"),
    (["--json", "--stdio"], "--json"),
    (["one.data", "two.data"], "one FILE"),
    (["--stdoi"], "--stdio"),
])
def test_a_wrong_command_line_is_refused(arguments, complaint):
    result = pitviper("report", *arguments)
    assert result.status == 2
    assert complaint in result.complaint


def test_a_reader_that_goes_away_is_no_error(perf):
    recording = perf.record("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; done")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = pitviper("report", "--stdio", "-n", "-g", "-i", recording.data, stdout=writing)
    finally:
        os.close(writing)
    assert result.status == 0 and result.err == ""


def on_terminal(*arguments, environment=None):
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([program(), *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=theirs, stderr=theirs,
                               env={**sanitized_environment(), "TERM": "xterm",
                                    **(environment or {})})
    os.close(theirs)
    out = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        out += chunk
    os.close(ours)
    assert process.wait(timeout=60) == 0
    return out.decode()


def test_colour_is_for_terminals_only(perf):
    recording = perf.record("/bin/sh", "-c", "for i in 1 2 3; do /bin/true; done")
    assert "\033[" in on_terminal("report", "-i", recording.data)
    assert "\033[" not in on_terminal("report", "-i", recording.data,
                                      environment={"NO_COLOR": "1"})
    assert "\033[" not in pitviper("report", "-i", recording.data).out


def test_an_interrupt_ends_it_as_a_signal(tmp_path):
    fifo = tmp_path / "perf.data"
    os.mkfifo(fifo)
    process = subprocess.Popen([program(), "report", "-i", fifo], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=sanitized_environment())
    writer = os.open(fifo, os.O_WRONLY)  # waits until it reads
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT
    os.close(writer)
    assert process.stderr.read() == b""
