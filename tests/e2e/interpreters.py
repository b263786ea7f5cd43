"""The CPythons of this machine, 3.9 and later, each exactly once.

They are looked for in /usr/bin, on the PATH and among pyenv's versions. What is found is asked who
it really is: links, virtual environments and pyenv's shims all lead to an interpreter that may have
been seen already.

    @every_python(at_least=(3, 12))
    def test_something(python): ...

gives one test per interpreter, with its version as the id. An interpreter in a command line is its
path: perf.record(python, "-X", "perf", SCRIPT).

PyPy, free-threaded builds and debug builds are not supported. They are left out there, and have a
mark of their own, @every_refused(): each of them, and a skip for each kind that is not there.
"""
import functools
import glob
import json
import os
import re
import subprocess
from typing import NamedTuple, Tuple

import pytest

OLDEST = (3, 9)
PROGRAM_NAME = re.compile(r"(python3(\.\d+)?(t|d|td|-dbg|-nogil)?|pypy3)$")
REFUSED = ["PyPy", "free-threaded CPython", "debug build of CPython"]

# -I and -S: nothing that is installed into it changes the answer.
QUESTION = """
import json, os, sys, sysconfig
variable = sysconfig.get_config_var
print(json.dumps({
    "implementation": sys.implementation.name,
    "executable": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
    "version": sys.version_info[:3],
    "frame_pointers": "-fno-omit-frame-pointer" in (variable("PY_CORE_CFLAGS") or ""),
    "perf_support": bool(variable("PY_HAVE_PERF_TRAMPOLINE")),
    "free_threaded": bool(variable("Py_GIL_DISABLED")),
    "debug": bool(variable("Py_DEBUG")),
}))
"""


class Python(NamedTuple):
    version: Tuple[int, int, int]
    executable: str
    implementation: str   # cpython, pypy
    frame_pointers: bool  # the interpreter keeps them
    perf_support: bool    # it has -X perf
    free_threaded: bool
    debug: bool

    def __fspath__(self):
        return self.executable

    @property
    def label(self):
        before = "" if self.implementation == "cpython" else self.implementation
        flags = ("t" if self.free_threaded else "") + ("d" if self.debug else "")
        return before + ".".join(map(str, self.version)) + flags

    @property
    def refused_as(self):
        """Which of REFUSED it is, or None."""
        facts = [self.implementation != "cpython", self.free_threaded, self.debug]
        return REFUSED[facts.index(True)] if True in facts else None

    def describe(self):
        return (f"{self.label}: {self.executable}, "
                f"{'frame pointers' if self.frame_pointers else 'no frame pointers'}, "
                f"{'has' if self.perf_support else 'no'} -X perf")


def candidates():
    """Paths that may be interpreters. glob passes over folders that may not be read."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    folders = ["/usr/bin", *os.environ.get("PATH", "").split(os.pathsep),
               *sorted(glob.glob(os.path.join(glob.escape(pyenv), "versions", "*", "bin")))]
    for folder in filter(os.path.isabs, folders):
        if os.path.basename(folder) == "shims":
            continue
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "py*3*"))):
            if PROGRAM_NAME.match(os.path.basename(path)):
                yield path


def ask(path):
    """The Python behind a path, or None when it is too old or none at all."""
    try:
        answer = subprocess.run([path, "-I", "-S", "-c", QUESTION], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, timeout=60, check=True).stdout
        facts = json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    facts["version"] = tuple(facts["version"])
    return Python(**facts) if facts["version"] >= OLDEST else None


@functools.lru_cache(maxsize=None)
def all_found():
    """All of them, oldest first."""
    asked, pythons = set(), set()
    for candidate in candidates():
        path = os.path.realpath(candidate)
        if path not in asked:
            asked.add(path)
            pythons.add(ask(candidate))
    return sorted(pythons - {None})


def found():
    """Those that are supported, oldest first."""
    return [python for python in all_found() if not python.refused_as]


def every_python(at_least=OLDEST, frame_pointers=False):
    """Parametrizes a test with every interpreter that has what it takes."""
    wanted = f"CPython {'.'.join(map(str, at_least))} or later"
    wanted += " with frame pointers" if frame_pointers else ""
    chosen = [python for python in found()
              if python.version >= at_least and (python.frame_pointers or not frame_pointers)]
    parameters = [pytest.param(python, id=label) for python, label in zip(chosen, labels(chosen))]
    nobody = pytest.param(None, id="none", marks=pytest.mark.skip(
        reason=f"there is no {wanted} on this machine"))
    return pytest.mark.parametrize("python", parameters or [nobody])


def every_refused():
    """Parametrizes a test with every interpreter that is not supported."""
    chosen = [python for python in all_found() if python.refused_as]
    missing = [kind for kind in REFUSED if kind not in {python.refused_as for python in chosen}]
    return pytest.mark.parametrize("python", [
        *(pytest.param(python, id=label) for python, label in zip(chosen, labels(chosen))),
        *(pytest.param(None, id=f"no {kind}", marks=pytest.mark.skip(
            reason=f"there is no {kind} on this machine")) for kind in missing)])


def labels(pythons):
    """Their versions; two of the same version are told apart by a number."""
    seen = []
    for python in pythons:
        seen.append(python.label)
        yield python.label + (f"-{seen.count(python.label)}" if python.label in seen[:-1] else "")
