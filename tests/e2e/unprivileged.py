"""Commands as an ordinary user, and as one without any rights, who may not open perf events either.

    Recorder(folder, before=unprivileged(folder, python)).run(python, SCRIPT)

Root becomes nobody. An interpreter that lives where nobody may look, such as root's home, is shown
to it in a mount namespace: at its own path, in the place of everything else that is there.
"""
import os
import sys
from pathlib import Path

import pytest

from ..builds import CHECKOUT
from .command import words
from .private_tmp import obstacle, propagation
from .targets import DENY_SYSCALLS

NOBODY = 65534
BECOME = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]

# Its arguments: the folder that is shown, where, what is below it, and where in that folder.
SHOW = 'mount --bind "$2" "$3" && mount --rbind "$0" "$1" && shift 3 && exec "$@"'


def closed_folder(path):
    """The outermost folder above a path that others may not pass, or None."""
    return next((folder for folder in reversed(path.parents) if not folder.stat().st_mode & 1), None)


def need_open_checkout():
    closed = closed_folder(CHECKOUT / "tests")
    if closed:
        pytest.skip(f"others than root cannot reach this checkout: {closed} is closed to them")


def showing(folder, python):
    """A command that shows an interpreter to everybody."""
    prefix = Path(python.executable).parent.parent
    closed = closed_folder(Path(python.executable))
    if not closed:
        return []
    if obstacle():
        pytest.skip(obstacle())
    shown = folder / "shown"
    place = shown / prefix.relative_to(closed)
    place.mkdir(parents=True, exist_ok=True)
    return words("unshare", "--mount", "--propagation", propagation(), "sh", "-c", SHOW, shown,
                 closed, prefix, place)


def ordinary(folder, python, *capabilities):
    """A user with nothing but these capabilities ("perfmon"); only root can give any."""
    if os.geteuid() != 0:
        if capabilities:
            pytest.skip("only root can give " + ", ".join(capabilities))
        return []
    need_open_checkout()
    os.chown(folder, NOBODY, NOBODY)
    rights = ",".join(["-all", *("+" + name for name in capabilities)])
    return [*showing(folder, python), *BECOME, "--inh-caps=" + rights, "--ambient-caps=" + rights,
            "--bounding-set=" + rights]


def unprivileged(folder, python):
    return [*ordinary(folder, python), *words(sys.executable, DENY_SYSCALLS, "perf_events")]


def take_back(path):
    """Makes a file that the command wrote ours: perf reads no others."""
    assert os.geteuid() != 0 or path.stat().st_uid == NOBODY
    os.chown(path, os.geteuid(), os.getegid())
