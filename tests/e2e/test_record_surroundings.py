"""pitviper record: programs in odd surroundings and of odd kinds. They run as without us, and either they
are recorded or the summary says why not."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from .again import again
from .cli import pitviper
from .interpreters import every_python, found
from .private_tmp import propagation
from .profiles import calls, chain
from .recorder import Recorder
from .targets import TARGETS
from .test_record import check_the_reports_figures
from .test_surroundings import FIND_LIBRARY, NOBODY
from .unprivileged import need_open_checkout

SPIN = """
import time
def spin():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        sum(range(1000))
spin()
"""


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


def spins(recorder):
    """How many samples there are of it."""
    return sum(map(chain("<module>", "spin"), recorder.profile().samples))


def quality(err):
    """(complete, unmatched), in percent"""
    return (float(re.search(r"complete stacks ([\d.]+) %", err)[1]),
            float(re.search(r"unmatched ([\d.]+) %", err)[1]))


# --- moments in which programs are easily disturbed ------------------------------------------------

@pytest.fixture(scope="session")
def moments(compiled):
    """{name: arguments} of tests/targets/moments.c"""
    source = TARGETS / "moments.c"
    program = compiled(source)
    arguments = {"constructor": [compiled(source, "-DLIBRARY", "-shared", "-fPIC")],
                 "exec_in_handler": [100],
                 "exec_with_signals_blocked": [compiled(source, "-static")]}
    return lambda name: [program, name, *arguments.get(name, [])]


@pytest.mark.parametrize("event", ["cpu", "wall"])
@pytest.mark.parametrize("name", ["constructor", "exec_in_handler", "exec_with_signals_blocked",
                                  "fork_with_cancellation", "empty_stack", "default_actions", "small_signal_stack",
                                  "no_program"])
def test_moments(recorder, moments, name, event):
    status, out, err = recorder.run("-F", 9999, "-e", event, *moments(name))
    assert (status, out) == (0, "ok\n"), err


# --- waits -----------------------------------------------------------------------------------------

# Each waits for a while, and says how long it was; the last one ends with an exception of a handler.
WAITS = """
import json, select, signal, socket, threading, time
def alarm(*arguments): raise InterruptedError
signal.signal(signal.SIGALRM, alarm)
one, other = socket.socketpair()
one.settimeout(0.2)
poll, epoll, lock = select.poll(), select.epoll(), threading.Lock()
lock.acquire()
def interrupted():
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    time.sleep(5)
def pause():
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    signal.pause()
waits = {"sleep": lambda: time.sleep(0.2), "select": lambda: select.select([], [], [], 0.2),
         "poll": lambda: poll.poll(200), "epoll": lambda: epoll.poll(0.2), "recv": lambda: one.recv(1),
         "lock": lambda: lock.acquire(timeout=0.2), "event": lambda: threading.Event().wait(0.2),
         "sigtimedwait": lambda: signal.sigtimedwait([signal.SIGUSR1], 0.2), "interrupted": interrupted,
         "pause": pause}
times = {}
for name, wait in waits.items():
    begin = time.monotonic()
    try:
        wait()
    except OSError:
        pass
    times[name] = time.monotonic() - begin
print(json.dumps(times))
"""


@every_python()
def test_waits_are_as_long_as_without_us(recorder, python):
    status, out, err = recorder.run("-F", 999, "-e", "wall", python, "-c", WAITS)
    assert status == 0, err
    assert {name: seconds for name, seconds in json.loads(out).items() if not 0.19 <= seconds < 2} == {}


def test_waits_of_c_programs(recorder, compiled):
    status, out, err = recorder.run("-F", 999, "-e", "wall", compiled(TARGETS / "c_waits.c"))
    assert status == 0, err
    waits = [line.split() for line in out.splitlines()]
    assert len(waits) == 13
    assert [line for line in waits if not 0.19 <= float(line[1]) < 2] == []


@again
def test_waits_are_not_longer_when_they_are_interrupted_often(recorder, compiled):
    """Two thousand times: what each of them adds is seen in the sum."""
    status, out, err = recorder.run("-F", 9999, "-e", "wall", compiled(TARGETS / "c_waits.c"))
    assert status == 0, err
    waits = [line.split() for line in out.splitlines()]
    assert [line for line in waits if float(line[1]) >= 0.25] == []


@pytest.mark.parametrize("event", ["cpu", "wall"])
@again
def test_signals_end_waits(recorder, compiled, event):
    """Also those that come when the sampler's has just ended one, or while its handler runs. (On a machine that does
    much else an alarm may come before the wait.)"""
    program = compiled(TARGETS / "signals_in_waits.c", "-w")
    status, out, err = recorder.run("-F", 9999, "-e", event, program, 2200)
    assert status == 0, err
    late = dict(line.split() for line in out.splitlines())
    assert len(late) == 11 and set(late.values()) == {"0"}


def test_signals_to_the_process_are_the_main_threads(recorder, compiled):
    program = compiled(TARGETS / "signals_to_process.c", "-pthread")
    status, out, err = recorder.run("-F", 9999, "-e", "wall", program, 500)
    assert (status, out) == (0, "0 of 500\n0 of 500\n"), err


@every_python()
@again
def test_transfers_are_whole(recorder, python):
    """As without signals. (Time limits on a machine that does much else are another matter.)"""
    status, out, err = recorder.run("-F", 1999, "-e", "wall", python, TARGETS / "transfers.py")
    assert status == 0, err
    assert {name: wrong for name, wrong in json.loads(out).items() if wrong} == {}


@pytest.mark.parametrize("name", ["reset_while_sending", "reset_while_receiving", "no_message", "connect_in_time",
                                  "datagrams_in_time", "limited_file", "restarting_handler", "error_number",
                                  "random_bytes", "pause_for_one", "nowhere_to_go"])
@again
def test_interrupted_calls(recorder, compiled, name):
    program = compiled(TARGETS / "interrupted_calls.c", "-w")
    assert subprocess.run([program, name], stdout=subprocess.PIPE, check=True).stdout == b"ok\n", "alone"
    status, out, err = recorder.run("-F", 9999, "-e", "wall", program, name)
    assert (status, out) == (0, "ok\n"), err


@pytest.mark.parametrize("event", ["cpu", "wall"])
def test_functions_of_ours_are_no_callers(recorder, event):
    """Those that stand in front of the C library's."""
    code = ("import os, time\nnull = os.open('/dev/null', os.O_WRONLY)\nend = time.process_time() + 0.5\n"
            "while time.process_time() < end: os.write(null, b'x')\ntime.sleep(0.2)\n")
    status, _, err = recorder.run("-F", 1999, "-e", event, sys.executable, "-c", code)
    assert status == 0, err
    samples = recorder.profile().samples
    assert sum(any("write" in frame.name for frame in sample.stack) for sample in samples) > 50
    # The innermost one may be: it is what the thread was in.
    outside = [[frame for frame in sample.stack if not frame.module.startswith("[kernel")] for sample in samples]
    callers = Counter(frame.name for stack in outside for frame in stack[:-1] if "pitviper.so" in frame.module)
    assert callers == {}


@pytest.mark.parametrize("event", ["cpu", "wall"])
def test_functions_with_names_of_the_c_librarys(recorder, compiled, event):
    """Ours call each other, not them."""
    program = compiled(TARGETS / "own_names.c", "-rdynamic", "-fno-builtin", "-w")
    status, out, err = recorder.run("-e", event, program)
    assert (status, out) == (0, "ok\n"), err


@pytest.mark.parametrize("event", ["cpu", "wall"])
def test_programs_see_their_own_handlers(recorder, compiled, event):
    status, out, err = recorder.run("-F", 9999, "-e", event, compiled(TARGETS / "handlers.c"))
    assert (status, out) == (0, "ok\n"), err


def test_more_threads_than_the_ring_has_room_for(recorder):
    """All go on, when some samples are lost."""
    code = ("import threading, time\nend = threading.Event()\n"
            "threads = [threading.Thread(target=end.wait) for _ in range(100)]\n"
            "for thread in threads: thread.start()\n"
            "time.sleep(3)\nend.set()\n")
    status, _, err = recorder.run("-F", 999, "-e", "wall", sys.executable, "-c", code)
    assert status == 0, err
    samples = recorder.profile().samples
    assert max(sample.time for sample in samples) - min(sample.time for sample in samples) > 2.5


# --- other kinds of programs -----------------------------------------------------------------------

@pytest.mark.parametrize("event", ["cpu", "wall"])
def test_a_program_without_libraries_is_left_alone(recorder, compiled, event):
    program = compiled(TARGETS / "without_libc.c", "-nostdlib", "-fPIE", "-pie", "-fno-stack-protector")
    status, _, err = recorder.run("-F", 9999, "-e", event, program)
    assert status == 5
    assert "the program does without the C library" in err


@every_python()
def test_python_that_comes_as_a_plug_in(recorder, python, compiled):
    library, home = subprocess.run([python.executable, "-c", FIND_LIBRARY], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.splitlines()
    if not library:
        pytest.skip("this interpreter has no shared library")
    program = compiled(TARGETS / "plug_in.c", "-ldl", f"-Wl,-rpath,{Path(library).parent}")
    status, _, err = recorder.run("-F", 999, "env", f"PYTHONHOME={home}", program, library, SPIN)
    assert status == 0, err
    assert spins(recorder) > 400


@every_python()
def test_children_of_vfork_end_no_stack(recorder, python):
    text = "import subprocess\nfor _ in range(100): subprocess.run(['/bin/true'])"
    status, _, err = recorder.run("-F", 4999, python, "-c", text)
    assert status == 0, err
    assert quality(err)[0] >= 99, err


# Each greenlet is resumed at other depths than it was started at, and calls through C.
GREENLETS = """
import greenlet, time
def spin():
    sum(range(1000))
def deep(depth, rounds):
    if depth:
        return max([depth], key=lambda _: deep(depth - 1, rounds) or 0)
    for _ in range(rounds):
        spin()
        greenlet.getcurrent().parent.switch()
def resume(each, depth):
    return resume(each, depth - 1) if depth else list(map(lambda one: one.switch(), [each]))
end = time.process_time() + 1
while time.process_time() < end:
    all = [greenlet.greenlet(deep) for _ in range(10)]
    for number, each in enumerate(all):
        each.switch(3 * number, 50)
    while not all[-1].dead:
        for number, each in enumerate(all):
            resume(each, 40 - 3 * number)
"""


@every_python()
@again
def test_greenlets_have_stacks_of_their_own(recorder, python):
    if subprocess.run([python.executable, "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this interpreter has no greenlet")
    status, _, err = recorder.run("-F", 2999, python, "-c", GREENLETS)
    assert status == 0, err
    complete, unmatched = quality(err)
    assert complete >= 99.5 and unmatched <= 1, err
    check_the_reports_figures(recorder, err)
    spinning = [[frame.function for frame in sample.stack if frame.function]
                for sample in recorder.profile().samples if chain("deep", "spin")(sample)]
    # Who resumes a greenlet is not among its callers.
    assert len(spinning) > 300
    assert not any("resume" in functions for functions in spinning)


# --- surroundings ----------------------------------------------------------------------------------

LIMITED = """
import resource, subprocess, sys
def limit():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for command in ["/bin/true"], [sys.executable, "-c", "print(1)"]:
    print(subprocess.run(command, preexec_fn=limit).returncode, flush=True)
"""


WAYS = ["subprocess", "subprocess_spawning", "posix_spawn", "posix_spawnp", "execve", "another_preload", "a_wrapper",
        "env", "clearing"]


@every_python()
def test_programs_with_an_environment_of_their_own(recorder, python):
    """They do not see that there is more in it."""
    script = TARGETS / "own_environments.py"
    alone = subprocess.run([python.executable, script], check=True, text=True, stdout=subprocess.PIPE)
    status, out, err = recorder.run("-F", 999, python, script)
    assert (status, out) == (0, alone.stdout), err
    assert len(out.splitlines()) == 2 * len(WAYS)
    profile = recorder.profile()
    few = [name for way in WAYS for name in (f"by_{way}", f"by_{way}_again")
           if sum(map(chain("<module>", name), profile.samples)) < 50]
    assert not few
    assert "not recorded" not in err


# In each child three programs follow each other at once: this one, env, and the last.
SUCCESSION = """
import subprocess, sys
busy = "import time\\nend = time.process_time() + 0.1\\nwhile time.process_time() < end: pass"
for _ in range(40):
    subprocess.run(["/usr/bin/env", "-i", sys.executable, "-c", busy])
"""


def test_programs_that_follow_each_other_at_once(recorder):
    status, _, err = recorder.run("-F", 999, found()[0], "-c", SUCCESSION)
    assert status == 0, err
    samples = Counter(sample.pid for sample in recorder.profile().samples)
    assert len(samples) == 41
    assert sum(count > 60 for count in samples.values()) >= 40, samples


def test_programs_that_ignore_preloading_are_named(recorder, compiled):
    static = compiled(TARGETS / "nothing.c", "-static")
    text = f"import subprocess\nfor _ in range(3): subprocess.run(['{static}'])\nsubprocess.run(['true'])"
    status, _, err = recorder.run(found()[-1], "-c", text)
    assert status == 0
    assert (f"not recorded: {static} (3 times): static programs, those of musl, and setuid ones ignore "
            "preloading") in err


def test_programs_of_another_c_library_run(recorder, compiled):
    if not shutil.which("musl-gcc"):
        pytest.skip("there is no musl: apt install musl-tools")
    other = compiled(TARGETS / "nothing.c", compiler="musl-gcc")
    status, _, err = recorder.run("sh", "-c", '"$0" && env -i "$0"', other)
    assert status == 0, err
    assert f"not recorded: {other} (2 times)" in err


@pytest.mark.parametrize("kind", ["address", "undefined"])
def test_programs_with_a_sanitizer(recorder, compiled, kind):
    """Ours are not the accesses that it minds."""
    program = compiled(TARGETS / "sanitized.c", f"-fsanitize={kind}", "-g", "-pthread")
    for command in ([program], ["env", "-i", "ASAN_OPTIONS=halt_on_error=1", program]):
        status, _, err = recorder.run("-F", 9999, *command)
        assert status == 0, err
        assert sum(map(calls("busy"), recorder.profile().samples)) > 1000


def test_programs_with_thread_sanitizer_are_left_alone(recorder, compiled):
    program = compiled(TARGETS / "sanitized.c", "-fsanitize=thread", "-g", "-pthread")
    status, _, err = recorder.run("-F", 9999, program)
    assert status == 0, err
    assert ": 0 samples" in err and "built with -fsanitize=thread, which can't be recorded" in err


def test_what_a_sanitizer_has_to_say(recorder, compiled):
    program = compiled(TARGETS / "sanitized.c", "-fsanitize=address", "-g", "-pthread")
    process = recorder.start("-F", 9999, "env", "-i", program, "overflow")
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "heap-buffer-overflow" in err and re.search(r"\d{3} samples,", err)


@every_python()
def test_a_python_with_a_sanitizer(recorder, python):
    """As C extensions are tried out."""
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    assert Path(library).is_absolute(), "it comes with gcc"
    status, _, err = recorder.run("env", f"LD_PRELOAD={library}", "ASAN_OPTIONS=detect_leaks=0", python,
                                  "-c", SPIN)
    assert status == 0, err
    assert spins(recorder) > 300


MANY_VARIABLES = """
import subprocess, sys, threading
threading.stack_size(64 << 10)
def start():
    environment = {f"VARIABLE_{i}": "" for i in range(5000)}
    print(subprocess.run([sys.executable, "-c", "import os; print(len(os.environ) > 4999)"], text=True,
                         env=environment, stdout=subprocess.PIPE).stdout)
thread = threading.Thread(target=start)
thread.start()
thread.join()
"""


@every_python()
def test_large_environments_and_small_stacks(recorder, python):
    status, out, err = recorder.run(python, "-c", MANY_VARIABLES)
    assert (status, out.strip()) == (0, "True"), err


@every_python()
def test_processes_with_a_limit_on_files(recorder, python):
    status, out, err = recorder.run(python, "-c", LIMITED)
    assert (status, out) == (0, "0\n1\n0\n"), err
    assert "2 more processes could not be recorded: their files may not be large enough" in err


def test_more_processes_than_open_files(recordings):
    recorder = Recorder(recordings, before=["prlimit", "--nofile=64:1024"])
    text = "import os, time\nfor _ in range(150):\n  if not os.fork():\n    time.sleep(1)\n    os._exit(0)"
    status, _, err = recorder.run(found()[-1], "-c", text)
    assert status == 0
    assert "of 151 processes" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces and be others")
@pytest.mark.parametrize("options", [[], ["--mount-proc"]], ids=["", "mount-proc"])
def test_a_pid_namespace(recorder, options):
    command = ["unshare", "--pid", "--fork", "--propagation", propagation(), *options]
    if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("there can be no PID namespace here")
    status, _, err = recorder.run("-F", 999, *command, found()[-1], "-c", SPIN)
    assert status == 0, err
    assert spins(recorder) > 400
    assert quality(err)[0] >= 99


@pytest.fixture
def another_root(tmp_path, compiled):
    """A folder with a program in it, and the libraries that it needs."""
    program = compiled(TARGETS / "nothing.c")
    shutil.copy(program, tmp_path / "nothing")
    libraries = subprocess.run(["ldd", program], check=True, text=True, stdout=subprocess.PIPE).stdout
    for path in re.findall(r"(/\S+) \(", libraries):
        copy = tmp_path / path.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return tmp_path


# How they come to be there: with our object alone in the list, before or behind others, in an environment of
# their own, and from a process that was forked there.
AFTER_CHROOT = """
import os, sys
os.chroot(sys.argv[1])
if os.fork() == 0:
    os.execv("/nothing", ["nothing"])
sys.exit(os.wait()[1])
"""
BEHIND_CHROOT = {
    "alone": ["chroot"],
    "before": ["sh", "-c", 'LD_PRELOAD=$LD_PRELOAD:libm.so.6 exec chroot "$@"', "sh"],
    "behind": ["sh", "-c", 'LD_PRELOAD=libm.so.6:$LD_PRELOAD exec chroot "$@"', "sh"],
    "own": ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "chroot"],
}


def check_behind_chroot(recorder, *command):
    status, _, err = recorder.run(*command)
    assert status == 0, err
    assert "pitviper.so" not in err
    return err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root folder")
@pytest.mark.parametrize("way", BEHIND_CHROOT)
def test_programs_behind_a_chroot_run_without_a_word(recorder, another_root, way):
    """The loader would say that there is nothing to preload."""
    err = check_behind_chroot(recorder, *BEHIND_CHROOT[way], another_root, "/nothing")
    assert "not recorded: /nothing: static programs" in err
    assert "behind a chroot there is nothing to preload" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root folder")
def test_programs_of_processes_behind_a_chroot_run_without_a_word(recorder, another_root):
    err = check_behind_chroot(recorder, found()[-1], "-c", AFTER_CHROOT, another_root)
    assert "what it forked could not be recorded: behind a chroot" in err


FORKS_BEHIND_CHROOT = """
import os, sys
os.chroot(sys.argv[1])
for _ in range(3):
    if os.fork() == 0:
        os._exit(0)
    assert os.wait()[1] == 0
""" + SPIN


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the root folder")
def test_what_is_forked_behind_a_chroot_is_missed(recorder, tmp_path):
    status, _, err = recorder.run("-F", 999, found()[-1], "-c", FORKS_BEHIND_CHROOT, tmp_path)
    assert status == 0, err
    assert spins(recorder) > 400
    assert "what it forked could not be recorded: behind a chroot" in err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces and be others")
def test_a_program_that_goes_on_as_another_user(recorder):
    need_open_checkout()
    python = "/usr/bin/python3"
    status, _, err = recorder.run("-F", 999, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                                  "--clear-groups", python, "-c", SPIN)
    assert status == 0, err
    assert spins(recorder) > 400


def test_what_is_started_last_and_goes_on(recorder):
    python = found()[-1].executable
    status, _, err = recorder.run("sh", "-c", f"'{python}' -c \"$0\" >/dev/null 2>&1 &", SPIN)
    assert status == 0, err
    assert spins(recorder) > 400


def test_signals_of_the_programs_own_are_passed_on(recorder):
    text = ("import signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: print('usr1', flush=True))\n"
            "signal.signal(signal.SIGUSR2, lambda *_: exit(3))\nprint('ready', flush=True)\n"
            "while True: time.sleep(0.1)")
    process = recorder.start(sys.executable, "-c", text)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "usr1\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGUSR2)
    status, _, err = recorder.end(process)
    assert status == 3 and "pitviper record: wrote" in err


def test_a_frequency_that_would_leave_no_time(recorder):
    status, _, err = recorder.run("-F", 50000, "true")
    assert status == 2
    assert "from 1 to 20000" in err


DEEP_SPIN = SPIN.replace("spin()\n", "").replace("0.5", "4") + """
def down(depth):
    return down(depth - 1) if depth else spin()
down(300)
"""


@pytest.mark.parametrize("text", [SPIN, DEEP_SPIN], ids=["plain", "packed"])
def test_a_disk_that_is_full(recordings, text):
    """What fits is kept, and that it is not all is said at once and in the end."""
    small = recordings / "small"
    small.mkdir()
    script = (f"mount -t tmpfs -o size=400k none '{small}' && cd '{small}' && {{ \"$@\"; status=$?; "
              "cp perf.data ../kept.data; exit $status; }")
    in_own_mounts = ["unshare", "--mount", "--propagation", propagation(), "sh", "-c", script, "sh"]
    if subprocess.run([*in_own_mounts, "touch", "perf.data"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("there can be no small file system here")
    recorder = Recorder(recordings, before=in_own_mounts)
    status, _, err = recorder.run("-F", 9999, found()[-1], "-c", text)
    assert status == 1
    assert "No space left on device; what comes from now on is not recorded" in err
    assert ": the first of " in err
    recorder.data = recordings / "kept.data"
    page = json.loads(pitviper("report", "--json", recorder.data).out)
    assert page["samples"] == len(recorder.profile().samples)
    assert sum(map(chain("spin"), recorder.profile().samples)) > 100


# Spins on when nobody records it any more, and tells when nothing interrupts it either.
GOES_ON = """
import os, signal, sys, time
def triggers():
    with open("/proc/self/maps") as maps, open("/proc/self/timers") as timers:
        return maps.read().count("[perf_event]") + timers.read().count("signal:")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready" if triggers() else "bare", flush=True)
end = time.monotonic() + 30
while triggers() and time.monotonic() < end:
    sum(range(100000))
print("left alone" if not triggers() else "interrupted", flush=True)
"""


@pytest.mark.parametrize("way", ["ended", "killed"])
@pytest.mark.parametrize("event", ["cpu", "wall"])
def test_without_a_recorder_the_program_is_left_alone(recorder, event, way):
    process = recorder.start("-F", 9999, "-e", event, found()[-1], "-c", GOES_ON)
    ready = process.stdout.readline()
    if way == "killed":
        process.kill()
    else:
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
    out = process.stdout.readline()
    process.communicate()
    if ready == "bare\n":
        pytest.skip("an event that all threads share shows nowhere")
    assert (ready, out) == ("ready\n", "left alone\n")


# What it starts when nobody records it any more has nobody to hand a ring to.
STARTS_LATER = """
import os, subprocess, sys, time
folder = os.environ["PITVIPER_RECORD"]
print(folder, flush=True)
recorder = os.getppid()
while os.getppid() == recorder: time.sleep(0.05)
if not os.fork(): os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "pass"], check=True)
subprocess.run(["/bin/true"], check=True, env={})
print(os.listdir(folder) if os.path.isdir(folder) else [], flush=True)
"""


def test_a_recorder_that_is_killed_leaves_no_memory_behind(recorder):
    process = recorder.start(found()[-1], "-c", STARTS_LATER)
    folder = Path(process.stdout.readline().strip())
    process.kill()
    assert process.stdout.read() == "[]\n"
    process.communicate()
    assert folder.is_dir() and not os.listdir(folder)
    (folder / "4711.0.ring").write_bytes(b"from a process that came too early")
    recorder.run("true")
    assert folder.is_dir()  # somebody may be about to lock it
    (folder / "somebody's").mkdir()
    os.utime(folder, (0, 0))
    recorder.run("true")
    assert os.listdir(folder) == ["somebody's"]
    (folder / "somebody's").rmdir()
    os.utime(folder, (0, 0))
    recorder.run("true")
    assert not folder.exists()


SHOWS_FOLDER = "import os; print(os.environ['PITVIPER_RECORD'], flush=True); input()"


def test_folders_of_other_recorders_are_left_alone(recorder):
    process = recorder.start(found()[-1], "-c", SHOWS_FOLDER, stdin=subprocess.PIPE)
    folder = Path(process.stdout.readline().strip())
    os.utime(folder, (0, 0))
    recorder.run("-o", "other.data", "true")
    assert folder.is_dir()
    process.communicate("\n")
    assert process.returncode == 0 and not folder.exists()
