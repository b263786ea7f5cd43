"""A perf map of one million lines: loading it, and naming addresses in it."""
import subprocess

from builds import program
from comparison import Comparison

PEER = "getline, sscanf, qsort, bsearch"


def comparisons():
    bench_perfmap = program("bench/bench_perfmap")
    seen = set()

    def figure(side, index):
        def run():
            out = subprocess.run([bench_perfmap, side], check=True, capture_output=True, text=True)
            load_ns, lookup_ns, checksum = map(int, out.stdout.split())
            seen.add(checksum)
            assert len(seen) == 1, "the two sides found different entries"
            return (load_ns / 1e9, lookup_ns)[index]
        return run

    yield Comparison("perf map, 1M lines: load", figure("ours", 0), figure("plain", 0), PEER, "s",
                     most_ratio=1.0, most=0.3)
    yield Comparison("perf map, 1M lines: look-up", figure("ours", 1), figure("plain", 1), PEER,
                     "ns", most_ratio=1.0, most=200)
