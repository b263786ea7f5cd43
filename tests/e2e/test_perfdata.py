"""Real recordings: our reader finds the same records and samples, in the same order, as perf's."""
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

from ..builds import BUILD, SANITIZED, built, sanitized_environment
from . import perf as perf_module
from .cli import pitviper
from .perf_raw import read_dump, read_ours

SPIN = "import time; end = time.time() + {0}\nwhile time.time() < end: sum(range(1000))"
THREADS = ("import threading, time\n"
           "def spin():\n    end = time.time() + 0.3\n    while time.time() < end: sum(range(1000))\n"
           "threads = [threading.Thread(target=spin) for _ in range(4)]\n"
           "[thread.start() for thread in threads]; [thread.join() for thread in threads]")
CHILDREN = ("import os, time\n"
            "for _ in range(3):\n    os.fork()\n"
            "end = time.time() + 0.3\nwhile time.time() < end: sum(range(1000))")

KINDS = {
    "fp": (["--call-graph", "fp"], SPIN.format(0.5)),
    "dwarf": (["--call-graph", "dwarf,2048"], SPIN.format(0.5)),
    "threads": (["--call-graph", "fp"], THREADS),
    "children": (["--call-graph", "fp"], CHILDREN),
    "compressed": (["-z", "--call-graph", "dwarf,2048"], CHILDREN),
    "two-events": (["-e", "cpu-clock,page-faults", "--call-graph", "fp"], CHILDREN),
    "no-chains": ([], THREADS),
    "clock-and-cpu": (["-k", "mono", "--sample-cpu", "--call-graph", "fp"], THREADS),
}


def record(perf, options, script):
    data = perf.folder / "perf.data"
    perf.run("record", "-q", "-F", 1999, *options, "-o", data, "--", sys.executable, "-c", script)
    return data


def our_samples(data):
    program = SANITIZED / "tests" / "perfdata_dump"
    program = program if program.is_file() else built(BUILD, "tests/perfdata_dump")
    result = subprocess.run([program, data], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=120, env=sanitized_environment())
    assert result.returncode == 0, result.stderr.decode()
    return list(read_ours(result.stdout.decode(errors="backslashreplace")))


def assert_the_same(perf, data):
    samples, counts = read_dump(perf.run("report", "-D", "-i", data))
    assert len(samples) > 100
    assert our_samples(data) == samples
    inspected = pitviper("inspect", "--json", data)
    assert (inspected.status, inspected.err) == (0, "")
    assert inspected.json["whole"]
    # perf prints some of its own records under other names, or not at all.
    kernel = {"mmap", "mmap2", "comm", "fork", "exit", "sample", "lost", "lost_samples",
              "throttle", "unthrottle", "finished_round"}
    ours = {name: count for name, count in inspected.json["records"].items() if name in kernel}
    assert ours == {name: count for name, count in counts.items() if name in kernel}
    assert sum(event["samples"] for event in inspected.json["events"]) == len(samples)
    assert sum(event["period"] for event in inspected.json["events"]) == sum(
        sample.period for sample in samples)
    assert inspected.json["processes"] == len({sample.pid for sample in samples})
    assert inspected.json["threads"] == len({(sample.pid, sample.tid) for sample in samples})
    return inspected.json


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_those_of_perf(perf, kind):
    inspected = assert_the_same(perf, record(perf, *KINDS[kind]))
    assert inspected["finished"] and inspected["mode"] == "file"
    assert inspected["compressed"] == (kind == "compressed")
    assert inspected["perf_version"] == perf_module.find()[1]


@pytest.mark.parametrize("options", [[], ["-z"]], ids=["plain", "compressed"])
def test_pipe_mode(perf, options):
    data = perf.folder / "stream"
    with open(data, "wb") as stream:
        subprocess.run([perf.path, "record", "-q", "-F", "1999", "-g", *options, "-o", "-", "--",
                        sys.executable, "-c", THREADS],
                       stdout=stream, stderr=subprocess.DEVNULL, check=True, timeout=60,
                       env=perf_module.ENVIRONMENT)
    assert assert_the_same(perf, data)["mode"] == "pipe"


def test_two_events_have_their_names(perf):
    data = record(perf, *KINDS["two-events"])
    events = pitviper("inspect", "--json", data).json["events"]
    assert [event["name"] for event in events] == ["cpu-clock", "page-faults"]
    assert all(event["samples"] for event in events)


def test_a_recording_whose_perf_was_killed(perf):
    """perf reads nothing of it; with the size that it could not fill in, it does."""
    data = perf.folder / "perf.data"
    recorder = subprocess.Popen([perf.path, "record", "-q", "-m", "4", "-F", "4999", "-g", "-o",
                                 data, "--", sys.executable, "-c", SPIN.format(3)],
                                stderr=subprocess.DEVNULL, env=perf_module.ENVIRONMENT)
    time.sleep(2)
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    time.sleep(1.5)  # until its child is gone
    inspected = pitviper("inspect", "--json", data).json
    assert not inspected["finished"]
    assert inspected["damaged_places"] == 0

    repaired = shutil.copy(data, perf.folder / "repaired.data")
    with open(repaired, "r+b") as file:
        # perf fails at a record that it was killed in the middle of.
        size = file.truncate(inspected.get("truncated_offset", data.stat().st_size))
        file.seek(40)
        offset = struct.unpack("<Q", file.read(8))[0]
        file.write(struct.pack("<Q", size - offset) + bytes(16) + bytes(32))
    samples, _ = read_dump(perf.run("report", "-f", "-D", "-i", repaired))
    assert len(samples) > 100
    assert our_samples(data) == samples


@pytest.mark.parametrize("kind", ["fp", "compressed"])
def test_a_recording_that_is_cut_off(perf, kind):
    data = record(perf, *KINDS[kind])
    whole = data.read_bytes()
    samples = our_samples(data)
    for part in (0.3, 0.6, 0.9):
        data.write_bytes(whole[:int(len(whole) * part)])
        result = pitviper("inspect", "--json", data)
        assert result.status == 1 and result.json["truncated"]
        assert result.json["damaged_places"] == 0
        assert "ends inside its last entry" in result.complaint
        assert set(our_samples(data)) <= set(samples)


def test_the_text_says_the_same(perf):
    data = record(perf, *KINDS["fp"])
    json = pitviper("inspect", "--json", data).json
    result = pitviper("inspect", data)
    assert (result.status, result.err) == (0, "")
    assert f"{json['events'][0]['samples']:,} samples" in result.out
    assert f"{json['records']['mmap2']:,} mmap2" in result.out
    assert json["hostname"] in result.out
    assert "damaged     no" in result.out
