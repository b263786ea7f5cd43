"""pitviper inspect on whole files, as real interpreters write them, and on what is no such file."""
import os
import threading

import pytest

from .cli import pitviper
from .interpreters import every_python
from .name_files import jitdump_by, perf_map_by, read_jitdump, read_perf_map
from .targets import MY_SCRIPT

DOCUMENTED = {f"py::{function}:{MY_SCRIPT}" for function in ("<module>", "baz", "bar", "foo")}


def address(number):
    return f"{number:#x}"


def as_json(entry):
    return {"start": address(entry.start), "size": entry.size, "name": entry.name}


def assert_covers(inspected, entries):
    """The address range, the size of the code, the first and the last entry are right."""
    assert inspected["lowest"] == address(min(entry.start for entry in entries))
    assert inspected["highest"] == address(max(entry.start + entry.size for entry in entries))
    assert inspected["code_bytes"] == sum(entry.size for entry in entries)
    assert as_json(entries[0]).items() <= inspected["first"].items()
    assert as_json(entries[-1]).items() <= inspected["last"].items()


@every_python(at_least=(3, 12))
def test_a_perf_map(python, tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_bytes(perf_map_by(python))
    entries = read_perf_map(perf_map_by(python))
    assert DOCUMENTED <= {entry.name for entry in entries}

    result = pitviper("inspect", "--json", path)
    assert (result.status, result.err) == (0, "")
    assert result.json["format"] == "perfmap" and result.json["whole"]
    assert result.json["bytes"] == path.stat().st_size
    assert result.json["entries"] == result.json["python_functions"] == len(entries)
    assert_covers(result.json, entries)


@every_python(at_least=(3, 13))
def test_a_jitdump(python, tmp_path):
    path = tmp_path / "jit-1.dump"
    path.write_bytes(jitdump_by(python))
    dump = read_jitdump(jitdump_by(python))
    assert DOCUMENTED <= {function.name for function in dump.functions}

    result = pitviper("inspect", "--json", path)
    assert (result.status, result.err) == (0, "")
    assert result.json["format"] == "jitdump" and result.json["whole"]
    assert (result.json["pid"], result.json["clock"]) == (dump.pid, "monotonic")
    assert result.json["records"] == {**dump.counts(), "unknown": 0}
    assert result.json["functions"] == len(dump.functions)
    assert result.json["functions_with_unwinding"] == dump.counts()["unwinding_info"]
    assert_covers(result.json, dump.functions)


@every_python(at_least=(3, 13))
def test_the_text_says_the_same(python, tmp_path):
    perf_map, jitdump = tmp_path / "perf-1.map", tmp_path / "jit-1.dump"
    perf_map.write_bytes(perf_map_by(python))
    jitdump.write_bytes(jitdump_by(python))
    entries = read_perf_map(perf_map_by(python))
    functions = read_jitdump(jitdump_by(python)).functions

    result = pitviper("inspect", perf_map)
    assert (result.status, result.err) == (0, "")
    assert f"{len(entries):,} Python functions" in result.out
    assert f"{entries[0].start:x} +{entries[0].size:x}  {entries[0].name}" in result.out

    result = pitviper("inspect", jitdump)
    assert (result.status, result.err) == (0, "")
    assert f"{len(functions):,} LOAD" in result.out
    assert f"{functions[0].start:x} +{functions[0].size:x}" in result.out


def test_a_map_through_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"1000 10 one\n2000 10 two\n",))
    writer.start()
    result = pitviper("inspect", "--json", pipe)
    writer.join()
    assert (result.status, result.json["entries"]) == (0, 2)


def test_an_empty_map_is_whole(tmp_path):
    path = tmp_path / "perf-1.map"
    path.touch()
    result = pitviper("inspect", "--json", path)
    assert (result.status, result.json["entries"], result.json["whole"]) == (0, 0, True)


def test_names_cannot_control_the_terminal(tmp_path):
    path = tmp_path / "perf-1\x1b[2J.map"
    path.write_bytes(b"1000 10 \x1b[2Jgone\r\x07 \xff\n")
    result = pitviper("inspect", path)
    assert result.status == 0
    assert all(line.isprintable() for line in result.out.split("\n"))
    assert pitviper("inspect", "--json", path).json["first"]["name"] == "\x1b[2Jgone\r\x07 \ufffd"


def with_text(folder):
    path = folder / "notes.txt"
    path.write_text("neither the one nor the other\n")
    return path


def empty(folder):
    path = folder / "nothing"
    path.touch()
    return path


def unreadable(folder):
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    path = folder / "perf-1.map"
    path.touch(mode=0)
    return path


def named_to_confuse(folder):
    path = folder / "two\nlines\x1b[2J"
    path.write_text("some text\n")
    return path


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("make, complaint", [
    (with_text, "neither a perf.data, a perf map nor a jitdump"),
    (empty, "empty"),
    (lambda folder: folder, "folder"),
    (lambda folder: folder / "missing", "no such file"),
    (lambda folder: "/dev/null", "device"),
    (unreadable, "permission denied"),
    (named_to_confuse, "neither a perf.data, a perf map nor a jitdump"),
], ids=["text", "empty", "folder", "missing", "device", "unreadable", "confusing-name"])
def test_what_is_no_such_file_gets_one_line(make, complaint, json, tmp_path):
    result = pitviper("inspect", *json, make(tmp_path))
    assert (result.status, result.out) == (1, "")
    assert complaint in result.complaint
    assert result.complaint.isprintable()


def test_output_that_cannot_be_written_is_an_error(tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_text("1000 10 one\n")
    with open("/dev/full", "wb") as full:
        result = pitviper("inspect", path, stdout=full)
    assert result.status == 1
    assert "No space left on device" in result.complaint
