"""pitviper record: programs in odd surroundings and of odd kinds. They run as without us, and either they
are recorded or the summary says why not."""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .again import again
from .cli import pitviper
from .interpreters import every_python, found
from .private_tmp import propagation
from .profiles import chain
from .recorder import Recorder
from .targets import TARGETS
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
