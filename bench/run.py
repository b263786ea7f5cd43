#!/usr/bin/env python3
"""Compares speed with peers: ./dev bench [name ...]

Machines are noisy and shared, so no figure stands alone. A benchmark is a list of comparisons; the
sides of a comparison run in turn, A B A B ..., and each keeps its best run: noise only ever adds
time; or, within one process, the median of neighbours counts. What counts is the ratio, or a limit
where the design gives one.

A benchmark is a file bench_NAME.py in this folder with a function comparisons() that yields
Comparison objects.
"""
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from comparison import print_table  # noqa: E402


def names():
    return sorted(path.stem[len("bench_"):] for path in HERE.glob("bench_*.py"))


def main(wanted):
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        print(f"bench: unknown benchmark '{unknown[0]}'; there are: {', '.join(names())}",
              file=sys.stderr)
        return 2
    rows = []
    for name in wanted or names():
        for comparison in importlib.import_module(f"bench_{name}").comparisons():
            print(f"bench: {name}: {comparison.what} ...", file=sys.stderr)
            rows.append(comparison.measure())
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
