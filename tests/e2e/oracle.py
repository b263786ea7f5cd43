"""elfutils' libdw as a judge of unwound stacks: tests/targets/unwind_oracle.

    run(recording.data).check()
"""
import json
import subprocess

import pytest

from ..builds import BUILD, built

LEAST_EQUAL = 0.999
MOST_APART = 0.03


def exists():
    return (BUILD / "tests/unwind_oracle").exists()


def need():
    if not exists():
        pytest.skip("there is no oracle without libdw: apt install libdw-dev")


def run(data):
    result = subprocess.run([built(BUILD, "tests/unwind_oracle"), data, "3"], timeout=300,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 0, result.stderr
    return Compared(json.loads(result.stdout), result.stderr)


class Compared:
    def __init__(self, counts, differences=""):
        self.counts = counts
        self.differences = differences

    def add(self, other):
        for key, value in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + value
        self.differences += other.differences

    @property
    def samples(self):
        return self.counts.get("samples", 0)

    @property
    def apart(self):
        return self.counts["oracle_blind"] + self.counts["oracle_lost_rbx"]

    def check(self):
        assert self.apart <= MOST_APART * self.samples, self.counts
        comparable = self.samples - self.apart
        assert self.counts["equal"] >= LEAST_EQUAL * comparable, f"{self.counts}\n{self.differences}"
        assert self.counts["broken"] <= 0.001 * self.samples, self.counts
