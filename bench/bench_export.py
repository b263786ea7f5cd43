"""Exports of a million samples with 200,000 different stacks in 1,000 threads: each format for itself,
and folded stacks against perf script with a script that adds them up."""
import functools
import resource
import subprocess
import tempfile
from pathlib import Path

from builds import program
from comparison import Comparison
from report import CHECKOUT, run_measured

SAMPLES, STACKS, THREADS = 1_000_000, 200_000, 1_000
FORMATS = ["folded", "speedscope", "firefox", "pprof", "svg", "callgrind"]
COLLAPSERS = {"python": ["python3", CHECKOUT / "bench" / "collapse.py"],
              "awk": ["awk", "-f", CHECKOUT / "bench" / "collapse.awk"]}


def export(data, kind):
    """The command; firefox is packed as it is when people do not name a file."""
    output = "/dev/stdout" if kind != "firefox" else data.with_name("profile.json.gz")
    return [program("pitviper"), "export", "-f", kind, "-i", data, "-o", output]


def cpu_seconds(command, folder):
    """Of a command with all that it starts. The peer is two processes that run side by side, which a
    busy machine favours or not: what is compared is work."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_measured([command], folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def perf_script(data, folder, collapser):
    """The way with perf, as one command."""
    return ["sh", "-c", f"perf --buildid-dir {folder}/buildids script -i {data} "
                        f"-F comm,period,ip,sym | {' '.join(map(str, COLLAPSERS[collapser]))} "
                        f"> {folder}/peer.folded"]


def weight(path):
    total = 0
    with open(path, "rb") as lines:
        for line in lines:
            total += int(line.rsplit(b" ", 1)[1])
    return total


def check_equal(data, folder):
    """Both ways must have come to the same, or the comparison is of different work. Names of threads
    with line ends in them, one in a thousand, break what perf prints."""
    ours, peer = folder / "ours.folded", folder / "peer.folded"
    subprocess.run([*export(data, "folded")[:-1], ours], check=True, stderr=subprocess.DEVNULL)
    assert 0.99 <= weight(peer) / weight(ours) <= 1
    assert 0.95 <= peer.stat().st_size / ours.stat().st_size <= 1.05


def comparisons():
    with tempfile.TemporaryDirectory(prefix="pitviper-bench-") as name:
        folder = Path(name)
        data = folder / "perf.data"
        subprocess.run([program("tests/make_recording"), folder, str(SAMPLES), str(STACKS),
                        str(THREADS)], check=True)
        load = functools.partial(run_measured,
                                 [[program("pitviper"), "report", "--json", "-i", data]], folder)
        for kind in FORMATS:
            ours = functools.partial(run_measured, [export(data, kind)], folder)
            yield Comparison(f"export {kind}", lambda run=ours: run()[0], lambda: load()[0],
                             "report --json", "s", rounds=2)
            yield Comparison(f"its memory, {kind}", lambda run=ours: run()[1], lambda: load()[1],
                             "report --json", "MB", rounds=1)
        for collapser, most_ratio in (("python", 0.1), ("awk", None)):
            yield Comparison(f"export folded, CPU ({collapser})",
                             lambda: cpu_seconds(export(data, "folded"), folder),
                             lambda c=collapser: cpu_seconds(perf_script(data, folder, c), folder),
                             f"perf script | {collapser}", "s", most_ratio=most_ratio, rounds=2)
            check_equal(data, folder)
