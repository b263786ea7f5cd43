"""pitviper record: programs with several interpreters. What an interpreter runs for a function of another
is called by that function."""
import re

import pytest

from .again import again
from .interpreters import every_python
from .recorder import Recorder
from .targets import TARGETS

SCRIPT = TARGETS / "interpreters.py"

# What calls the function that works, with the modules of the inner interpreters; what is printed.
NESTED = ["<module>", "main", "once", "outer", "<module>"]
WAYS = {
    "nested": (NESTED, "+"),
    "unlocked": (NESTED, "+"),
    "twice": ([*NESTED, "middle", "<module>"], "+"),
    "threads": (["once", "outer", "<module>"], "+++"),
    "others": (["other", "outer", "<module>"], "++"),
}

# 3.9 has no trace of who runs an interpreter: docs/decisions/007-sampler.md.
NOT_ON_3_9 = ["twice", "others"]


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


def record(recorder, python, way):
    """What it has printed."""
    status, out, err = recorder.run("-F", 2999, python, SCRIPT, way)
    assert status == 0, err
    assert float(re.search(r"unmatched ([\d.]+) %", err)[1]) <= 0.5, err
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 99.5, err
    return out


def inner_callers(recorder):
    """Of each sample with the function that works: the functions of the script that called it."""
    stacks = [[frame.function for frame in sample.stack if is_of_the_script(frame)]
              for sample in recorder.profile().samples]
    return [stack[:stack.index("inner")] for stack in stacks if "inner" in stack]


def is_of_the_script(frame):
    """<string> or <script>, by version: what the other interpreters run."""
    return frame.file in (str(SCRIPT), "<string>", "<script>")


@pytest.mark.parametrize("way", WAYS)
@every_python()
def test_the_callers_in_other_interpreters_are_there(recorder, python, way):
    if python.version < (3, 10) and way in NOT_ON_3_9:
        pytest.skip("CPython 3.9 does not tell")
    expected, printed = WAYS[way]
    assert record(recorder, python, way).split() == [printed]
    found = inner_callers(recorder)
    assert len(found) > 1000
    assert found.count(expected) >= 0.995 * len(found)


@every_python()
def test_what_3_9_does_not_tell_is_counted(recorder, python):
    if python.version >= (3, 10):
        pytest.skip("CPython 3.10 and later tell")
    for way in NOT_ON_3_9:
        status, out, err = recorder.run("-F", 999, python, SCRIPT, way)
        assert (status, out.split()) == (0, [WAYS[way][1]]), err
        assert float(re.search(r"unmatched ([\d.]+) %", err)[1]) > 50, err


@every_python(at_least=(3, 14))
def test_a_pool_of_interpreters(recorder, python):
    assert record(recorder, python, "pool").split() == [str(60 * sum(i * i for i in range(300_000)))]
    stacks = [[frame.function for frame in sample.stack] for sample in recorder.profile().samples]
    working = [stack for stack in stacks if "work" in stack]
    assert len(working) > 1000
    assert sum({"Thread.run", "_worker"} <= set(stack) for stack in working) >= 0.995 * len(working)


@pytest.mark.parametrize("event", ["cpu", "wall"])
@every_python()
@again
def test_interpreters_that_come_and_go(recorder, python, event):
    status, out, err = recorder.run("-F", 9999, "-e", event, python, SCRIPT, "churn")
    assert (status, out.split()) == (0, ["+" * 60]), err
    if event == "cpu":
        assert float(re.search(r"unmatched ([\d.]+) %", err)[1]) <= 2, err
    found = inner_callers(recorder)
    assert len(found) > 200
    assert found.count(["churn", "once", "outer", "<module>"]) >= 0.99 * len(found)
