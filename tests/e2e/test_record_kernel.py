"""pitviper record: what programs do inside the kernel, where the kernel lets us know; and that it goes
without where it does not."""
import json
import os
import sys
from pathlib import Path

import pytest

from . import perf as perf_module
from .again import again
from .cli import pitviper
from .interpreters import found
from .perf import PARANOID, Perf
from .profiles import chain
from .recorder import Recorder
from .targets import KERNEL_TIME
from .unprivileged import ordinary, take_back

KERNEL = "[kernel.kallsyms]"
WITH_KERNEL = "interrupted by perf events, with the kernel's functions"
MLOCK_KB = Path("/proc/sys/kernel/perf_event_mlock_kb")
RING_KB = 12  # of locked memory for each process, a processor

oldest_and_newest = pytest.mark.parametrize(
    "python", [pytest.param(python, id=python.label) for python in {found()[0], found()[-1]}])


def in_kernel(sample):
    # perf itself has samples without a stack now and then.
    return bool(sample.stack) and sample.stack[-1].module == KERNEL


def is_kernels(name):
    def matches(sample):
        return any((frame.name, frame.module) == (name, KERNEL) for frame in sample.stack)
    return matches


def recorded(recorder, *arguments):
    """(out, err) of a recording with the kernel's part."""
    if perf_module.obstacle():
        pytest.skip(perf_module.obstacle())
    status, out, err = recorder.run(*arguments)
    assert status == 0, err
    if WITH_KERNEL not in err and int(PARANOID.read_text()) > 1 and os.geteuid() != 0:
        pytest.skip("this user may not see the kernel: sudo sysctl kernel.perf_event_paranoid=1")
    assert WITH_KERNEL in err
    return out, err


def kernel_share(profile):
    return profile.weight_of(in_kernel) / profile.weight_of(lambda sample: True)


@pytest.mark.parametrize("hertz", [999, 9999])
@again
def test_the_kernels_share_is_that_of_perf(recordings, hertz):
    recorder = Recorder(recordings)
    recorded(recorder, "-F", hertz, sys.executable, KERNEL_TIME, 2)
    theirs = Perf(recordings).record(sys.executable, KERNEL_TIME, 2, frequency=hertz).profile()
    assert abs(kernel_share(recorder.profile()) - kernel_share(theirs)) < 0.03


@oldest_and_newest
@again
def test_time_in_system_calls_counts_in_full(recordings, python):
    """Long calls too, during which the thread is interrupted many times before it can look."""
    recorder = Recorder(recordings)
    out, _ = recorded(recorder, "-F", 4999, python, KERNEL_TIME, 2)
    truth, profile = json.loads(out), recorder.profile()
    seen = {name: profile.weight_of(chain("timed", name)) / 1e9 for name in truth if name != "all"}
    for name, seconds in seen.items():
        assert seconds == pytest.approx(truth[name], rel=0.1), (seen, truth)
    assert profile.weight_of(lambda sample: True) / 1e9 == pytest.approx(truth["all"], rel=0.05)


def test_the_kernels_functions_are_on_top_of_the_callers(recordings):
    recorder = Recorder(recordings)
    recorded(recorder, "-F", 1999, sys.executable, KERNEL_TIME, 1)
    samples = [sample for sample in recorder.profile().samples if chain("timed", "long_calls")(sample)]
    inside = [sample for sample in samples if in_kernel(sample)]
    assert len(inside) > 0.9 * len(samples) > 300
    assert sum(map(is_kernels("vfs_read"), inside)) > 0.9 * len(inside)
    for sample in inside:
        last = max(i for i, frame in enumerate(sample.stack) if frame.function)
        modules = [frame.module == KERNEL for frame in sample.stack[last + 1:]]
        # Down from Python: the evaluator, what reads, then the kernel and nothing else.
        assert not modules[0] and modules == sorted(modules)


def test_pitviper_report_names_them(recordings):
    recorder = Recorder(recordings)
    recorded(recorder, "-F", 1999, sys.executable, KERNEL_TIME, 1)
    page = json.loads(pitviper("report", "--json", str(recorder.data)).out)
    [place] = [place for place in page["below_python"] if place["kind"] == "kernel"]
    assert page["event"] == "cpu-clock"
    assert place["periods"] / page["periods"] == pytest.approx(kernel_share(recorder.profile()), abs=0.02)
    table = pitviper("report", "--stdio", "--sort", "dso,sym", "-g", "none", "-i", str(recorder.data))
    assert any(KERNEL in line and "[k] vfs_read" in line for line in table.out.splitlines())
    perfs = recorder.report("--sort", "dso,sym", "-g", "none")
    # perf 7.2 says [.] of functions that it knows as callers only.
    assert any(KERNEL in line and "] vfs_read" in line for line in perfs.splitlines())


THREADS_AND_CHILDREN = """
import os, subprocess, sys, threading
def read():
    with open("/dev/urandom", "rb", buffering=0) as source:
        for _ in range(100):
            source.read(1 << 20)
def in_thread(): read()
def in_child(): read()
def in_thread_of_child(): read()
def run(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
run(in_thread)
child = os.fork()
if not child:
    in_child()
    run(in_thread_of_child)
    os._exit(0)
os.waitpid(child, 0)
try:
    os.execv("/does/not/exist", ["x"])
except FileNotFoundError:
    pass
def after_exec_failed(): read()
after_exec_failed()
"""


@oldest_and_newest
def test_threads_and_children_have_the_kernels_part(recordings, python):
    recorder = Recorder(recordings)
    recorded(recorder, "-F", 999, python, "-c", THREADS_AND_CHILDREN)
    samples = recorder.profile().samples
    for function in ["in_thread", "in_child", "in_thread_of_child", "after_exec_failed"]:
        own = [sample for sample in samples if chain(function, "read")(sample)]
        assert len(own) > 100, function
        assert sum(map(in_kernel, own)) > 0.9 * len(own), function


# More threads than processors, in two kinds of system calls.
SIDE_BY_SIDE = """
import tempfile, threading, time
def until_spent(call):
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        call()
def reads():
    with open("/dev/urandom", "rb", buffering=0) as source:
        until_spent(lambda: source.read(1 << 18))
def writes():
    data = bytes(1 << 18)
    with tempfile.TemporaryFile(buffering=0) as sink:
        until_spent(lambda: (sink.seek(0), sink.write(data)))
threads = [threading.Thread(target=target) for target in [reads, writes] * 3]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@oldest_and_newest
def test_threads_do_not_get_each_others_chains(recordings, python):
    recorder = Recorder(recordings)
    recorded(recorder, "-F", 4999, python, "-c", SIDE_BY_SIDE)
    inside = [sample for sample in recorder.profile().samples if in_kernel(sample)]
    for way, own, others in [("reads", "vfs_read", "vfs_write"), ("writes", "vfs_write", "vfs_read")]:
        samples = [sample for sample in inside if chain(way, "until_spent")(sample)]
        assert sum(map(is_kernels(own), samples)) > 0.5 * len(samples) > 1000, way
        assert not any(map(is_kernels(others), samples)), way


# The program takes the signal while other threads have events that send it.
OTHERS_RUN = """
import os, signal, threading, time
def spin():
    end = time.thread_time() + 1
    while time.thread_time() < end:
        sum(range(1000))
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads:
    thread.start()
time.sleep(0.3)
got = []
signal.signal(signal.SIGTRAP, lambda number, frame: got.append(number))
for thread in threads:
    thread.join()
os.kill(os.getpid(), signal.SIGTRAP)
print(len(got), flush=True)
"""


def test_a_program_that_wants_the_signal_gets_no_others_from_its_threads(recordings):
    recorder = Recorder(recordings)
    out, err = recorded(recorder, "-F", 9999, sys.executable, "-c", OTHERS_RUN)
    assert out == "1\n"
    assert "the program uses the sampler's signal itself" in err


def test_an_ordinary_user_goes_without(recordings):
    if int(PARANOID.read_text()) < 2:
        pytest.skip("here every user may see the kernel (kernel.perf_event_paranoid)")
    recorder = Recorder(recordings, before=ordinary(recordings, found()[0]))
    status, out, err = recorder.run("-F", 999, found()[0], KERNEL_TIME, 1)
    assert status == 0, err
    assert "with the kernel's functions" not in err
    assert "sysctl kernel.perf_event_paranoid=1" in err or "CPU-time timers" in err
    if os.geteuid() == 0:
        take_back(recorder.data)
    profile = recorder.profile()
    assert not any(map(in_kernel, profile.samples))
    seen = profile.weight_of(lambda sample: True) / 1e9
    assert seen == pytest.approx(json.loads(out)["all"], rel=0.1)
    page = json.loads(pitviper("report", "--json", str(recorder.data)).out)
    assert page["event"] == "cpu-clock:u"


# More processes than there is memory to lock for, all at once.
MANY_PROCESSES = """
import os, sys, time
reader, writer = os.pipe()
def work():
    while time.process_time() < 0.05:
        sum(range(1000))
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os.close(writer)
        work()
        os.read(reader, 1)  # until the first one has seen all
        os._exit(0)
time.sleep(1)
os.close(writer)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print(sum(os.times()[:4]))
"""


def test_what_no_memory_can_be_locked_for_is_sampled_too(recordings):
    room = int(MLOCK_KB.read_text()) // RING_KB
    if room > 200:
        pytest.skip(f"here {room} processes have room: too many for a test")
    python = found()[-1]
    recorder = Recorder(recordings, is_fast=True, before=[
        *ordinary(recordings, python, "perfmon"), "prlimit", "--memlock=0"])
    out, err = recorded(recorder, "-F", 999, python, "-c", MANY_PROCESSES, room + 20)
    assert "without the kernel's functions (too little memory may be locked" in err
    take_back(recorder.data)
    seen = recorder.profile().weight_of(lambda sample: True) / 1e9
    assert seen == pytest.approx(float(out), rel=0.1)


# A thread of many becomes another program, or tries to.
EXEC_IN_THREAD = """
import os, sys, threading, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
def other(): spin(0.3)
def later(): spin(0.3)
def become():
    try:
        os.execv("/does/not/exist", ["x"])
    except FileNotFoundError:
        pass
    thread = threading.Thread(target=later)
    thread.start()
    thread.join()
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
thread = threading.Thread(target=become)
thread.start()
other()
thread.join()
"""
ANOTHER_PROGRAM = """
import time
def after():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(1000))
after()
"""


@oldest_and_newest
def test_an_exec_in_a_thread(recordings, python):
    """What is known of the other threads after one that failed is said."""
    recorder = Recorder(recordings)
    _, err = recorded(recorder, "-F", 999, python, "-c", EXEC_IN_THREAD, ANOTHER_PROGRAM)
    assert "after an exec that failed, threads from before it have fewer samples" in err
    samples = recorder.profile().samples
    for way in [("later", "spin"), ("<module>", "after")]:
        assert sum(map(chain(*way), samples)) > 200, way
