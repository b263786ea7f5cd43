"""Deep stacks, of which a sample has only what has changed (formats/sample_landmarks.h): each C function
still stands where it was called, also when the stack is made anew below any level."""
import re
import subprocess

import pytest

from .interpreters import every_python
from .profiles import Frame
from .recorder import Recorder
from .targets import DEEP_AND_CHANGING, profile_dump
from ..builds import sanitized_environment

FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$", re.MULTILINE)


def has_ctypes(python):
    return subprocess.run([python.executable, "-c", "import ctypes; ctypes.CDLL(None).qsort"],
                          stderr=subprocess.DEVNULL).returncode == 0


def stacks(recording):
    """Outermost first, and whole: perf script shows 127 functions."""
    text = subprocess.run([profile_dump(), recording, "--whole"], stdout=subprocess.PIPE, text=True,
                          check=True, env=sanitized_environment()).stdout
    for block in text.split("\n\n"):
        yield [Frame(*frame) for frame in reversed(FRAME.findall(block))]


def calls_of(stack):
    """(Python function, whether libc stands between its caller and it), outermost first, for all that
    another Python function called."""
    is_first, through_libc = True, False
    for frame in stack:
        if frame.function:
            if not is_first:
                yield frame.function, through_libc
            is_first, through_libc = False, False
        elif "libc.so" in frame.module:
            through_libc = True


@every_python()
def test_c_functions_stand_where_they_were_called(recordings, python):
    if not has_ctypes(python):
        pytest.skip("this CPython has no ctypes")
    recorder = Recorder(recordings, is_fast=True)
    status, _, err = recorder.run("-F", 999, python, DEEP_AND_CHANGING, 0.7)
    assert status == 0, err
    assert float(re.search(r"complete stacks ([\d.]+) %", err)[1]) >= 99, err
    # Where a stack could not be followed to its end, Python functions are the outermost.
    deep = [stack for stack in stacks(recorder.data) if len(stack) > 500 and not stack[0].function]
    found = [call for stack in deep for call in calls_of(stack)]
    assert len(deep) > 100
    for name, is_through_libc in (("down", False), ("compare", True)):
        ways = [way for function, way in found if function.rpartition(".")[2] == name]
        assert len(ways) > 10000
        assert ways.count(not is_through_libc) == 0, name
