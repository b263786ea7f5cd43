"""A program that does everything, for a while, sampled ten thousand times a second: it notices
nothing, and neither it nor the recorder grows. PITVIPER_SOAK_SECONDS makes the while longer."""
import json
import os
import re
import sys

import pytest

from ..builds import CHECKOUT
from .interpreters import every_python, found
from .private_tmp import obstacle, propagation
from .profiles import PYTHON_NAME, calls, chain
from .recorder import Recorder
from .targets import SOAK

SECONDS = float(os.environ.get("PITVIPER_SOAK_SECONDS", 20))
# What may grow: the sampler's table of functions, which has an end; names, which CPython keeps for
# ever from 3.12 on; in the recorder the name of each function that was ever seen.
GROWTH_KB = 8192
NAME_KB = 0.125
RECORDER_KB = 1  # for each function and process


def figure(pattern, err):
    return float(re.search(pattern, err)[1].replace(",", ""))


@pytest.mark.parametrize("python", [pytest.param(python, id=python.label)
                                    for python in {found()[0], found()[-1]}])
def test_a_program_that_does_everything_notices_nothing(recordings, python):
    recorder = Recorder(recordings, is_fast=True)
    process = recorder.start("-F", 9999, "-g", python, SOAK, SECONDS)
    status, out, err = recorder.end(process, time_limit_s=SECONDS * 2 + 60)
    assert status == 0, err  # its own checks hold
    did = json.loads(out)
    children = did["forks"] + did["programs"]
    assert did["rounds"] > SECONDS and children > 2 * SECONDS
    grown = [end - third for third, end in zip(did["third_kb"], did["end_kb"])]
    assert grown[0] < GROWTH_KB + NAME_KB * did["functions"], did
    assert grown[1] < GROWTH_KB + RECORDER_KB * (did["functions"] + children), did
    samples = figure(r"([\d,]+) samples", err)
    assert samples > 500 * SECONDS, err
    assert figure(r"([\d,]+) lost", err) < 0.02 * samples, err
    assert figure(r"complete stacks ([\d.]+) %", err) >= 99, err
    assert figure(r"unmatched ([\d.]+) %", err) <= 0.2, err
    # Where a program is started by fork, it counts before its exec and behind it.
    assert 0 <= figure(r"of ([\d,]+) processes", err) - 1 - children <= did["programs"], err
    assert "damaged" not in err


# Of all functions each is made once, used for a moment and thrown away; the next one may come to
# stand at its address.
MADE = """
CODE = "def made_%04d(n):\\n  total = 0\\n  for i in range(n):\\n    total += i\\n  return total\\n"
def make(serial):
    names = {}
    exec(compile(CODE % serial, "<made_%04d>" % serial, "exec"), names)
    function = names["made_%04d" % serial]
    function(20000)
    names.clear()  # it was in its own globals
    return id(function.__code__)
places = {make(serial) for serial in range(1000)}
print(len(places))
"""


@every_python()
def test_a_function_is_not_taken_for_one_that_was_at_its_address(recordings, python):
    recorder = Recorder(recordings)
    status, out, err = recorder.run("-F", 4999, python, "-c", MADE)
    assert status == 0, err
    assert int(out) < 100  # addresses are used again
    serials = [int(match["function"][5:])
               for sample in recorder.profile().samples for frame in sample.stack
               for match in [PYTHON_NAME.match(frame.name)]
               if match and match["function"].startswith("made_")]
    assert len(set(serials)) > 500
    assert serials == sorted(serials)


# While a generator passes a throw() on to another, it is a Python frame for which there is no call
# of the evaluator.
PASSED_ON = """
import time
def innermost():
    while True:
        try:
            yield
        except LookupError:
            spin()
def outer(depth):
    yield from outer(depth - 1) if depth else innermost()
def spin():
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
generator = outer(20)
next(generator)
for _ in range(50):
    generator.throw(LookupError())
"""


@every_python()
def test_exceptions_that_generators_pass_on(recordings, python):
    recorder = Recorder(recordings)
    status, _, err = recorder.run("-F", 999, python, "-c", PASSED_ON)
    assert status == 0, err
    assert recorder.profile().share_of(chain("innermost", "spin")) > 0.8


# The program's own handler for the sampler's signal, which only it may get, whatever other threads do.
OWN_HANDLER = """
import os, signal, threading, time
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
def before(): spin(0.5)
def behind(): spin(0.5)
done = threading.Event()
waiting = [threading.Thread(target=done.wait) for _ in range(4)]
for thread in waiting:
    thread.start()
before()
got = []
def handler(number, frame): got.append(number)
was = signal.signal(signal.{signal}, handler)
behind()
os.kill(os.getpid(), signal.{signal})
done.set()
for thread in waiting:
    thread.join()
again = signal.signal(signal.{signal}, signal.SIG_DFL)
print(len(got), was == signal.SIG_DFL, again == handler, flush=True)
"""


@pytest.mark.parametrize("options, name", [([], "SIGTRAP"), (["-e", "wall"], "SIGSTKFLT")])
def test_a_program_that_wants_the_signal_gets_it(recordings, options, name):
    if name == "SIGSTKFLT" and sys.version_info < (3, 11):
        pytest.skip("this Python has no signal.SIGSTKFLT")
    recorder = Recorder(recordings)
    status, out, err = recorder.run("-F", 999, *options, sys.executable, "-c",
                                    OWN_HANDLER.format(signal=name))
    if name == "SIGTRAP" and "interrupted by perf events" not in err:
        pytest.skip("there are no perf events here, whose signal this is")
    assert (status, out) == (0, "1 True True\n"), err
    assert "the program uses the sampler's signal itself" in err
    samples = recorder.profile().samples
    for function in "before", "behind":
        assert sum(map(chain(function, "spin"), samples)) > 200


# Signals that the program waits for, all of them, in a thread of its own.
WAIT_FOR_ALL = """
import os, signal, threading, time
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
got = []
def wait():
    while signal.SIGTERM not in got:
        got.append(signal.sigwait(signal.valid_signals()))
thread = threading.Thread(target=wait)
thread.start()
time.sleep(0.5)
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.1)
os.kill(os.getpid(), signal.SIGTERM)
thread.join()
print(*map(int, got))
"""


@pytest.mark.parametrize("options", [[], ["-e", "wall"]], ids=["cpu", "wall"])
def test_a_program_that_waits_for_all_signals_gets_its_own_only(recordings, options):
    recorder = Recorder(recordings)
    status, out, err = recorder.run("-F", 999, *options, sys.executable, "-c", WAIT_FOR_ALL)
    assert (status, out) == (0, "10 15\n"), err


# Handlers that CPython installs run on a stack of their own.
MANY_SIGNALS = """
import os, signal, time
got = []
signal.signal(signal.SIGUSR1, lambda number, frame: got.append(number))
def send():
    end = time.process_time() + 1
    while time.process_time() < end:
        os.kill(os.getpid(), signal.SIGUSR1)
send()
"""


@every_python()
def test_samples_in_signal_handlers_are_whole(recordings, python):
    recorder = Recorder(recordings)
    status, _, err = recorder.run("-F", 1999, python, "-c", MANY_SIGNALS)
    assert status == 0, err
    assert figure(r"complete stacks ([\d.]+) %", err) >= 99.5, err
    assert figure(r"unmatched ([\d.]+) %", err) <= 0.2, err
    assert recorder.profile().share_of(calls("_start", "py::send:<string>")) > 0.7


# Most of such a thread's life is its beginning and its end.
SHORT_THREADS = """
import threading
def work(): sum(range(1000))
for _ in range(5000):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""


@every_python()
def test_short_threads_lose_no_samples(recordings, python):
    recorder = Recorder(recordings, is_fast=True)
    status, _, err = recorder.run("-F", 9999, python, "-c", SHORT_THREADS)
    assert status == 0, err
    assert figure(r"([\d,]+) samples", err) > 500, err
    # One at most: two threads with a new function at once, of which one stood still meanwhile.
    assert figure(r"([\d,]+) lost", err) <= 1, err
    assert figure(r"complete stacks ([\d.]+) %", err) >= 99.5, err


# The rings are in a place that is full from some moment on, also for the rings of its children.
FULL = """
import os, time
def spin():
    end = time.process_time() + 0.7
    while time.process_time() < end:
        sum(range(1000))
def before(): spin()
def behind(): spin()
before()
hog = os.open(os.path.dirname(os.environ["PITVIPER_RECORD"]) + "/hog", os.O_WRONLY | os.O_CREAT)
for bytes in (1 << 20, 4096):
    try:
        while True:
            os.write(hog, b"x" * bytes)
    except OSError:
        pass
behind()
pid = os.fork()
if pid == 0:
    behind()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("there")
"""


def in_small_memory(*command):
    """A command with a /dev/shm of its own that has just the room the recorder asks for."""
    return ["unshare", "--mount", "--propagation", propagation(), "sh", "-c",
            'mount -t tmpfs -o size=257m none /dev/shm && exec "$@"', "sh", *command]


@every_python()
def test_a_full_disk_loses_samples_and_nothing_else(recordings, python):
    if os.geteuid() != 0 or obstacle():
        pytest.skip(obstacle() or "only root may mount a small /dev/shm")
    recorder = Recorder(recordings, before=in_small_memory())
    status, out, err = recorder.run("-F", 999, python, "-c", FULL)
    assert (status, out) == (0, "there\n"), err
    assert any(map(chain("before", "spin"), recorder.profile().samples))


# A ring that is none, shortened as soon as the recorder has it.
SHORTENED = """
import os, struct, subprocess, time
other = subprocess.Popen(["sleep", "60"], env={})  # without a ring of its own
folder = os.environ["PITVIPER_RECORD"]
path = folder + "/1.0.ring"
fd = os.open(folder + "/new", os.O_RDWR | os.O_CREAT)
os.write(fd, struct.pack("=IIiiQQ", 0x52565650, VERSION, other.pid, 1, 4096, 1))
os.ftruncate(fd, 8192)
os.rename(folder + "/new", path)
while os.path.exists(path):
    time.sleep(0.01)
os.ftruncate(fd, 0)
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
other.kill()
other.wait()
print("there")
"""


def test_a_ring_that_is_shortened_does_not_end_the_recorder(recordings):
    recorder = Recorder(recordings)
    header = (CHECKOUT / "src" / "formats" / "sample_ring.h").read_text()
    version = re.search(r"SAMPLE_RING_VERSION = (\d+)", header)[1]
    code = SHORTENED.replace("VERSION", version)
    status, out, err = recorder.run("-F", 999, sys.executable, "-c", code)
    assert (status, out) == (0, "there\n"), err
    assert figure(r"([\d,]+) samples", err) > 100, err


# As daemons do it. Later it has descriptors of its own with the numbers of those that were there.
CLOSE_ALL = """
import os, time
def spin():
    end = time.process_time() + 0.5
    while time.process_time() < end:
        pass
def behind(): spin()
def in_child(): spin()
os.closerange(3, 1024)
behind()
own = [os.open("/dev/null", os.O_RDONLY)]
while own[-1] < 300:
    own.append(os.open("/dev/null", os.O_RDONLY))
pid = os.fork()
for fd in own:
    os.fstat(fd)
if pid == 0:
    in_child()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


@every_python()
def test_a_program_that_closes_everything_is_sampled_on(recordings, python):
    recorder = Recorder(recordings)
    status, _, err = recorder.run("-F", 999, python, "-c", CLOSE_ALL)
    assert status == 0, err
    samples = recorder.profile().samples
    for name in ("behind", "in_child"):
        assert sum(map(chain(name, "spin"), samples)) > 100, name


# A sample of so many frames takes longer than the time up to the next one.
DEEP = """
import sys, time
sys.setrecursionlimit(100000)
def deep(depth):
    if depth:
        return deep(depth - 1)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
deep(40000)
print("there")
"""


@every_python(at_least=(3, 11))
def test_a_very_deep_stack_does_not_stop_the_program(recordings, python):
    status, out, err = Recorder(recordings).run("-F", 9999, python, "-c", DEEP)
    assert (status, out) == (0, "there\n"), err
