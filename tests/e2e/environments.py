"""Interpreters with the wheel installed, as users have it: a virtual environment for each.

    python = with_wheel(python)
    run(python, "-X", "pitviper=perf", SCRIPT)

The wheel is made once, of the build under test, and each environment once; they go when the tests
end. pip installs it, without any index: the interpreter's own, or the one that `venv` brings. Where
there is neither (Debian's python3 without python3-venv), the wheel is unpacked as pip would do it.
"""
import functools
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from ..builds import BUILD, CHECKOUT
from .command import words
from .interpreters import Python
from .programs import environment

TIME_LIMIT_S = 300


class Environment(NamedTuple):
    folder: Path
    base: Python  # the interpreter it was made of

    def __fspath__(self):
        return str(self.folder / "bin" / "python")

    @property
    def version(self):
        return self.base.version

    @property
    def program(self):
        """The pitviper program that came with the wheel."""
        return self.folder / "bin" / "pitviper"


@functools.lru_cache(maxsize=None)
def workshop():
    """A folder that lives as long as the tests."""
    folder = tempfile.TemporaryDirectory(prefix="pitviper-environments-")
    return folder, Path(folder.name)  # the first one removes the second when it goes


def succeed(*command):
    result = subprocess.run(words(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, timeout=TIME_LIMIT_S, env=environment())
    assert result.returncode == 0, f"{words(*command)}:\n{result.stdout}"


def can(python, *arguments):
    return subprocess.run(words(python, *arguments), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=TIME_LIMIT_S).returncode == 0


@functools.lru_cache(maxsize=None)
def wheel():
    """The path of the wheel."""
    folder = workshop()[1] / "wheel"
    succeed(sys.executable, CHECKOUT / "python" / "pitviper_build.py", "--build-dir", BUILD, folder)
    [path] = folder.glob("*.whl")
    return path


def new_environment(python, name, *options):
    folder = workshop()[1] / name
    succeed(python, "-m", "venv", *options, folder)
    return Environment(folder, python)


def site_packages(environment):
    [folder] = environment.folder.glob("lib/py*3*/site-packages")
    return folder


def unpack(environment):
    packages = site_packages(environment)
    with zipfile.ZipFile(wheel()) as archive:
        archive.extractall(packages)
    [program] = packages.glob("pitviper-*.data/scripts/pitviper")
    program.rename(environment.program)
    os.chmod(environment.program, 0o755)


def name_of(python, kind):
    return f"{kind}-{python.label}-{python.executable.replace('/', '_')}"


@functools.lru_cache(maxsize=None)
def without_wheel(python):
    """One to compare with. Its .pth does nothing; but to read one, some versions of Python import
    modules."""
    environment = new_environment(python, name_of(python, "empty"), "--without-pip")
    (site_packages(environment) / "nothing.pth").write_text("import sys\n")
    return environment


@functools.lru_cache(maxsize=None)
def with_wheel(python):
    name = name_of(python, "wheel")
    install = ["install", "--quiet", "--no-index", wheel()]
    if can(python, "-m", "pip", "--python", python, "--version"):
        environment = new_environment(python, name, "--without-pip")
        succeed(python, "-m", "pip", "--python", environment, *install)
    elif can(python, "-c", "import ensurepip"):
        environment = new_environment(python, name)
        succeed(environment, "-m", "pip", *install)
    else:
        environment = new_environment(python, name, "--without-pip")
        unpack(environment)
    return environment
