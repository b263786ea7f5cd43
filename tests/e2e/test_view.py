"""`pitviper view`: the page that it writes is read back, and says what `pitviper report` says. How it
looks in a browser is tested in test_viewer.py."""
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

from .again import again
from .cli import pitviper, program
from .interpreters import every_python
from .recorder import Recorder
from .targets import FOO_BAR_BAZ, JSON_AND_RE, THREADS_AND_FORKS, make_recording
from .viewer import Page
from ..builds import CHECKOUT, sanitized_environment

NO_DISPLAY = {"DISPLAY": "", "WAYLAND_DISPLAY": ""}

# Names that Python code may have, and what a browser would make of them.
NASTY = ["</script><script>alert(1)</script>", "<!--{profiles}-->", "quote\"quote'back\\\\slash",
         "Straße_函数_🐍", "&lt;b&gt;", "x" * 10000]
NASTY_SCRIPT = """
import sys, time
def spin():
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        sum(range(500))
    return 1
for name in {names!r}:
    spaces = {{}}
    code = compile("def f(): spin()", {file!r}, "exec")
    exec(code, {{"spin": spin}}, spaces)
    f = spaces["f"]
    changes = {{"co_name": name}}
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = name
    f.__code__ = f.__code__.replace(**changes)
    f.__qualname__ = name
    f()
"""


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


def view(data, *options):
    """The page of a recording; it must be without complaint."""
    result = pitviper("view", "-i", data, "-o", "-", *options)
    assert (result.status, result.err) == (0, "")
    return Page(result.out)


def large_recording(folder, samples, stacks, threads):
    subprocess.run([make_recording(), folder, *map(str, (samples, stacks, threads))], check=True)
    return folder / "perf.data"


def assert_says_what_report_says(page, data):
    report = pitviper("report", "--json", "-i", data).json
    expected = {(row["name"], row["file"]): (row["self_samples"], row["total_samples"],
                                             row["self_periods"], row["total_periods"])
                for row in report["functions"]}
    for tree in ("stacks", "folded"):
        ours = {key: tuple(counts) for key, counts in page.profile.functions(tree).items()}
        assert ours == expected, tree
    header = page.profile.header
    event = header["events"][header["event"]]
    assert (event["name"], event["samples"], event["weight"]) == \
        (report["event"], report["samples"], report["periods"])
    assert event["samples"] == len(list(page.profile.samples()))
    assert event["weight"] == sum(weight for _, weight in page.profile.samples())
    assert page.profile.table("processes") == report["processes"]
    for ours, theirs in (("samples", "samples"), ("complete", "complete"),
                         ("truncated", "truncated"), ("broken", "broken"),
                         ("without_stack", "without_callers"), ("lost_samples", "lost_samples"),
                         ("lost_records", "lost_records")):
        assert header["quality"][ours] == report["quality"][theirs], ours
    lines = {(row["name"], row["file"], line["line"]): line["self_samples"]
             for row in report["functions"] for line in row["lines"]}
    assert page.profile.lines() == lines


# --- what is in the page --------------------------------------------------------------------------

@every_python()
def test_the_page_says_what_the_report_says(recorder, python):
    recorder.run("-F", 1999, python, JSON_AND_RE, 1)
    page = view(recorder.data)
    assert_says_what_report_says(page, recorder.data)
    rows = page.profile.functions()
    work = rows[("work", str(JSON_AND_RE))]
    assert work.total_samples > 0.5 * page.profile.header["quality"]["samples"]
    assert page.profile.header["events"][0]["unit"] == "ns"
    assert page.profile.header["command"].endswith(f"{JSON_AND_RE} 1")
    assert page.profile.header["recorded"]


@every_python(at_least=(3, 12))
def test_a_recording_of_perf_likewise(perf, python):
    recording = perf.record(python, "-X", "perf", JSON_AND_RE, 1)
    assert_says_what_report_says(view(recording.data), recording.data)


@every_python(at_least=(3, 13))
def test_an_unwound_recording_of_perf_likewise(perf, python):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1, call_graph="dwarf",
                            clock="mono")
    page = view(recording.data)
    assert_says_what_report_says(page, recording.data)
    assert ("foo", str(FOO_BAR_BAZ)) in page.profile.functions()


def shown(frames):
    """Names without what differs on purpose: perf says [unknown] where there is no name, and we
    [libfoo.so]; and it knows few entries of procedure linkage tables."""
    return tuple("[unknown]" if re.match(r"\[|.*@plt$|\.plt$|_init$", frame.name) else frame.name
                 for frame in frames)


@again
def test_every_stack_is_the_one_that_perf_shows(perf):
    recording = perf.record(sys.executable, FOO_BAR_BAZ, 1)
    page = view(recording.data)
    ours = sorted(shown(frames) for frames, _ in page.profile.samples())
    theirs = sorted(shown(sample.stack) for sample in recording.profile().samples)
    assert len(ours) == len(theirs)
    assert ours == theirs


@pytest.mark.parametrize("kind", ["threads", "forks"])
def test_threads_and_processes_are_told_apart(recorder, kind):
    recorder.run("-F", 1999, sys.executable, THREADS_AND_FORKS, kind, 1000000)
    page = view(recorder.data)
    assert_says_what_report_says(page, recorder.data)
    profile = page.profile
    assert profile.table("processes" if kind == "forks" else "threads") == 4
    assert sorted(profile["processes.parent"]) == ([0, 1, 1, 1] if kind == "forks" else [0])
    pids = [profile["processes.pid"][profile["threads.process"][thread]]
            for thread in profile["samples.thread"]]
    tids = [profile["threads.tid"][thread] for thread in profile["samples.thread"]]
    assert sorted(zip(pids, tids)) == sorted((sample.pid, sample.tid)
                                             for sample in recorder.profile().samples)


def test_waiting_threads_are_marked(recorder):
    script = "import time\nend = time.time() + 1\nwhile time.time() < end: time.sleep(0.05)\n"
    recorder.run("-e", "wall", "-F", 499, sys.executable, "-c", script)
    waiting = view(recorder.data).profile["samples.waiting"]
    assert set(waiting) <= {0, 1}
    assert sum(waiting) > 0.5 * len(waiting)
    recorder.run("-F", 499, sys.executable, FOO_BAR_BAZ, 0.5)
    assert not any(view(recorder.data).profile["samples.waiting"])


def test_several_events_are_told_apart(perf):
    recording = perf.record(sys.executable, FOO_BAR_BAZ, 1,
                            options=["-e", "cpu-clock", "-e", "page-faults"])
    page = view(recording.data)
    assert_says_what_report_says(page, recording.data)
    events = page.profile.header["events"]
    assert [event["unit"] for event in events] == ["ns", "events"]
    for number, event in enumerate(events):
        assert page.profile["samples.event"].count(number) == event["samples"] > 0


# --- source text ----------------------------------------------------------------------------------

def test_sources_of_python_functions_are_in_the_page(recorder):
    recorder.run("-F", 999, sys.executable, FOO_BAR_BAZ, 1)
    sources = view(recorder.data).profile.sources()
    assert sources[str(FOO_BAR_BAZ)] == FOO_BAR_BAZ.read_text()
    assert all(path.startswith("/") for path in sources)
    page = view(recorder.data, "--no-source")
    assert page.profile.sources() == {}
    assert FOO_BAR_BAZ.read_text() not in page.profile.strings


def test_a_recording_cannot_put_other_files_into_the_page(recorder, tmp_path):
    """Who sends somebody a recording could otherwise have any file of theirs sent back."""
    secret = tmp_path / "secret"
    secret.write_text("the secret text\n" * 10)
    script = tmp_path / "script.py"
    script.write_text(NASTY_SCRIPT.format(seconds=0.5, names=["reader"], file=str(secret)))
    recorder.run("-F", 999, sys.executable, script)
    profile = view(recorder.data).profile
    assert ("reader", str(secret)) in profile.functions()
    assert str(script) in profile.sources()
    assert str(secret) not in profile.sources()
    assert not any("the secret text" in text for text in profile.strings)


def test_a_script_without_an_ending_is_python_by_its_first_line(recorder, tmp_path):
    script = tmp_path / "program"
    script.write_text("#!/usr/bin/env python3\n" + FOO_BAR_BAZ.read_text())
    recorder.run("-F", 999, sys.executable, script, 0.5)
    assert view(recorder.data).profile.sources()[str(script)] == script.read_text()


# --- names ----------------------------------------------------------------------------------------

@every_python()
def test_names_may_be_anything(recorder, python, tmp_path):
    script = tmp_path / "script.py"
    file = "/<b>'\"&</script>.py"
    script.write_text(NASTY_SCRIPT.format(seconds=0.1, names=NASTY, file=file))
    recorder.run("-F", 999, python, script)
    page = view(recorder.data)
    assert_says_what_report_says(page, recorder.data)
    shown = {name for name, path in page.profile.functions() if path == file}
    # The recorder itself cuts very long names.
    assert {name for name in shown if len(name) < 1000} == set(NASTY[:-1])
    assert [name for name in shown if len(name) >= 200 and set(name) <= {"x", "…", "."}]
    assert page.without_data == empty_page(recorder, python).without_data


def empty_page(recorder, python):
    recorder.run(python, "-c", "sum(range(10 ** 7))")
    return view(recorder.data)


def test_names_of_the_worst_kind(recordings):
    """10 KB long (recordings have them cut at 8), no UTF-8, markup, control characters."""
    data = large_recording(recordings, samples=20000, stacks=10000, threads=200)
    page = view(data)
    assert_says_what_report_says(page, data)
    names = {name for name, _ in page.profile.functions()}
    assert any("</script>" in name for name in names)
    assert any(len(name) > 8000 for name in names)
    assert any("\ufffd" in name for name in names)
    assert page.profile.table("threads") == 200
    assert "alert" not in page.without_data


def test_the_title_is_escaped(recorder):
    recorder.run(sys.executable, "-c", "sum(range(10 ** 7))")
    odd = recorder.folder / "<b>&\"'.data"
    os.rename(recorder.data, odd)
    assert view(odd).title == "&lt;b&gt;&amp;&quot;&#39;.data - pitviper"


# --- the page as a whole --------------------------------------------------------------------------

def test_nothing_is_ever_requested(recorder):
    recorder.run(sys.executable, "-c", "sum(range(10 ** 7))")
    page = view(recorder.data)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.text)
    assert policy and policy.group(1).startswith("default-src 'none';")
    program_text = page.without_data.replace(policy.group(0), "") + "".join(page.modules.values())
    # Names of XML namespaces look like addresses and are never fetched.
    program_text = re.sub(r"http://www\.w3\.org/[\w/]+", "", program_text)
    assert not re.search(r"\b(https?|wss?|ftp):|\bsrc\s*=\s*[\"']|@import|url\(\s*[\"']?(?!data:)",
                         program_text)
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon", program_text)


def test_all_of_the_viewer_is_in_the_page(recorder):
    recorder.run(sys.executable, "-c", "sum(range(10 ** 7))")
    page = view(recorder.data)
    web = CHECKOUT / "web"
    assert page.modules == {f"pitviper/{path.name}": path.read_text()
                            for path in web.glob("*.js")}
    assert all(path.read_text() in page.text for path in web.glob("*.css"))
    assert "<!--{" not in page.without_data


def test_two_recordings_are_compared(recorder):
    recorder.run("-F", 999, sys.executable, FOO_BAR_BAZ, 0.5)
    before = recorder.data.rename(recorder.folder / "before.data")
    recorder.run("-F", 999, sys.executable, JSON_AND_RE, 0.5)
    page = view(recorder.data, "--base", before)
    assert page.title == "perf.data compared with before.data - pitviper"
    assert_says_what_report_says(page, recorder.data)
    assert ("foo", str(FOO_BAR_BAZ)) in page.base.functions()
    assert ("foo", str(FOO_BAR_BAZ)) not in page.profile.functions()
    page.profile = page.base
    assert_says_what_report_says(page, before)


def test_export_writes_the_same_page(recorder):
    recorder.run("-F", 999, sys.executable, FOO_BAR_BAZ, 0.5)
    exported = pitviper("export", "-f", "html", "-i", recorder.data, "-o", "-")
    assert (exported.status, exported.err) == (0, "")
    assert exported.out == view(recorder.data).text
    refused = pitviper("export", "-f", "html", "--pid", "1", "-i", recorder.data)
    assert refused.status == 2 and "html" in refused.complaint


# --- where it goes --------------------------------------------------------------------------------

@pytest.fixture
def small(recorder):
    """A recording of a moment."""
    recorder.run(sys.executable, "-c", "sum(range(10 ** 7))")
    return recorder.data


def test_without_a_display_it_says_where_the_page_is(small):
    result = pitviper("view", "-i", small, BROWSER="false", **NO_DISPLAY)
    expected = small.with_name("perf.data.html")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith(f"{expected}: ") and "browser" in result.out
    assert Page(expected.read_text()).profile.table("samples")
    assert sorted(os.listdir(small.parent)) == [".debug", "perf.data", "perf.data.html"]


def test_a_page_of_before_is_replaced(small):
    page = small.with_name("page.html")
    page.write_text("old")
    assert pitviper("view", "-i", small, "-o", page, "--no-open").status == 0
    assert Page(page.read_text()).profile


def wait_for(path):
    for _ in range(600):
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text()
        time.sleep(0.05)
    raise AssertionError(f"{path} does not come")


def write_browser(folder, text):
    browser = folder / "browser"
    browser.write_text("#!/bin/sh\n" + text)
    browser.chmod(0o755)
    return browser


def test_the_browser_is_started_where_there_is_a_display(small, tmp_path):
    opened = tmp_path / "opened"
    browser = write_browser(tmp_path, f'echo noise; echo noise >&2; echo "$@" > {opened}\n')
    result = pitviper("view", "-i", small, BROWSER=f"{browser} --new-window", DISPLAY=":99")
    assert (result.status, result.err) == (0, "")
    assert "opened" in result.out and "noise" not in result.out
    assert wait_for(opened) == f"--new-window {small}.html\n"


def test_no_browser_is_started_when_nobody_wants_it(small, tmp_path):
    opened = tmp_path / "opened"
    browser = write_browser(tmp_path, f'echo > {opened}\n')
    for options in (["--no-open"], ["-o", "-"]):
        assert pitviper("view", "-i", small, *options, BROWSER=str(browser),
                        DISPLAY=":99").status == 0
    assert not opened.exists()


def test_a_browser_that_fails_is_a_note(small):
    result = pitviper("view", "-i", small, BROWSER="false", DISPLAY=":99")
    assert (result.status, result.err) == (0, "")
    assert f"{small}.html" in result.out and "no browser" in result.out


def test_a_browser_that_stays_does_not_hold_the_terminal(small, tmp_path):
    pid_file = tmp_path / "pid"
    browser = write_browser(tmp_path, f'echo $$ > {pid_file}\nexec sleep 1000\n')
    result = pitviper("view", "-i", small, BROWSER=str(browser), DISPLAY=":99")
    pid = int(wait_for(pid_file))
    try:
        assert result.status == 0 and "opened" in result.out
        assert os.getsid(pid) == pid  # a Ctrl-C does not reach it
        assert os.readlink(f"/proc/{pid}/fd/1") == os.readlink(f"/proc/{pid}/fd/2") == "/dev/null"
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_page_that_cannot_be_written_is_one_clear_line(small, tmp_path):
    for output, complaint in (("/dev/full", "No space left"),
                              (tmp_path / "none" / "page.html", "No such file"),
                              (tmp_path, "Is a directory")):
        result = pitviper("view", "-i", small, "-o", output, "--no-open")
        assert result.status == 1
        assert str(output) in result.complaint and complaint in result.complaint
    assert os.listdir(tmp_path) == []


def test_a_disk_that_fills_up_leaves_no_half_page(small):
    """A limit of the file's size stands for it: writing fails in the middle."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    before = sorted(os.listdir(small.parent))
    result = subprocess.run([program(), "view", "-i", small, "--no-open"], preexec_fn=limit,
                            env=sanitized_environment(), stderr=subprocess.PIPE, text=True,
                            stdout=subprocess.PIPE, timeout=60)
    assert result.returncode == 1 and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and "File too large" in result.stderr
    assert sorted(os.listdir(small.parent)) == before


def test_a_reader_that_goes_away_is_no_error(small):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = pitviper("view", "-i", small, "-o", "-", stdout=writing)
    finally:
        os.close(writing)
    assert (result.status, result.err) == (0, "")


def test_an_interrupt_ends_it_as_a_signal(tmp_path):
    fifo = tmp_path / "perf.data"
    os.mkfifo(fifo)
    process = subprocess.Popen([program(), "view", "-i", fifo], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=sanitized_environment())
    writer = os.open(fifo, os.O_WRONLY)  # waits until it reads
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT
    os.close(writer)
    assert process.stderr.read() == b""
    assert os.listdir(tmp_path) == ["perf.data"]


def test_an_interrupt_while_it_writes_leaves_no_half_page(recordings):
    """It is stopped in the moment when the temporary file is there."""
    data = large_recording(recordings, samples=300000, stacks=100000, threads=10)
    before = sorted(os.listdir(recordings))
    process = subprocess.Popen([program(), "view", "-i", data, "--no-open"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env=sanitized_environment())
    while process.poll() is None and len(os.listdir(recordings)) == len(before):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == -signal.SIGINT, "it was done before the signal came"
    assert process.stderr.read() == b""
    assert sorted(os.listdir(recordings)) == before


# --- recordings and command lines that are not right ----------------------------------------------

def test_a_recording_cut_short_is_shown_as_far_as_it_goes(perf):
    recording = perf.record(sys.executable, FOO_BAR_BAZ, 1)
    data = recording.data.read_bytes()
    cut = recording.data.with_suffix(".cut")
    cut.write_bytes(data[:len(data) // 2])
    result = pitviper("view", "-i", cut, "-o", "-")
    assert result.status == 1
    assert str(cut) in result.complaint and "everything before it is shown" in result.complaint
    page = Page(result.out)
    assert page.profile.table("samples") > 0
    assert page.profile.header["quality"]["damage"]


@pytest.mark.parametrize("arguments, complaint", [
    (["-i", "/nonexistent/perf.data"], "no such file"),
    (["-i", "/etc/hostname"], "/etc/hostname"),
])
def test_what_is_no_recording_is_refused(arguments, complaint):
    result = pitviper("view", "-o", "/dev/null", *arguments)
    assert result.status == 1
    assert complaint in result.complaint


def test_a_base_that_is_no_recording_is_refused(small):
    result = pitviper("view", "-i", small, "--base", "/etc/hostname", "--no-open")
    assert result.status == 1
    assert "/etc/hostname" in result.complaint
    assert not small.with_name("perf.data.html").exists()


@pytest.mark.parametrize("arguments, complaint", [
    (["one.data", "two.data"], "one FILE"),
    (["--no-opne"], "--no-open"),
    (["-i", "-", "--base", "-"], "standard input"),
])
def test_a_wrong_command_line_is_refused(arguments, complaint):
    result = pitviper("view", *arguments)
    assert result.status == 2
    assert complaint in result.complaint
