"""pitviper inject where files are hard to reach: processes that ran before perf did, other
namespaces, users without rights, full disks, /tmp itself."""
import contextlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from . import name_files
from .cli import pitviper, program
from .perf import Recording
from .private_tmp import need_checkout_elsewhere
from .profiles import calls
from .targets import jit_spin
from ..builds import sanitized_environment
from .test_inject import inject, spun  # noqa: F401 (a fixture)

NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")

UNSHARE = ["unshare", "--mount", "--propagation", "private"]
needs_mounts = pytest.mark.skipif(
    subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL).returncode != 0,
    reason="no mount namespace can be made here: not root, or in a chroot")

# A command that ends when the process has had a second of CPU time.
A_SECOND_OF = """
ticks() { set -- $(sed 's/.*) //' "/proc/$pid/stat"); echo $((${12} + ${13})); }
pid=$1; end=$(($(ticks) + $(getconf CLK_TCK)))
while [ "$(ticks)" -lt $end ]; do sleep 0.05; done
"""


def share(recording):
    return recording.profile().of("jit_spin").share_of(calls("spin", "made_at_run_time"))


@contextlib.contextmanager
def spinning(kind, *before):
    """jit_spin as it runs, with its dump written; `before`: a command that becomes it."""
    command = subprocess.Popen([*before, jit_spin(), kind, "60"])
    try:
        dump = Path(f"/proc/{command.pid}/root", *name_files.jitdump_of(command.pid).parts[1:])
        deadline = time.monotonic() + 20
        while not (dump.exists() and dump.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield command.pid
    finally:
        command.kill()
        command.wait()
        name_files.remove(command.pid)


def record_running(perf, pid, *options):
    data = perf.folder / "perf.running.data"
    perf.run("record", "-F", 999, "--call-graph", "dwarf", *options, "-p", pid, "-o", data, "--",
             "sh", "-euc", A_SECOND_OF, "sh", pid)
    return Recording(perf, data)


@pytest.mark.parametrize("options", [[], ["-k", "mono"]])
def test_a_process_that_ran_before_perf_did(perf, options):
    with spinning("jitdump") as pid:
        recording = record_running(perf, pid, *options)
        injected, _ = inject(recording)
    assert share(injected) >= 0.95


@needs_mounts
@pytest.mark.parametrize("misleading", [False, True])
def test_a_dump_in_another_mount_namespace(perf, misleading):
    """The program has a /tmp of its own; here, another file may have the path of its dump."""
    need_checkout_elsewhere()
    with spinning("jitdump", *UNSHARE, "sh", "-c", 'mount -t tmpfs none /tmp && exec "$@"',
                  "sh") as pid:
        here = name_files.jitdump_of(pid)
        assert not here.exists()
        recording = record_running(perf, pid, "-k", "mono")
        if misleading:
            here.write_bytes(b"something else")
        injected, _ = inject(recording)
    assert share(injected) >= 0.95


def as_nobody(*arguments):
    result = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                             "--clear-groups", program(), *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=60,
                            env=sanitized_environment())
    assert result.returncode == 1 and len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


@pytest.fixture
def spun_for_all(spun):  # noqa: F811
    spun.data.chmod(0o644)
    spun.data.parent.chmod(0o755)
    return spun


@needs_root
def test_a_folder_that_is_not_ours(spun_for_all):
    folder = spun_for_all.data.parent / "closed"
    folder.mkdir(mode=0o755)
    output = folder / "perf.jit.data"
    complaint = as_nobody("inject", "--jit", "-i", spun_for_all.data, "-o", output)
    assert str(output) in complaint and "Permission denied" in complaint
    assert list(folder.iterdir()) == []


@needs_root
def test_a_dump_that_is_not_ours(spun_for_all):
    folder = spun_for_all.data.parent / "open"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    output = folder / "perf.jit.data"
    complaint = as_nobody("inject", "--jit", "-i", spun_for_all.data, "-o", output)
    assert "/tmp/jit-" in complaint and "Permission denied" in complaint
    assert list(folder.iterdir()) == [output]


@needs_mounts
@pytest.mark.parametrize("size", ["4k", "64k"])
def test_a_full_disk_leaves_nothing_behind(spun, size):  # noqa: F811
    """There is room for no image, or for one but not for the recording."""
    folder = spun.data.parent / "full"
    folder.mkdir()
    script = f'mount -t tmpfs -o size={size} none "$0" && "$@"; echo "status $?"; ls -A "$0"'
    result = subprocess.run([*UNSHARE, "sh", "-c", script, folder, program(), "inject", "--jit",
                             "-i", spun.data, "-o", folder / "perf.jit.data"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=60,
                            env=sanitized_environment())
    assert result.stdout == "status 1\n"
    complaint, = result.stderr.splitlines()
    assert str(folder / "perf.jit.data") in complaint and "No space left" in complaint


@pytest.mark.parametrize("option", [[], ["--per-function"]])
def test_images_in_tmp_itself(spun, option):  # noqa: F811
    """perf 7.2 takes /tmp/jitted-* for its own images, which are laid out in another way."""
    output = Path(f"/tmp/pitviper-test-{os.getpid()}.data")
    try:
        result = pitviper("inject", "--jit", "-i", spun.data, "-o", output, *option)
        assert result.status == 0, result.err
        assert share(Recording(spun.perf, output)) >= 0.95
    finally:
        output.unlink()
        for pid in spun.pids():
            for image in Path("/tmp").glob(f"jitted-{pid}-*.so"):
                image.unlink()
