"""pitviper record: threads and processes that end before it is time for a sample. What they do is there,
for as long as it took, and so is what the thread does that starts them.

Such threads may run in step with the ticks of the kernel's clock for a while, hence another attempt."""
import json

import pytest

from .again import again
from .interpreters import every_python
from .recorder import Recorder
from .targets import SHORT_LIVED
from .test_sampler import oldest_and_newest
from .unprivileged import ordinary, take_back

THREADS, THREAD_S = 1600, 0.0003
FORKS, FORK_S = 1200, 0.0004
# The kernel's clock decides which of them is seen: a hundred ticks and more, so ten percent by chance.
TOLERANCE = 0.3


def seconds_of(profile, *functions):
    """The time of samples with one of these functions, and no other of the script's further in."""
    def matches(sample):
        seen = [frame.function for frame in sample.stack if frame.file == str(SHORT_LIVED)]
        return bool(seen) and seen[-1] in functions
    return profile.weight_of(matches) / 1e9


def recorded(recorder, *arguments):
    status, out, err = recorder.run(*arguments)
    assert status == 0, err
    if recorder.before:
        take_back(recorder.data)
    return recorder.profile(), json.loads(out), err


@pytest.mark.parametrize("kind", ["threads", "crowds"])
@every_python()
@again
def test_threads_that_are_shorter_than_a_period(recordings, python, kind):
    profile, truth, err = recorded(Recorder(recordings), python, SHORT_LIVED, kind, THREADS, THREAD_S)
    request = seconds_of(profile, "request") - truth["afterwards"]
    assert request == pytest.approx(truth["request"], rel=TOLERANCE), err


def seconds_below(profile, function):
    return profile.weight_of(
        lambda sample: any(frame.function == function for frame in sample.stack)) / 1e9


@pytest.mark.parametrize("seconds", [0.0013, 0.0026])
@oldest_and_newest
@again
def test_the_end_of_threads_of_the_same_length(recordings, python, seconds):
    """Events come a period after the beginning, and never where these end."""
    profile, truth, err = recorded(Recorder(recordings), python, SHORT_LIVED, "phases", int(2 / seconds), seconds)
    most, end = seconds_below(profile, "most_of_it"), seconds_below(profile, "end_of_it")
    assert most + end == pytest.approx(truth["request"], rel=TOLERANCE), err
    assert end / (most + end) == pytest.approx(0.2, abs=0.1), err


@oldest_and_newest
@again
def test_a_thread_that_starts_others_all_the_time(recordings, python):
    """It never runs for a whole period either, and its time is not left to what comes afterwards."""
    profile, truth, err = recorded(Recorder(recordings), python, SHORT_LIVED, "threads", THREADS, THREAD_S)
    assert seconds_below(profile, "one_after_the_other") >= 0.6 * truth["serve"], err
    assert seconds_below(profile, "afterwards") == pytest.approx(truth["afterwards"], rel=0.15), err


@oldest_and_newest
@again
def test_processes_that_are_shorter_than_a_period(recordings, python):
    profile, truth, err = recorded(Recorder(recordings), python, SHORT_LIVED, "forks", FORKS, FORK_S)
    request = seconds_of(profile, "request") - truth["afterwards"]
    assert request == pytest.approx(truth["request"], rel=TOLERANCE + 0.1), err


@oldest_and_newest
@again
def test_without_the_kernel(recordings, python):
    recorder = Recorder(recordings, before=ordinary(recordings, python))
    profile, truth, err = recorded(recorder, python, SHORT_LIVED, "threads", THREADS, THREAD_S)
    request = seconds_of(profile, "request") - truth["afterwards"]
    assert request == pytest.approx(truth["request"], rel=TOLERANCE), err
