"""Our unwinder against elfutils' libdw, on real recordings of `perf record --call-graph dwarf`: the
same lists of PCs, and the same places on the stack, on 99.9 % of at least 10,000 samples of each
program.

Two kinds of samples are counted apart: libdw ends too early in them, for reasons that are known and
checked sample by sample; see tests/targets/unwind_oracle.c.
"""
import json
import subprocess

import pytest

from ..builds import BUILD, built
from .interpreters import every_python
from .targets import FOO_BAR_BAZ, JSON_AND_RE

LEAST_SAMPLES = 10000
LEAST_EQUAL = 0.999
MOST_APART = 0.01
FREQUENCY = 9999
SECONDS = 1.5


@pytest.fixture
def compared(perf):
    """Records a command until there are samples enough, and compares: compared(COMMAND...)."""
    if not (BUILD / "tests/unwind_oracle").exists():
        pytest.skip("there is no oracle without libdw: apt install libdw-dev")

    def compare(*command, environment=()):
        total = Compared({})
        while total.samples < LEAST_SAMPLES:
            before = total.samples
            data = perf.record("env", *environment, *command, SECONDS, call_graph="dwarf",
                               frequency=FREQUENCY).data
            total.add(run_oracle(data))
            data.unlink()
            assert total.samples - before > LEAST_SAMPLES / 20, "perf hardly records anything here"
        return total
    return compare


def run_oracle(data):
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


@every_python()
def test_unwinding_the_documents_script_is_as_libdw_does_it(python, compared):
    compared(python, FOO_BAR_BAZ).check()


@every_python()
def test_unwinding_c_extensions_is_as_libdw_does_it(python, compared):
    compared(python, JSON_AND_RE).check()


def test_unwinding_signals_and_the_plt_is_as_libdw_does_it(compared):
    result = compared(built(BUILD, "tests/native_stacks"))
    result.check()
    assert result.counts["signal_frames"] > result.samples / 20


def test_unwinding_the_resolver_of_the_dynamic_linker_is_as_libdw_does_it(compared):
    compared(built(BUILD, "tests/native_stacks"), environment=["LD_BIND_NOT=1"]).check()
