"""Our unwinder against elfutils' libdw, on real recordings of `perf record --call-graph dwarf`: the
same lists of PCs, and the same places on the stack, on 99.9 % of at least 10,000 samples of each
program.

Two kinds of samples are counted apart: libdw ends too early in them, for reasons that are known and
checked sample by sample; see tests/targets/unwind_oracle.c.
"""
import pytest

from ..builds import BUILD, built
from . import oracle
from .interpreters import every_python
from .targets import FOO_BAR_BAZ, JSON_AND_RE

LEAST_SAMPLES = 10000
FREQUENCY = 9999
SECONDS = 1.5


@pytest.fixture
def compared(perf):
    """Records a command until there are samples enough, and compares: compared(COMMAND...)."""
    oracle.need()

    def compare(*command, environment=()):
        total = oracle.Compared({})
        while total.samples < LEAST_SAMPLES:
            before = total.samples
            data = perf.record("env", *environment, *command, SECONDS, call_graph="dwarf",
                               frequency=FREQUENCY).data
            total.add(oracle.run(data))
            data.unlink()
            assert total.samples - before > LEAST_SAMPLES / 20, "perf hardly records anything here"
        return total
    return compare


@every_python()
def test_unwinding_the_documents_script_is_as_libdw_does_it(python, compared):
    compared(python, FOO_BAR_BAZ).check()


@every_python()
def test_unwinding_c_extensions_is_as_libdw_does_it(python, compared):
    compared(python, JSON_AND_RE).check()


def test_unwinding_signals_and_the_plt_is_as_libdw_does_it(compared):
    result = compared(built(BUILD, "tests/native_stacks"))
    result.check()
    assert result.counts["signal_frames"] > result.samples / 100


def test_unwinding_the_resolver_of_the_dynamic_linker_is_as_libdw_does_it(compared):
    compared(built(BUILD, "tests/native_stacks"), environment=["LD_BIND_NOT=1"]).check()
