"""Threads that wait, in recordings of wall-clock time: how much, where, and for what."""
import json
import re
import sys

import pytest

from .again import again
from .cli import pitviper
from .interpreters import every_python
from .recorder import Recorder
from .targets import FOO_BAR_BAZ, THREADS_AND_FORKS, WAITS

# What each function of the program waits for. Python 3.10 and before sleep by select(2). A socket
# with a timeout waits by poll(2).
KINDS = {"for_lock": {"lock"}, "for_network": {"network"}, "for_ready": {"select"},
         "for_epoll": {"select"}, "for_answer": {"select", "network"}, "for_pipe": {"file"},
         "for_process": {"process"}, "for_sleep": {"sleep", "select"}}


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


def report_of(recorder, *arguments):
    """What pitviper report --json says of a recording of wall-clock time."""
    status, _, err = recorder.run("-F", 199, "-e", "wall", *arguments)
    assert status == 0, err
    return json.loads(pitviper("report", "--json", str(recorder.data)).out)


def function(page, name):
    [row] = [row for row in page["functions"] if row["name"] == name]
    return row


def periods_by_kind(page, *names):
    """How long threads waited in Python functions of these names, for what."""
    periods = {}
    for place in page["waiting"]["places"]:
        if place.get("name") in names:
            periods[place["kind"]] = periods.get(place["kind"], 0) + place["periods"]
    return periods


@every_python()
@again
def test_where_threads_wait_and_for_what(recorder, python):
    page = report_of(recorder, python, WAITS, 2)
    lines = WAITS.read_text().splitlines()
    for name, kinds in KINDS.items():
        row = function(page, name)
        assert row["waiting_periods"] > 0.9 * row["total_periods"] > 1e9, name
        places = {place["kind"]: place for place in page["waiting"]["places"]
                  if place.get("name") == name}
        assert kinds & places.keys() and places.keys() - kinds <= {"gil", "cpu", "other"}, places
        place = places[min(kinds & places.keys())]
        assert lines[place["line"] - 1].startswith("    ")
        assert lines[place["line"] - 2] == f"def {name}():"
    assert page["waiting"]["periods"] == sum(place["periods"] for place in page["waiting"]["places"])


@every_python()
@again
def test_a_thread_that_the_sampler_wakes_does_not_wait_for_the_gil(recorder, python):
    """Another thread has the GIL nearly always, and it takes the GIL to go on waiting."""
    page = report_of(recorder, "-F", 999, python, WAITS, 2)
    for name, kinds in KINDS.items():
        periods = periods_by_kind(page, name)
        own = sum(periods.get(kind, 0) for kind in kinds)
        assert own > 0.8 * sum(periods.values()) > 1e9, (name, periods)
    periods = periods_by_kind(page, "wait", "Condition.wait")
    assert periods["lock"] > 0.8 * sum(periods.values()) > 1e9, periods


@every_python()
@again
def test_threads_that_work_wait_for_the_gil(recorder, python):
    """Three of them: each has it for a third of the time."""
    page = report_of(recorder, "-d", 2, python, THREADS_AND_FORKS, "threads", 100_000_000)
    periods = periods_by_kind(page, "work")
    assert periods["gil"] > 0.25 * function(page, "work")["total_periods"] > 1e9, periods
    assert periods.keys() <= {"gil", "cpu", "other"}


def test_the_page_shows_it(recorder):
    report_of(recorder, sys.executable, WAITS, 1)
    page = pitviper("report", str(recorder.data)).out
    assert re.search(r"^ +self +total +waiting +samples +function", page, re.M)
    assert re.search(r"^waiting: \d+\.\d % of the time, for$", page, re.M)
    assert re.search(r"^ *[\d.]+% +[\d,]+ +lock +for_lock +\S+waits\.py:\d+$", page, re.M)


def test_a_thread_at_work_does_not_wait(recorder):
    """Not for anything but a CPU, which others may have."""
    page = report_of(recorder, sys.executable, FOO_BAR_BAZ, 1)
    waits = [place for place in page.get("waiting", {"places": []})["places"]
             if place.get("name") == "foo" and place["kind"] != "cpu"]
    assert sum(place["periods"] for place in waits) < 0.05 * function(page, "foo")["self_periods"]


def test_cpu_time_knows_no_waiting(recorder):
    status, _, err = recorder.run("-F", 199, sys.executable, WAITS, 1)
    assert status == 0, err
    page = pitviper("report", str(recorder.data)).out
    assert "waiting" not in page
    assert "waiting" not in json.loads(pitviper("report", "--json", str(recorder.data)).out)
