"""Where the programs under test are.

Two builds are used: an ordinary one, and one with the sanitizers on. Environment variables name
their folders, relative to the checkout or absolute:

    PITVIPER_BUILD      (build)       targets, and the program when there is no sanitized one
    PITVIPER_SANITIZED  (build-asan)  unit tests, corpus replay, and the program under test
"""
import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
BUILD = CHECKOUT / os.environ.get("PITVIPER_BUILD", "build")
SANITIZED = CHECKOUT / os.environ.get("PITVIPER_SANITIZED", "build-asan")

# Every defect that a sanitizer sees ends the program with a status that no program of ours uses.
SANITIZER_STATUS = 99
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": f"detect_leaks=1:exitcode={SANITIZER_STATUS}",
    "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:exitcode={SANITIZER_STATUS}",
}


class NotBuilt(Exception):
    """A program that the tests need is not there; the text says how to get it."""


def built(folder, name):
    """The path of a program in a build folder."""
    path = folder / name
    if not path.is_file():
        raise NotBuilt(f"{path} is not there: './dev test' builds it")
    return path


def sanitized_environment():
    return {**os.environ, **SANITIZER_ENVIRONMENT}
