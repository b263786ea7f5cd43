"""Programs run to their end: what they printed, how they ended, the files of names they left.

    ended = run(with_support(python, "-c", "print(1)"))
    assert (ended.status, ended.out, ended.err) == (0, "1\\n", "")
    assert "<module>" in ended.functions

Programs start without the variables that switch any support on, whoever runs the tests; a test sets
those it is about: run(python, "-c", CODE, PYTHONPERFSUPPORT="1"). The files are read by the number
of the process, and gone from /tmp when run() returns, even when the program hangs.
"""
import os
import signal
import subprocess
from typing import NamedTuple, Optional

from ..builds import BUILD, built
from . import name_files
from .command import words
from .profiles import PYTHON_NAME

TIME_LIMIT_S = 60


class Files(NamedTuple):
    """What a process wrote, None for what it did not."""
    perf_map: Optional[bytes]
    jitdump: Optional[bytes]

    @property
    def names(self):
        """The names in either file, as profilers show them."""
        entries = name_files.read_perf_map(self.perf_map) if self.perf_map else []
        entries += name_files.read_jitdump(self.jitdump).functions if self.jitdump else []
        return [entry.name for entry in entries]

    @property
    def functions(self):
        """The Python functions in either file, by their names in Python."""
        return {PYTHON_NAME.match(name)["function"] for name in self.names}

    @property
    def kinds(self):
        """Which files there are: "perf", "perf_jit", as the backends are called."""
        return ({"perf"} if self.perf_map is not None else set()) | \
            ({"perf_jit"} if self.jitdump is not None else set())


class Ended(NamedTuple):
    pid: int
    status: int  # negative: the signal that ended it
    out: str
    err: str
    files: Files

    @property
    def functions(self):
        return self.files.functions

    @property
    def kinds(self):
        return self.files.kinds


def environment(**variables):
    """The environment of a program: no support is on but what the variables say."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PITVIPER", "LD_PRELOAD"))}
    return {**kept, **variables}


def take_files(pid):
    """Reads and removes the files of a process."""
    def content(path):
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    try:
        return Files(content(name_files.perf_map_of(pid)), content(name_files.jitdump_of(pid)))
    finally:
        name_files.remove(pid)


def forget_namesake():
    """In the new process: numbers come again, and what an earlier process left is not its own."""
    name_files.remove(os.getpid())


def run(*command, stdin="", cwd=None, **variables):
    """Runs a command with these variables in its environment."""
    process = subprocess.Popen(words(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=cwd, env=environment(**variables),
                               start_new_session=True, preexec_fn=forget_namesake)
    try:
        out, err = process.communicate(stdin.encode(), timeout=TIME_LIMIT_S)
        return Ended(process.pid, process.returncode, out.decode(errors="surrogateescape"),
                     err.decode(errors="surrogateescape"), take_files(process.pid))
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        name_files.remove(process.pid)


def with_support(*command, jit=False):
    """The command under `pitviper run`. The ordinary build: a sanitized one cannot be preloaded."""
    return words(built(BUILD, "pitviper"), "run", *(["--jit"] if jit else []), "--", *command)
