"""Python functions as code of an image: real perf, samply and we ourselves show names and lines.

tests/targets/python_image_make.c writes the recording: a sample per function and line, called by the
functions before it (four at most), each in its last line."""
import re
import shutil
import subprocess

import pytest

from ..builds import SANITIZED, built, sanitized_environment
from . import perf as perf_module, samply as samply_module
from .cli import pitviper

# (name, file, first line, lines)
FUNCTIONS = [
    ("<module>", "/srv/app/main.py", 1, [1, 2, 5]),
    ("Server.run", "/srv/app/server.py", 10, [11, 12, 20]),
    ("Server.run.<locals>.<lambda>", "/srv/app/server.py", 15, [15]),
    ("main", "/srv/app/main.py", 3, [4, 100000]),
    ("_find_and_load", "<frozen importlib._bootstrap>", 1165, [1176, 1178]),
    ("handler", "/srv/with space/ä.py", 7, [3, 8, 9]),
]

ODD = [
    ("start", "/srv/a.py", 1, [2]),
    ("quotes \"'`$(x);\\", "/srv/it's \"odd\".py", 1, [2]),
    ("ünï → 漢字 🐍", "/srv/漢字.py", 5, [6]),
    ("two\nlines\r\0", "/srv/two\nlines.py", 9, [10]),
    ("", "", 0, [1]),
    ("long" * 2500, "/srv/" + "x" * 10000, 1, [2]),
    ("end", "/srv/a.py", 20, [21, 22]),
]


def clean(text):
    for bad, good in (("\n", "\\n"), ("\r", "\\r"), ("\0", "\\0")):
        text = text.replace(bad, good)
    return text if len(text.encode()) <= 8192 else text[:4096] + "…" + text[-4096:]


def symbol(function):
    return f"py::{clean(function[0])}:{clean(function[1]) or '<unknown>'}"


def place(function, line):
    return (symbol(function), f"{(clean(function[1]) or '<unknown>').split('/')[-1]}:{line}")


def expected_chains(functions):
    """Of each sample the (symbol, file:line) of its frames, innermost first."""
    for number, function in enumerate(functions):
        callers = [place(caller, caller[3][-1])
                   for caller in reversed(functions[max(0, number - 4):number])]
        for line in function[3]:
            yield [place(function, line), *callers]


def make(folder, functions, *options):
    """The recording and its image."""
    text = "".join(
        " ".join([name.encode().hex() or "-", file.encode().hex() or "-", str(first),
                  *map(str, lines)]) + "\n" for name, file, first, lines in functions)
    subprocess.run([built(SANITIZED, "tests/python_image_make"), folder, *options], input=text, text=True,
                   check=True, timeout=60, env=sanitized_environment())
    return folder / "perf.data", folder / "image.so"


def put_into_cache(image, buildids):
    """Moves an image to where perf keeps files by build-id."""
    notes = subprocess.run(["readelf", "-n", image], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    folder = buildids / ".build-id" / build_id[:2] / build_id[2:]
    folder.mkdir(parents=True)
    shutil.move(image, folder / "elf")


@pytest.fixture
def perf(recordings):
    """Only to read: perf need not be permitted to record."""
    if not perf_module.find():
        pytest.skip("perf is not installed: apt install linux-perf (Ubuntu: linux-tools-generic)")
    return perf_module.Perf(recordings)


def chains_of(perf, data):
    script = perf.run("script", "-i", data, "-F", "ip,sym,srcline")
    for block in re.split(r"\n\n+", script.strip("\n")):
        yield re.findall(r"^\s+[0-9a-f]+ (.*)\n  (.*)$", block, re.MULTILINE)


def readable(perf, functions):
    """The functions with names that this perf can read.

    perf 6.12 gets its lines from addr2line and takes a letter that is not ASCII for the end of it:
    that function and some of those that follow have none. It is asked."""
    folder = perf.folder / "letters"
    folder.mkdir()
    letters = [("f", "/srv/ä.py", 1, [2])]
    data, _ = make(folder, letters)
    if list(chains_of(perf, data)) == list(expected_chains(letters)):
        return functions
    plain = [[text.encode("ascii", "replace").decode().replace("?", "x") for text in function[:2]]
             for function in functions]
    plain = [(*names, *function[2:]) for names, function in zip(plain, functions)]
    return [function for function in plain if symbol(function).isascii()]  # "…" in long ones


def rows(report):
    return [line.rstrip() for line in report.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("where", ["path", "cache"])
def test_perf_shows_names_and_lines(perf, where):
    functions = readable(perf, FUNCTIONS)
    data, image = make(perf.folder, functions)
    if where == "cache":
        put_into_cache(image, perf.folder / "buildids")
    assert list(chains_of(perf, data)) == list(expected_chains(functions))


@pytest.mark.parametrize("where", ["path", "cache", "recording"])
@pytest.mark.parametrize("columns", ["sym", "srcline", "sym,srcline"])
def test_reports_show_names_and_lines(perf, columns, where, monkeypatch):
    functions = readable(perf, FUNCTIONS)
    data, image = make(perf.folder, functions, *(["bare"] if where != "recording" else []))
    question = ["report", "--stdio", "-g", "none", "--no-children", "--sort", columns, "-i", data]
    theirs = rows(perf.run(*question))
    if where == "cache":
        monkeypatch.setenv("HOME", str(perf.folder))
        (perf.folder / "buildids").symlink_to(".debug")
        put_into_cache(image, perf.folder / ".debug")
        assert rows(perf.run(*question)) == theirs
    if where == "recording":
        image.unlink()
    ours = rows(pitviper(*question).out)
    assert ours == theirs
    places = [frames[0] for frames in expected_chains(functions)]
    text = "\n".join(ours)
    for name, line in places:
        assert "sym" not in columns or name in text
        assert "srcline" not in columns or re.search(rf"{re.escape(line)}$", text, re.MULTILINE)


def places_of(report):
    """The last two columns of the rows."""
    return {tuple(re.split(r"  +", row.split("[.] ", 1)[1].strip())) for row in rows(report)}


def test_perf_shows_the_lines_of_callers(perf):
    functions = readable(perf, FUNCTIONS)
    data, _ = make(perf.folder, functions)
    question = ["report", "--stdio", "-g", "none", "--children", "--sort", "sym,srcline", "-i", data]
    expected = {frame for chain in expected_chains(functions) for frame in chain}
    assert places_of(perf.run(*question)) == expected
    assert places_of(pitviper(*question).out) == expected


def test_the_summary_names_them_without_the_image(tmp_path):
    data, image = make(tmp_path, FUNCTIONS)
    image.unlink()
    summary = pitviper("report", "-i", data)
    assert summary.status == 0
    assert "Server.run" in summary.out and "handler" in summary.out


def test_an_image_of_another_build_id_is_not_taken(tmp_path):
    data, image = make(tmp_path, FUNCTIONS)
    other = tmp_path / "other"
    other.mkdir()
    _, wrong = make(other, [("wrong", "/srv/wrong.py", 1, list(range(1, 50)))])
    shutil.move(wrong, image)
    out = pitviper("report", "--stdio", "-g", "none", "--sort", "sym,srcline", "-i", data).out
    assert "wrong" not in out and "Server.run" in out


def test_any_names_make_a_valid_image(perf):
    data, image = make(perf.folder, ODD)
    problems = subprocess.run(["readelf", "-aW", "--debug-dump=decodedline", image],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=True).stderr
    assert problems == ""
    functions = readable(perf, ODD)
    if functions != ODD:
        assert list(chains_of(perf, make(perf.folder, functions)[0])) == list(expected_chains(functions))
        data, image = make(perf.folder, ODD)
    else:
        assert list(chains_of(perf, data)) == list(expected_chains(ODD))
    image.unlink()
    ours = pitviper("report", "--stdio", "-g", "none", "--sort", "sym,srcline", "-i", data)
    assert ours.status == 0
    assert "two\\nlines\\r\\0" in ours.out and "ünï → 漢字 🐍" in ours.out


def test_samply_shows_names_and_lines(recordings):
    if not samply_module.find():
        pytest.skip(samply_module.obstacle())
    data, _ = make(recordings, FUNCTIONS)
    chains = [[(name, f"{file.split('/')[-1]}:{line}") for name, file, line in chain]
              for chain in samply_module.Samply(recordings).import_lines(data)]
    assert chains == list(expected_chains(FUNCTIONS))
