"""pitviper inspect on files that were whole once: cut off anywhere, with bytes changed anywhere.

What is promised: no crash (cli.py looks after that), a status of 0 or 1, JSON that parses, one line
that says what is wrong, and everything that the damage did not touch. The changes are pseudo-random
with a fixed seed, so a failure comes back.
"""
import random
import struct

import pytest

from .cli import pitviper
from .interpreters import every_python
from .name_files import (JITDUMP_HEADER, JITDUMP_PREFIX, jitdump_by, perf_map_by, read_jitdump,
                         read_perf_map)

CUTS = 20
FLIPS = 40
DENSE_DAMAGE = 0.01  # of all bytes


@pytest.fixture
def inspect(tmp_path):
    """Inspects content as a file of a name; the result of --json."""
    def run(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        result = pitviper("inspect", "--json", path)
        whole = result.json["whole"]
        assert result.status == (0 if whole else 1)
        assert whole == (result.err == "") and (whole or result.complaint)
        return result.json
    return run


def random_for(python):
    return random.Random(python.label)


def flipped(content, offset, rng):
    changed = bytearray(content)
    changed[offset] ^= rng.randrange(1, 256)
    return bytes(changed)


def changed_in_many_places(content, rng):
    changed = bytearray(content)
    for _ in range(int(len(content) * DENSE_DAMAGE)):
        changed[rng.randrange(JITDUMP_HEADER.size, len(content))] = rng.randrange(256)
    return bytes(changed)


@every_python(at_least=(3, 12))
def test_a_map_that_is_cut_off(python, inspect):
    content, rng = perf_map_by(python), random_for(python)
    border = content.index(b"\n", len(content) // 2) + 1
    cuts = [1, border - 1, border, border + 1, len(content) - 1]
    for cut in cuts + rng.sample(range(len(content)), CUTS):
        rest = content[:cut]
        last_line = rest[rest.rfind(b"\n") + 1:]
        last_line_has_a_name = any(last_line.split(b" ", 2)[2:])

        inspected = inspect("perf-1.map", rest)
        assert inspected["entries"] == rest.count(b"\n") + last_line_has_a_name
        assert inspected["truncated"] == bool(last_line)
        assert inspected["damaged_places"] == 0
        if last_line:
            assert inspected["truncated_offset"] == cut - len(last_line)


@every_python(at_least=(3, 13))
def test_a_jitdump_that_is_cut_off(python, inspect):
    content, rng = jitdump_by(python), random_for(python)
    records = read_jitdump(content).records
    border = records[len(records) // 2].offset
    cuts = [border - 1, border, border + 1, border + JITDUMP_PREFIX.size, len(content) - 1]
    for cut in cuts + rng.sample(range(JITDUMP_HEADER.size, len(content)), CUTS):
        whole = [record for record in records if record.offset + record.size <= cut]
        end = whole[-1].offset + whole[-1].size if whole else JITDUMP_HEADER.size

        inspected = inspect("jit-1.dump", content[:cut])
        assert inspected["functions"] == sum(record.kind == "load" for record in whole)
        assert inspected["records"]["unwinding_info"] == \
            sum(record.kind == "unwinding_info" for record in whole)
        assert inspected["truncated"] == (cut > end)
        assert inspected["damaged_places"] == 0
        if cut > end:
            assert inspected["truncated_offset"] == end


@every_python(at_least=(3, 12))
def test_a_map_with_a_changed_byte_loses_one_line_at_most(python, inspect):
    content, rng = perf_map_by(python), random_for(python)
    count = len(read_perf_map(content))
    for offset in rng.sample(range(len(content)), FLIPS):
        assert abs(inspect("perf-1.map", flipped(content, offset, rng))["entries"] - count) <= 1


@every_python(at_least=(3, 13))
def test_a_jitdump_with_a_changed_byte_loses_one_function_at_most(python, inspect):
    content, rng = jitdump_by(python), random_for(python)
    count = len(read_jitdump(content).functions)
    for offset in rng.sample(range(JITDUMP_HEADER.size, len(content)), FLIPS):
        assert abs(inspect("jit-1.dump", flipped(content, offset, rng))["functions"] - count) <= 1


@pytest.mark.parametrize("size", [0, 8, 15, 16, 300, 4096, 30000, 0x7fffffff, 0xffffffff])
@every_python(at_least=(3, 13))
def test_a_jitdump_with_a_wrong_record_size_loses_that_record_only(python, size, inspect):
    content = jitdump_by(python)
    dump = read_jitdump(content)
    for kind in ("load", "unwinding_info"):
        record = [record for record in dump.records if record.kind == kind][20]
        changed = bytearray(content)
        struct.pack_into("=I", changed, record.offset + 4, size)

        inspected = inspect("jit-1.dump", changed)
        assert inspected["damage"][0]["offset"] == record.offset
        assert inspected["damage"][0]["bytes"] == record.size
        expected = dict(dump.counts(), unknown=0)
        expected[kind] -= 1
        assert inspected["records"] == expected


@every_python(at_least=(3, 13))
def test_a_jitdump_with_a_changed_header_is_refused_or_read(python, tmp_path):
    content, rng, path = jitdump_by(python), random_for(python), tmp_path / "jit-1.dump"
    for offset in range(JITDUMP_HEADER.size):
        path.write_bytes(flipped(content, offset, rng))
        result = pitviper("inspect", "--json", path)
        assert result.status in (0, 1)
        assert result.json["functions"] if result.out else result.complaint


@every_python(at_least=(3, 13))
def test_files_with_damage_everywhere(python, inspect):
    perf_map, jitdump, rng = perf_map_by(python), jitdump_by(python), random_for(python)
    for _ in range(10):
        inspected = inspect("perf-1.map", changed_in_many_places(perf_map, rng))
        assert inspected["entries"] > 0
        inspected = inspect("jit-1.dump", changed_in_many_places(jitdump, rng))
        assert inspected["functions"] > 0
