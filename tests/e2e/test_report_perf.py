"""`pitviper report --stdio` against `perf report --stdio` on the same recordings: the same text. Where
perf's differs, each row and each call tree must still be the same but for causes that are named
(tables.py, docs/report-differences.md), and only those that a recording of that kind can have.
"""
import re
import shutil

import pytest

from .again import again
from . import interpreters
from . import oracle, perf as perf_program
from .cli import pitviper
from .interpreters import every_python
from .tables import (EQUAL_BRANCHES, KERNEL_LETTER, LEFT_OUT, NO_ADDRESS, PARAMETERS, PLT,
                     UNNAMED_CALLER, Mappings, body, compare)
from .targets import FOO_BAR_BAZ, MY_SCRIPT, THREADS_AND_FORKS, inlined

NONE, CHILDREN = ("-g", "none", "--no-children"), ("-g", "none", "--children")
WAYS = [NONE, CHILDREN, ("-g",), ("--no-children",)]

# A copy of 8 KiB, perf's default, ends inside the stacks of the interpreter's start, where perf 6.1
# shows a frame that does not exist; test_profile.py looks at those one by one. This is all of them.
WHOLE_STACKS = "dwarf,65528"

ATTEMPTS = 5


def followed(perf, *command):
    """A recording of whole stacks that libdw can follow to their ends. There are places where it can't
    (tests/targets/unwind_oracle.c); perf, which uses it or libunwind, stops there, too."""
    for _ in range(ATTEMPTS):
        recording = perf.record(*command, call_graph=WHOLE_STACKS, frequency=499)
        if not oracle.exists():
            break
        result = oracle.run(recording.data)
        if result.counts["equal"] == result.samples:
            break
    return recording


RECORDINGS = {
    "fp": lambda perf, python: perf.record(python, MY_SCRIPT),
    "names": lambda perf, python: perf.record(python, "-X", "perf", MY_SCRIPT),
    "dwarf": lambda perf, python: followed(perf, python, MY_SCRIPT),
    "dwarf-short": lambda perf, python: perf.record(python, MY_SCRIPT, call_graph="dwarf",
                                                    frequency=499),
    "threads": lambda perf, python: perf.record(python, THREADS_AND_FORKS, "threads", 100000),
    "dwarf-threads": lambda perf, python: followed(perf, python, THREADS_AND_FORKS, "threads",
                                                   100000),
    "forks": lambda perf, python: perf.record(python, THREADS_AND_FORKS, "forks", 100000),
    "execs": lambda perf, python: perf.record(
        python, "-c", "import os\nfor i in range(20): os.spawnl(os.P_WAIT, '/bin/true', 'true')"),
    "compressed": lambda perf, python: perf.record(python, MY_SCRIPT, options=["-z"]),
    "folder": lambda perf, python: perf.record(python, THREADS_AND_FORKS, "forks", 100000,
                                               options=["--threads", "-z"]),
    "pipe": lambda perf, python: perf.record_to_pipe(python, MY_SCRIPT),
    "no-chains": lambda perf, python: perf.record(python, MY_SCRIPT, call_graph=None),
    "two-events": lambda perf, python: perf.record(
        python, MY_SCRIPT, options=["-e", "cpu-clock,task-clock"]),
}

# What perf cannot do with some kinds, and what is not to be compared.
WAYS_OF = {
    "no-chains": [NONE],                      # perf refuses to look for chains where there are none
    "pipe": [NONE, ("-g", "--no-children")],  # it learns of chains too late to have rows for callers
    "dwarf-short": [NONE],                    # see WHOLE_STACKS
}


def causes_of(way):
    """What may differ, by the version of perf and by what is shown."""
    causes = {PLT, EQUAL_BRANCHES} | ({LEFT_OUT} if "fractal" in way else set())
    if "--no-children" not in way:
        causes |= {UNNAMED_CALLER, NO_ADDRESS}
        causes |= {KERNEL_LETTER} if perf_program.version() >= (7,) else set()
    return causes | ({PARAMETERS} if perf_program.version() < (7,) else set())


def check(recording, way, options=("--no-inline",)):
    theirs = recording.report("-n", *options, *way)
    ours = pitviper("report", "--stdio", "-n", *options, *way, "-i", recording.data)
    assert ours.status == 0 and ours.err == ""
    assert "%" in theirs, "perf printed no rows"
    wrong, causes = compare(ours.out, theirs, Mappings(recording))
    assert not wrong, f"{' '.join(way)}:\n" + "\n".join(wrong[:5])
    assert causes <= causes_of(way), causes


def pythons():
    """The newest of three versions, or what there is of them."""
    found = interpreters.found()
    newest = {python.version[:2]: python for python in found}
    chosen = [newest[version] for version in ((3, 11), (3, 13), (3, 15)) if version in newest]
    return chosen or found[-1:]


@pytest.mark.parametrize("kind", RECORDINGS)
@pytest.mark.parametrize("python", pythons(), ids=lambda python: python.label)
@again
def test_the_table_is_that_of_perf(python, kind, perf):
    recording = RECORDINGS[kind](perf, python)
    for way in WAYS_OF.get(kind, WAYS):
        check(recording, way)


OTHER_WAYS = [
    ("-g", "flat"), ("-g", "folded,0"), ("-g", "fractal"), ("-g", "callee"), ("-g", "graph,2,count"),
    ("-g", "folded,0,callee", "--no-children"), ("--no-children", "--max-stack", "3"),
    ("-g", "caller", "--no-children", "--max-stack", "3"), ("--sort", "dso", "-g", "none"),
    ("--sort", "sym", "--no-children"), ("--sort", "pid,comm", "-g", "none"),
    ("--percent-limit", "2"), ("-g", "graph,1", "--percent-limit", "3"), ("--sort", "comm"),
]


@pytest.mark.parametrize("kind", ["forks", "dwarf-threads"])
@again
def test_other_ways_to_show_a_recording_are_those_of_perf(kind, perf):
    if not pythons():
        pytest.skip("there is no CPython on this machine")
    recording = RECORDINGS[kind](perf, pythons()[0])
    for way in OTHER_WAYS:
        check(recording, way)


@every_python(at_least=(3, 13))
@again
def test_an_injected_recording_reads_the_same(python, perf):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1, call_graph="dwarf",
                            clock="mono", frequency=499).inject()
    check(recording, NONE)


INLINE_WAYS = [
    ("--inline",), ("--inline", "-g", "none"), ("--inline", "--no-children", "-g", "callee"),
    ("--inline", "-g", "srcline", "--no-children"), ("--no-inline", "-g", "srcline"),
    ("--no-inline", "-g", "address", "--no-children"),
    ("--no-inline", "--sort", "srcline", "--no-children", "-g", "none"),
    ("--inline", "--sort", "sym,srcline", "--no-children", "-g", "none"),
    ("--no-inline", "--sort", "srcfile", "--no-children", "-g", "none"),
]


def lines_of_the_program(text):
    """What names the program's own functions. Of others, what is known depends on their debug
    information; perf takes a function whose debug information has another name than its symbol for
    an inlined one (__libc_start_main_impl)."""
    return [re.sub(r"[\s|-]+", " ", line).rstrip() for line in body(text).splitlines()
            if not line.startswith("#") and re.search(r"\b(inner|middle|outer|main)|inlined.c", line)]


@pytest.mark.parametrize("way", INLINE_WAYS, ids=" ".join)
@again
def test_inlined_functions_and_lines_are_those_of_perf(way, perf):
    if not shutil.which("addr2line"):
        pytest.skip("perf 6.1 has no lines without addr2line: apt install binutils")
    recording = perf.record(inlined(), call_graph=WHOLE_STACKS, frequency=199)
    theirs = recording.report("-n", *way)
    ours = pitviper("report", "--stdio", "-n", *way, "-i", recording.data)
    assert ours.status == 0 and "inlined" in ours.out
    assert lines_of_the_program(ours.out) == lines_of_the_program(theirs)
