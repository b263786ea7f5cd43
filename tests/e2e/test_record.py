"""pitviper record: a program and all it starts, with Python functions and lines, in a perf.data that
perf reads. The program itself notices nothing: its status, its streams, its end are its own."""
import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time

import pytest

from . import name_files, samply as samply_module
from ..builds import BUILD, built
from .again import again
from .cli import pitviper
from .interpreters import every_python
from .perf import Perf
from .profiles import calls, chain
from .recorder import TIME_LIMIT_S, Recorder
from .targets import FOO_BAR_BAZ

CHAIN = ["<module>", "baz", "bar", "foo"]

# Prints the folder of the rings first; then works for a CPU time.
SPIN = """
import os, sys, time
print(os.environ.get("PITVIPER_RECORD"), os.getpid(), flush=True)
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
"""


@pytest.fixture(autouse=True)
def hangups():
    """Commands start as in a terminal, when the tests themselves run under nohup, too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


def spin(seconds, then=""):
    return SPIN + f"spin({seconds})\n{then}\n"


def first_line(process):
    """The folder of the rings and the number of the process, from the program's first line."""
    folder, pid = process.stdout.readline().split()
    return folder, int(pid)


def wait_until_gone(pid):
    for _ in range(TIME_LIMIT_S * 20):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} does not end")


@every_python()
def test_the_chain_of_the_documents_script_is_whole(recorder, python):
    status, out, err = recorder.run("-F", 999, "-g", python, FOO_BAR_BAZ, 1.5)
    assert (status, out) == (0, ""), err
    profile = recorder.profile().while_running(FOO_BAR_BAZ)
    assert profile.share_of(chain(*CHAIN)) >= 0.99
    assert profile.share_of(calls("_start", "py::foo:" + str(FOO_BAR_BAZ))) >= 0.99


# Ways to have trampolines, which have the names of the functions, too.
SUPPORT = {"-X perf": ["-X", "perf"], "-X perf_jit": ["-X", "perf_jit"], "run": []}

CALLS = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def main():
    end = time.process_time() + 1
    while time.process_time() < end:
        fib(12)
main()
"""


def with_support(python, support):
    """The interpreter with trampolines switched on in this way; skips where there is no such way."""
    if support == "run":
        return [built(BUILD, "pitviper"), "run", "--", python]
    if not python.perf_support or (support == "-X perf_jit" and python.version < (3, 13)):
        pytest.skip(f"this interpreter has no {support}")
    return [python, *SUPPORT[support]]


@pytest.mark.parametrize("support", SUPPORT)
@every_python()
@again
def test_functions_with_trampolines_are_there_once(recorder, python, support):
    command = with_support(python, support)
    status, _, err = recorder.run("-F", 999, "-g", *command, FOO_BAR_BAZ, 1)
    assert status == 0, err
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 99, err
    profile = recorder.profile()
    for pid in {sample.pid for sample in profile.samples}:
        name_files.remove(pid)
    script = profile.while_running(FOO_BAR_BAZ)
    whole = [sample for sample in script.samples
             if [frame.function for frame in sample.stack if frame.file == str(FOO_BAR_BAZ)] == CHAIN]
    assert len(whole) >= 0.99 * len(script.samples)


@pytest.mark.parametrize("support", SUPPORT)
@every_python()
@again
def test_interrupted_trampolines_are_unwound(recorder, python, support):
    command = with_support(python, support)
    status, out, err = recorder.run("-F", 4999, *command, "-c", SPIN + CALLS)
    assert status == 0, err
    name_files.remove(int(out.split()[1]))
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 98, err
    assert float(re.search(r"unmatched ([\d.]+) %", err)[1]) <= 1, err


# Code comes all the time, and is busy at once.
LIBRARIES = """
import ctypes, os, shutil, sys, zlib
with open("/proc/self/maps") as maps:
    library = next(line.split()[-1] for line in maps if "libz.so" in line)
data = bytes(1 << 20)
for number in range(200):
    copy = shutil.copy(library, f"{number}.so")
    for _ in range(4):
        ctypes.CDLL(os.path.abspath(copy)).adler32(1, data, len(data))
"""


@every_python()
def test_libraries_that_come_later_are_unwound(recorder, python):
    status, _, err = recorder.run("-F", 4999, python, "-c", LIBRARIES)
    assert status == 0, err
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 98, err


CALLBACKS = """
def key(n):
    return -n
def main():
    numbers = list(range(1000))
    end = time.process_time() + 1
    while time.process_time() < end:
        sorted(numbers, key=key)
        list(map(key, numbers))
main()
"""


@every_python()
@again
def test_calls_that_begin_are_no_obstacle(recorder, python):
    """C code calls a Python function every few hundred nanoseconds: many samples come when the
    evaluator has begun, but not yet all of what it notes of the new frame."""
    status, _, err = recorder.run("-F", 9999, python, "-c", SPIN + CALLBACKS)
    assert status == 0, err
    samples = int(re.search(r"([\d,]+) samples", err)[1].replace(",", ""))
    cut = re.search(r"([\d,]+) cut", err)
    assert int(cut[1].replace(",", "") if cut else 0) <= 0.002 * samples, err
    assert float(re.search(r"unmatched ([\d.]+) %", err)[1]) <= 0.2, err


@every_python()
def test_perf_shows_the_lines(recorder, python):
    recorder.run("-F", 999, python, FOO_BAR_BAZ, 1)
    loop = FOO_BAR_BAZ.read_text().splitlines().index("        result += 1") + 1
    for options in [("--no-children", "-g", "caller,srcline", "--no-inline"),
                    ("--sort", "srcline", "-g", "none")]:
        assert f"{FOO_BAR_BAZ.name}:{loop}" in recorder.report(*options), options


@every_python()
def test_samply_shows_names_and_lines(recorder, python):
    if not samply_module.find():
        pytest.skip(samply_module.obstacle())
    recorder.run("-F", 999, "-g", python, FOO_BAR_BAZ, 1)
    chains = list(samply_module.Samply(recorder.folder).import_lines(recorder.data))
    names = [f"py::{name}:{FOO_BAR_BAZ}" for name in reversed(CHAIN)]
    shown = [[frame for frame in chain if frame[0] and frame[0].startswith("py::")]
             for chain in chains]
    whole = [frames for frames in shown if [name for name, _, _ in frames] == names]
    # The others are the start and the end of the interpreter.
    assert len(whole) > 100 and len(whole) > 0.7 * len(chains)
    text = FOO_BAR_BAZ.read_text().splitlines()
    assert {file for frames in whole for _, file, _ in frames} == {str(FOO_BAR_BAZ)}
    inner = {text[line - 1].strip() for (_, _, line), *_ in whole}
    assert {"for _ in range(n):", "result += 1"} <= inner


def native_between(sample, caller, callee):
    """How many C functions stand between two Python functions."""
    functions = [frame.function for frame in sample.stack]
    between = functions[functions.index(caller) + 1:functions.index(callee)]
    assert not any(between)
    return len(between)


def test_c_functions_stand_between_the_python_functions(recorder):
    code = ("def key(n):\n    return sum(range(2000))\n"
            "def outer():\n    sorted(range(6000), key=key)\nouter()\n")
    status, _, err = recorder.run("-F", 1999, sys.executable, "-c", code)
    assert status == 0, err
    samples = [sample for sample in recorder.profile().samples if chain("outer", "key")(sample)]
    assert len(samples) > 100
    # The evaluator that runs outer, what sorted is made of, the evaluator that runs key is behind it.
    assert all(native_between(sample, "outer", "key") >= 3 for sample in samples)
    assert sum(sample.stack[-1].function is None for sample in samples) > 0.9 * len(samples)


@pytest.mark.parametrize("status", [0, 3, 255])
def test_the_status_is_that_of_the_command(recorder, status):
    ended = recorder.run("--", sys.executable, "-c", f"print(1); raise SystemExit({status})")
    assert ended[:2] == (status, "1\n")
    assert "wrote perf.data" in ended[2]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_command_that_is_killed_leaves_a_recording(recorder, number):
    code = spin(0.5, f"os.kill(os.getpid(), {int(number)})")
    assert recorder.run(sys.executable, "-c", code)[0] == 128 + number
    assert len(recorder.profile().samples) > 100


@pytest.mark.parametrize("names", [(), ("CHLD",), ("PIPE",), ("CHLD", "HUP", "USR1")], ids=str)
def test_signals_that_are_ignored_from_the_beginning(recordings, names):
    """The command ignores them, too, and its status is known."""
    before = ["env", *(f"--ignore-signal={name}" for name in names)]
    status, out, err = Recorder(recordings, before).run("awk", "/SigIgn/ {print; exit 7}",
                                                        "/proc/self/status")
    assert status == 7, err
    ignored = int(out.split()[1], 16)
    for name in ("CHLD", "PIPE", "HUP", "USR1", "TERM"):
        number = getattr(signal, "SIG" + name)
        assert bool(ignored >> (number - 1) & 1) == (name in names), (name, out)


def test_a_program_that_ignores_preloading_runs_and_is_named(recorder, tmp_path):
    source, static = tmp_path / "static.c", tmp_path / "static"
    source.write_text('#include <stdio.h>\nint main(void) { puts("hello"); return 5; }\n')
    subprocess.run(["cc", "-static", "-o", static, source], check=True)
    status, out, err = recorder.run(static)
    assert (status, out) == (5, "hello\n")
    assert f"'{static}' itself could not be recorded" in err


def test_a_program_without_python_or_names(recorder, tmp_path):
    """Its outermost function has no name; the stacks are complete all the same."""
    source, stripped = tmp_path / "stripped.c", tmp_path / "stripped"
    source.write_text("int main(void) { for (volatile long i = 0; i < 300000000; i++); return 0; }\n")
    subprocess.run(["cc", "-s", "-o", stripped, source], check=True)
    assert recorder.run(stripped)[0] == 0
    page = pitviper("report", recorder.data).out
    assert "no Python was at work" in page
    assert re.search(r"broken 0: 100\.0 % complete", page), page


@pytest.mark.parametrize("options, advises_wall", [([], True), (["-e", "wall"], False)], ids=["cpu", "wall"])
def test_the_report_of_no_samples_says_so(recorder, options, advises_wall):
    assert recorder.run("-F", 1, *options, "true")[0] == 0
    page = pitviper("report", recorder.data).out
    assert "There are no samples" in page
    assert ("pitviper record -e wall" in page) == advises_wall


def test_without_a_cache_the_names_are_beside_the_recording(recorder):
    (recorder.folder / ".debug").write_text("a file in its place")
    recorder.run("-F", 999, sys.executable, "-c", spin(0.5))
    assert (recorder.folder / "perf.data.python.code").exists()
    assert any(map(chain("<module>", "spin"), recorder.profile().samples))


def test_quiet(recorder):
    assert recorder.run("-q", "true") == (0, "", "")


def test_an_old_recording_is_kept(recorder):
    recorder.data.write_text("old")
    recorder.run("-q", "true")
    assert (recorder.folder / "perf.data.old").read_text() == "old"
    assert recorder.data.read_bytes().startswith(b"PERFILE2")


@pytest.mark.parametrize("command, status", [("no-such-program", 127), ("/", 126)])
def test_a_command_that_cannot_be_run(recorder, command, status):
    ended = recorder.run(command)
    assert ended[0] == status and command in ended[2]
    assert not list(recorder.folder.glob("perf.data*"))


@pytest.mark.parametrize("files", [{"perf.data": "one"}, {"perf.data": "one", "perf.data.old": "two"}], ids=len)
def test_a_command_that_cannot_be_run_costs_no_recording(recorder, files):
    for name, text in files.items():
        (recorder.folder / name).write_text(text)
    assert recorder.run("no-such-program")[0] == 127
    left = recorder.folder.glob("perf.data*")
    assert {path.name: path.read_text() for path in left} == files


@pytest.mark.parametrize("arguments, hint", [
    ([], "pitviper help record"),
    (["-F", "0", "true"], "frequency"),
    (["-F", "many", "true"], "frequency"),
    (["-e", "cycles", "true"], "wall"),
    (["-d", "-1", "true"], "duration"),
    (["--ouput", "x", "true"], "--output"),
])
def test_a_wrong_command_line_gets_a_hint(recorder, arguments, hint):
    status, out, err = recorder.run(*arguments)
    assert (status, out) == (2, "") and hint in err


def test_a_recording_that_cannot_be_made_is_told_before_the_command_runs(recorder):
    status, out, err = recorder.run("-o", "no/such/folder/x", "echo", "hello")
    assert (status, out) == (1, "") and "no/such/folder/x" in err


def kinds(folder):
    """{name: what it is}, of things that no recording can be written to."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "nothing").symlink_to("not-there")
    (folder / "link-to-pipe").symlink_to("pipe")
    (folder / "stdout").symlink_to("/proc/self/fd/1")
    (folder / "null").symlink_to("/dev/null")
    return {"pipe": "pipe", "folder": "folder", "nothing": "link", "link-to-pipe": "pipe",
            "stdout": "pipe", "null": "device", "-": "standard output"}


def test_what_is_no_file_is_refused_and_left_alone(recorder):
    wrong = kinds(recorder.folder)
    before = {path: os.lstat(path) for path in recorder.folder.iterdir()}
    for name, what in wrong.items():
        status, out, err = recorder.run("-o", name, "echo", "hello")
        assert (status, out) == (1, "") and f"-o {name}: " in err and what in err
        assert err.count("\n") == 1
    after = {path: os.lstat(path) for path in recorder.folder.iterdir()}
    assert {path: (was.st_ino, was.st_mode) for path, was in before.items()} \
        == {path: (now.st_ino, now.st_mode) for path, now in after.items()}


def test_standard_output_is_refused_if_it_is_a_file(recordings):
    (recordings / "link").symlink_to("/proc/self/fd/1")
    recorder = Recorder(recordings, before=["sh", "-c", 'exec "$@" >out', "sh"])
    status, _, err = recorder.run("-o", "link", "echo", "hello")
    assert status == 1 and "standard output" in err
    assert sorted(path.name for path in recordings.iterdir()) == ["link", "out"]


def test_a_link_to_a_file_stays(recorder):
    (recorder.folder / "other").mkdir()
    target = recorder.folder / "other" / "data"
    target.write_text("old")
    recorder.data.symlink_to("other/data")
    assert recorder.run("-q", "true") == (0, "", "")
    assert os.readlink(recorder.data) == "other/data"
    assert target.read_bytes().startswith(b"PERFILE2")
    assert (recorder.folder / "other" / "data.old").read_text() == "old"
    assert not os.path.lexists(f"{recorder.data}.old")


def on_terminal(recorder, *arguments):
    """A recorder with a terminal of its own, of which the other end is returned, too."""
    ours, theirs = pty.openpty()
    process = recorder.start(*arguments, stdin=theirs, stderr=theirs,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(theirs)
    return process, ours


def test_ctrl_c_goes_to_the_command_and_the_recording_is_kept(recorder):
    code = spin(0, "try:\n    spin(50)\nexcept KeyboardInterrupt:\n    sys.exit(7)")
    process, terminal = on_terminal(recorder, sys.executable, "-c", code)
    folder, _ = first_line(process)
    time.sleep(2.5)
    os.write(terminal, b"\x03")
    assert process.wait(TIME_LIMIT_S) == 7
    shown = os.read(terminal, 65536).decode()
    os.close(terminal)
    assert re.search(r"\r\x1b\[K1 s, [\d,]+ samples, [\d,]+ a second, \d+ lost", shown), shown
    assert "wrote perf.data" in shown
    assert not os.path.exists(folder)
    assert len(recorder.profile().samples) > 100


def test_a_terminal_that_is_closed_ends_the_command(recorder):
    process, terminal = on_terminal(recorder, sys.executable, "-c", spin(50))
    first_line(process)
    time.sleep(0.5)
    os.close(terminal)
    assert process.wait(TIME_LIMIT_S) == 128 + signal.SIGHUP
    assert recorder.profile().samples


# Says how many hangups it got, a second after the first one.
HANGUPS = SPIN + """
import signal
hangups = 0
def count(*_):
    global hangups
    hangups += 1
signal.signal(signal.SIGHUP, count)
print("ready", flush=True)
end = time.monotonic() + 20
while not hangups and time.monotonic() < end:
    time.sleep(0.01)
spin(1)
print(hangups)
sys.exit(7)
"""


@pytest.mark.parametrize("before", [(), ("sh", "-c", '"$@"; exit $?', "sh")],
                         ids=["recorder leads", "shell leads"])
def test_a_terminal_that_is_closed_tells_the_command_once(recordings, before):
    process, terminal = on_terminal(Recorder(recordings, before), sys.executable, "-c", HANGUPS)
    first_line(process)
    assert process.stdout.readline() == "ready\n"
    os.close(terminal)
    assert process.stdout.read() == "1\n"
    assert process.wait(TIME_LIMIT_S) == (-signal.SIGHUP if before else 7)


def test_hangups_are_passed_on_and_end_no_recording(recorder):
    process = recorder.start(sys.executable, "-c", HANGUPS)
    first_line(process)
    process.stdout.readline()
    for _ in range(3):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    status, out, _ = recorder.end(process)
    assert (status, out) == (7, "3\n")
    assert len(recorder.profile().samples) > 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_for_the_recorder_is_passed_on(recorder, number):
    process = recorder.start(sys.executable, "-c", spin(50))
    first_line(process)
    time.sleep(0.5)
    process.send_signal(number)
    assert recorder.end(process)[0] == 128 + number
    assert recorder.profile().samples


def test_a_recorder_that_is_killed_leaves_a_recording_and_the_command_goes_on(recorder):
    process = recorder.start(sys.executable, "-c", spin(5))
    folder, pid = first_line(process)
    time.sleep(3.5)
    process.kill()
    process.wait()
    os.kill(pid, 0)  # it is there
    wait_until_gone(pid)
    os.rmdir(folder)  # empty
    profile = recorder.profile()
    assert len(profile.samples) > 500
    assert profile.share_of(chain("<module>", "spin")) > 0.5


def test_a_recorder_that_is_killed_leaves_packed_records_that_perf_reads(recorder):
    script = SPIN + DEEP.replace("spin(1)", "spin(4)")
    process = recorder.start("-F", 4999, sys.executable, "-c", script)
    _, pid = first_line(process)
    time.sleep(2)
    process.kill()
    process.wait()
    wait_until_gone(pid)
    assert "compressed" in pitviper("inspect", recorder.data).out
    assert len(recorder.profile().samples) > 1000


def test_duration(recorder):
    begin = time.monotonic()
    status, _, err = recorder.run("-d", 1, sys.executable, "-c", spin(50))
    assert time.monotonic() - begin < 20
    assert status == 0, err
    assert len(recorder.profile().samples) > 100


def test_the_folder_of_the_rings_goes_with_the_recorder(recorder):
    _, out, _ = recorder.run(sys.executable, "-c", spin(0.1))
    assert not os.path.exists(out.split()[0])


FAMILY = """
import multiprocessing, os, subprocess, sys, threading
def in_thread(): spin(0.3)
def in_fork(): spin(0.3)
def in_pool(n): spin(0.3)
if __name__ == "__main__":
    thread = threading.Thread(target=in_thread)
    thread.start()
    pid = os.fork()
    if pid == 0:
        in_fork()
        os._exit(0)
    os.waitpid(pid, 0)
    thread.join()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(in_pool, [1, 2])
    subprocess.run([sys.executable, "-c", sys.argv[1] + "def in_child(): spin(0.3)\\nin_child()"])
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1] + "def after(): spin(0.3)\\nafter()"])
"""


@every_python()
def test_threads_forks_children_and_exec_are_recorded(recorder, python):
    status, _, err = recorder.run("-F", 499, python, "-c", SPIN + FAMILY, SPIN)
    assert status == 0, err
    samples = recorder.profile().samples
    pids = {}
    for name in ("in_thread", "in_fork", "in_pool", "in_child", "after"):
        below = chain(name, "spin")
        pids[name] = {(sample.pid, sample.tid) for sample in samples if below(sample)}
    main = next(iter(pids["after"]))
    assert main[0] == main[1] and len(pids["after"]) == 1
    ((thread_pid, thread_tid),) = pids["in_thread"]
    assert thread_pid == main[0] and thread_tid != main[0]
    assert len(pids["in_fork"]) == 1 and pids["in_fork"] != pids["after"]
    assert 1 <= len(pids["in_pool"]) <= 2
    assert len(pids["in_child"]) == 1


SHORT_THREADS = """
import threading
for _ in range(500):
    thread = threading.Thread(target=sum, args=(range(150000),))
    thread.start()
    thread.join()
"""


def test_a_thread_is_one_from_its_beginning_to_its_end(recorder):
    status, _, err = recorder.run("-F", 9999, sys.executable, "-c", SHORT_THREADS)
    assert status == 0, err
    events = Perf(recorder.folder).run("script", "-i", recorder.data, "--show-task-events",
                                       "-F", "comm,tid")
    began = re.findall(r"PERF_RECORD_FORK\((\d+:\d+)\)", events)
    assert len(began) == len(set(began)) > 100


DEEP = """
def down(n):
    if n:
        down(n - 1)
    else:
        spin(1)
sys.setrecursionlimit(5000)
down(900)
"""


@every_python()
def test_deep_stacks_are_whole_and_take_little_room(recorder, python):
    status, _, err = recorder.run("-F", 499, python, "-c", SPIN + DEEP)
    assert status == 0, err
    samples = int(re.search(r"([\d,]+) samples", err)[1].replace(",", ""))
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 99.5, err
    assert len(recorder.profile().samples) == samples > 200
    records = recorder.data.read_bytes().split(b"PVimages")[0]
    assert len(records) / samples <= 400


# A thread that works, and one whose stack is deeper than a record can be.
THREADS = """
import threading
def down(n):
    if n:
        down(n - 1)
    else:
        spin(0.5)
sys.setrecursionlimit(20000)
threading.stack_size(1 << 29)
for function, argument in (spin, 0.5), (down, 15000):
    thread = threading.Thread(target=function, args=(argument,))
    thread.start()
    thread.join()
"""


def check_the_reports_figures(recorder, err):
    """They are those of the recorder, which are returned."""
    counts = {name: int(re.search(rf"([\d,]+) {name}", err)[1].replace(",", ""))
              for name in ("samples", "truncated", "broken")}
    counts["complete"] = counts["samples"] - counts["truncated"] - counts["broken"]
    quality = pitviper("report", "--json", recorder.data).json["quality"]
    assert {name: quality[name] for name in counts} == counts
    return counts


@every_python()
def test_the_report_says_of_stacks_what_the_recorder_says(recorder, python):
    status, _, err = recorder.run("-F", 499, python, "-c", SPIN + THREADS)
    assert status == 0, err
    counts = check_the_reports_figures(recorder, err)
    assert counts["complete"] > 100 and counts["truncated"] > 50, err
    assert len(recorder.profile().samples) == counts["samples"]


def test_the_summary_tells_how_good_it_is(recorder):
    _, _, err = recorder.run("-F", 999, sys.executable, "-c", spin(1))
    assert re.search(r"wrote perf\.data, [\d.]+ MB: [\d,]+ samples, \d+ lost, of 1 process", err)
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 99.5
    assert float(re.search(r"unmatched ([\d.]+) %", err)[1]) <= 0.2
    assert "interrupted by " in err
