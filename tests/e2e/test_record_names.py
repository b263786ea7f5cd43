"""pitviper record: samples have the name that their thread had at that time."""
import collections
import re
import sys

import pytest

from .cli import pitviper
from .interpreters import every_python
from .perf import Perf
from .recorder import Recorder

# PR_SET_NAME. The recorder learns of it some milliseconds later.
RENAMED = """
import ctypes, time
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
def before(): spin(1)
def after(): spin(1)
before()
ctypes.CDLL(None).prctl(15, b"second", 0, 0, 0)
after()
"""

# They fight for the GIL: most have their first sample before Python has named them.
WORKERS = """
import threading, time
def spin():
    end = time.monotonic() + 1
    while time.monotonic() < end:
        sum(range(1000))
def work():
    spin()
    threading.current_thread().name = "later"
    after()
def after(): spin()
threads = [threading.Thread(target=work, name=f"worker-{n}") for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

NAMES = """
import ctypes
set_name = ctypes.CDLL(None).prctl
def rename():
    set_name(15, str(time.monotonic()).encode(), 0, 0, 0)
"""


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


def within(function):
    return lambda sample: any(frame.function == function for frame in sample.stack)


def commands(samples):
    return collections.Counter(sample.command for sample in samples)


def task_events(recorder, kind):
    events = Perf(recorder.folder).run("script", "-i", recorder.data, "--show-task-events",
                                       "-F", "comm,tid")
    return re.findall(rf"PERF_RECORD_{kind}\b", events)


@pytest.mark.parametrize("clock, hz", [("cpu", 9999), ("cpu", 499), ("wall", 499)])
def test_a_program_that_renames_itself_has_both_names(recorder, clock, hz):
    status, _, err = recorder.run("-e", clock, "-F", hz, "-g", sys.executable, "-c", RENAMED)
    assert status == 0, err
    samples = recorder.profile().samples
    before, after = (list(filter(within(name), samples)) for name in ("before", "after"))
    assert len(before) > 200 and commands(before)["second"] == 0
    assert len(after) > 200 and commands(after)["second"] >= 0.98 * len(after)


def test_exports_have_both_names(recorder):
    assert recorder.run("-F", 999, sys.executable, "-c", RENAMED)[0] == 0
    status, out, err = pitviper("export", "-f", "folded", "-n", "-o", "-", recorder.data)
    assert status == 0, err
    stacks = [line.rsplit(" ", 1) for line in out.splitlines()]
    total = sum(int(count) for _, count in stacks)
    second = sum(int(count) for stack, count in stacks if stack.startswith("second;"))
    assert 0.4 <= second / total <= 0.6


@every_python(at_least=(3, 14))
@pytest.mark.parametrize("clock", ["cpu", "wall"])
def test_threads_have_the_names_that_python_gives_them(recorder, python, clock):
    status, _, err = recorder.run("-e", clock, "-F", 999, "-g", python, "-c", WORKERS)
    assert status == 0, err
    samples = [sample for sample in recorder.profile().samples if within("work")(sample)]
    after = list(filter(within("after"), samples))
    before = [sample for sample in samples if not within("after")(sample)]
    assert len({sample.tid for sample in samples}) == 4
    workers = [name for name in commands(before).elements() if name.startswith("worker-")]
    assert len(before) > 200 and len(workers) >= 0.95 * len(before), commands(before)
    assert len(after) > 200 and commands(after)["later"] >= 0.95 * len(after), commands(after)


def test_a_thread_with_a_new_name_is_the_same_thread(recorder):
    code = WORKERS.replace("sum(range(1000))", "rename()").replace("def work", NAMES + "def work")
    status, _, err = recorder.run("-e", "wall", "-F", 999, sys.executable, "-c", code)
    assert status == 0, err
    assert len(task_events(recorder, "FORK")) == 4
    assert len(task_events(recorder, "COMM")) > 100
