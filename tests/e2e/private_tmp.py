"""Programs with a /tmp of their own, in a mount namespace: all files that they and their children
leave there are found, nothing has to be cleaned up, and the /tmp may be read-only, full or small.

    subprocess.run(in_private_tmp(folder, python, SCRIPT))
"""
import functools
import os
import subprocess
from pathlib import Path

import pytest

from ..builds import CHECKOUT
from .command import words

IN_TMP = "this checkout is in /tmp, and would not be there with another one"


@functools.lru_cache(maxsize=None)
def propagation():
    """Nothing that is mounted may reach the rest of the system. Where nothing is shared already, as
    in the sid root, there is nothing to change, and a chroot would not let us."""
    shared = " shared:" in Path("/proc/self/mountinfo").read_text()
    return "private" if shared else "unchanged"


def in_private_tmp(folder, *command):
    """The command with that folder as its /tmp; it becomes the command, with the same PID."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return words("unshare", *rights, "--mount", "--propagation", propagation(), "sh", "-c",
                 'mount --bind "$0" /tmp && exec "$@"', folder, *command)


def need_checkout_elsewhere():
    """For tests with another /tmp that run programs of this checkout."""
    if Path("/tmp") in CHECKOUT.parents:
        pytest.skip(IN_TMP)


@functools.lru_cache(maxsize=None)
def obstacle():
    if Path("/tmp") in CHECKOUT.parents:
        return IN_TMP
    try:
        status = subprocess.run(in_private_tmp("/tmp", "true"), stderr=subprocess.DEVNULL).returncode
    except FileNotFoundError:
        return "there is no unshare program for a private /tmp"
    return "this system does not allow a private /tmp (mount namespaces)" if status else None
