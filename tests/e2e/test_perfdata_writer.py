"""What our writer writes, real perf reads: all of it, in order, without a warning."""
import subprocess

import pytest

from ..builds import BUILD, built
from . import perf as perf_module
from .cli import pitviper
from .perf_raw import read_dump

SAMPLES = 2500


@pytest.fixture
def perf_without_recording(recordings):
    if not perf_module.find():
        pytest.skip("perf is not installed: apt install linux-perf (Ubuntu: linux-tools-generic)")
    return perf_module.Perf(recordings)


def make(folder, events):
    data = folder / "perf.data"
    subprocess.run([built(BUILD, "tests/perfdata_make"), data, str(SAMPLES), str(events)],
                   check=True, timeout=60)
    return data


def run_silently(perf, *arguments):
    """What perf prints; it must have nothing to say on stderr."""
    result = subprocess.run([perf.path, *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, cwd=perf.folder, timeout=120,
                            env=perf_module.ENVIRONMENT)
    assert (result.returncode, result.stderr.decode()) == (0, "")
    return result.stdout.decode()


@pytest.mark.parametrize("events", [1, 2])
def test_report_reads_it(perf_without_recording, events):
    data = make(perf_without_recording.folder, events)
    report = run_silently(perf_without_recording, "report", "--stdio", "-n", "-g", "none",
                          "--sort", "comm,pid", "-i", data)
    assert "of event 'python'" in report
    assert ("of event 'native'" in report) == (events == 2)
    assert "maker" in report and "Warning" not in report


@pytest.mark.parametrize("events", [1, 2])
def test_script_reads_every_sample(perf_without_recording, events):
    data = make(perf_without_recording.folder, events)
    script = run_silently(perf_without_recording, "script", "--no-inline", "-F",
                          "comm,tid,time,event,ip", "-i", data)
    heads = [line for line in script.splitlines() if line.startswith("maker")]
    assert len(heads) == SAMPLES
    assert sum("python" in line for line in heads) == (SAMPLES + events - 1) // events
    assert sum(line.startswith("\t") for line in script.splitlines()) == SAMPLES * 10


def test_samples_come_in_the_order_of_time(perf_without_recording):
    data = make(perf_without_recording.folder, 1)
    samples, counts = read_dump(run_silently(perf_without_recording, "report", "-D", "-i", data))
    assert [sample.time for sample in samples] == sorted(sample.time for sample in samples)
    assert (counts["sample"], counts["fork"], counts["mmap2"]) == (SAMPLES, 2, 1)


def test_the_header_is_complete(perf_without_recording):
    data = make(perf_without_recording.folder, 2)
    header = run_silently(perf_without_recording, "report", "--header-only", "-i", data)
    for fact in ("hostname : somewhere", "os release : 6.1.0", "arch : x86_64",
                 "nrcpus online : 2", "cmdline : perfdata_make a b", "name = python",
                 "name = native"):
        assert fact in header
    assert "abcd" in run_silently(perf_without_recording, "buildid-list", "-i", data)


def test_we_read_it_too(tmp_path):
    inspected = pitviper("inspect", "--json", make(tmp_path, 2)).json
    assert inspected["whole"] and inspected["finished"]
    assert inspected["records"]["sample"] == SAMPLES
    assert inspected["lost_samples"] == 5
    assert inspected["private_bytes"] == len("data of our own") + 1
