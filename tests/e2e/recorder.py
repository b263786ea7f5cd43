"""`pitviper record` as tests use it: started in a folder of the test, read back as a profile.

    status, out, err = Recorder(folder).run("-F", 999, python, SCRIPT)
    Recorder(folder).profile().share_of(chain("baz", "bar", "foo"))
"""
import os
import signal
import subprocess

import pytest

from ..builds import BUILD, SANITIZER_STATUS, built, sanitized_environment
from . import perf as perf_module
from .cli import program
from .command import words
from .perf import Perf, Recording

TIME_LIMIT_S = 60


class Recorder:
    """`pitviper record` in a folder that is its home, too: what it leaves behind is there.

    before: a command that becomes the recorder. is_fast: the ordinary build, for tests of speed and
    memory; otherwise the sanitized one when there is one."""

    def __init__(self, folder, before=(), is_fast=False):
        self.folder = folder
        self.before = before
        self.program = built(BUILD, "pitviper") if is_fast else program()
        self.data = folder / "perf.data"

    def start(self, *arguments, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options):
        environment = {**sanitized_environment(), "HOME": str(self.folder),
                       "PITVIPER_LIBRARY": str(built(BUILD, "pitviper.so"))}
        command = words(*self.before, self.program, "record", *arguments)
        return subprocess.Popen(command, cwd=self.folder, stdin=stdin, stdout=subprocess.PIPE,
                                stderr=stderr, env=environment, start_new_session=True, text=True,
                                **options)

    def end(self, process, time_limit_s=TIME_LIMIT_S):
        """(status, out, err) of a recorder that was started."""
        try:
            out, err = process.communicate(timeout=time_limit_s)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        assert process.returncode != SANITIZER_STATUS and "Sanitizer" not in err, err
        return process.returncode, out, err

    def run(self, *arguments):
        return self.end(self.start(*arguments))

    def profile(self):
        if not perf_module.find():
            pytest.skip(perf_module.obstacle())
        return Recording(Perf(self.folder), self.data).profile()

    def report(self, *options):
        return Recording(Perf(self.folder), self.data).report(*options)
