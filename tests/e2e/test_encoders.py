"""Our encoders write what real profilers accept: jit_spin makes a function at run time and tells
its name with them; the profiles show it."""
import platform

import pytest

from .cli import pitviper
from .name_files import jitdump_of, perf_map_of, read_jitdump, read_perf_map, written_by
from .profiles import calls
from .targets import jit_spin

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64",
                                reason="jit_spin makes code for x86-64 only")

NAME = "made_at_run_time"
SECONDS = 1.5


def test_perf_reads_our_map(perf):
    profile = perf.record(jit_spin(), "map", SECONDS).profile()
    assert profile.of("jit_spin").share_of(calls("spin", NAME)) >= 0.95


def test_samply_reads_our_map(samply):
    profile = samply.record(jit_spin(), "map", SECONDS)
    assert profile.of("jit_spin").share_of(calls("spin", NAME)) >= 0.95


@pytest.mark.parametrize("call_graph", ["fp", "dwarf"])
def test_perf_reads_our_jitdump(call_graph, perf):
    recording = perf.record(jit_spin(), "jitdump", SECONDS, call_graph=call_graph, clock="mono")
    profile = recording.inject().profile()
    assert profile.of("jit_spin").share_of(calls("spin", NAME)) >= 0.95


def test_samply_reads_our_jitdump(samply):
    profile = samply.record(jit_spin(), "jitdump", SECONDS)
    assert profile.of("jit_spin").share_of(calls("spin", NAME)) >= 0.95


def test_inspect_reads_our_map(tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_bytes(written_by(perf_map_of, jit_spin(), "map", 0))
    [entry] = read_perf_map(path.read_bytes())
    inspected = pitviper("inspect", "--json", path).json
    assert (entry.name, inspected["entries"], inspected["whole"]) == (NAME, 1, True)


def test_inspect_reads_our_jitdump(tmp_path):
    path = tmp_path / "jit-1.dump"
    path.write_bytes(written_by(jitdump_of, jit_spin(), "jitdump", 0))
    dump = read_jitdump(path.read_bytes())
    assert [record.kind for record in dump.records] == [
        "unwinding_info", "debug_info", "load", "close"]
    inspected = pitviper("inspect", "--json", path).json
    assert inspected["records"] == {**dump.counts(), "unknown": 0}
    assert (inspected["functions_with_lines"], inspected["functions_with_unwinding"]) == (1, 1)
    assert inspected["first"]["name"] == dump.functions[0].name == NAME and inspected["whole"]
