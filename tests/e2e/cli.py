"""The pitviper program: run it, look at what came of it.

    result = pitviper("inspect", path, "--json")
    assert result.status == 0 and result.json["entries"] == 3

The sanitized build is taken when there is one. A crash or a sanitizer's report fails the test here,
whatever the test was about.
"""
import json
import subprocess
from typing import NamedTuple

from ..builds import BUILD, SANITIZED, SANITIZER_STATUS, built, sanitized_environment

TIME_LIMIT_S = 60


class Result(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def complaint(self):
        """The one line on stderr, which says what is wrong."""
        lines = self.err.splitlines()
        assert len(lines) == 1 and self.err.endswith("\n"), f"not one line: {self.err!r}"
        return lines[0]


def program():
    sanitized = SANITIZED / "pitviper"
    return sanitized if sanitized.is_file() else built(BUILD, "pitviper")


def pitviper(*arguments, stdout=subprocess.PIPE, **variables):
    result = subprocess.run([program(), *arguments], stdin=subprocess.DEVNULL, stdout=stdout,
                            stderr=subprocess.PIPE, timeout=TIME_LIMIT_S,
                            env={**sanitized_environment(), **variables})
    err = result.stderr.decode()
    assert result.returncode in range(SANITIZER_STATUS), f"status {result.returncode}\n{err}"
    assert "runtime error:" not in err and "Sanitizer" not in err, err
    return Result(result.returncode, (result.stdout or b"").decode(), err)
