"""Which name an address gets, against `perf script -F sym,symoff,dso`: for every address of a recording
the same name and the same place in it.

tests/targets/symbols spends its time where names are a matter of choice; others record with its symbols
somewhere else: in a debug file beside it, or in perf's cache only.
"""
import os
import re
import shutil
import subprocess

import pytest

from .again import again
from . import name_files
from . import perf as perf_program
from .interpreters import found
from .private_tmp import need_checkout_elsewhere
from .targets import MIXED_WORK, jit_spin, profile_dump, symbols
from ..builds import sanitized_environment

FRAME = re.compile(r"\s+([0-9a-f]+) (.*?)(\+0x[0-9a-f]+)? \(([^()]*(?:\([^()]*\))?)\)$")


def read(text):
    """Of each sample the (name, place in it, module) of its frames, innermost first."""
    return [[FRAME.match(line).groups()[1:] for line in block.strip("\n").split("\n")[1:]]
            for block in text.split("\n\n") if block.strip()]


def both(recording):
    folder = recording.perf.folder / "buildids"
    theirs = recording.perf.run("script", "-i", recording.data, "--no-inline", "-F",
                                "comm,pid,tid,time,ip,sym,symoff,dso")
    result = subprocess.run([profile_dump(), recording.data, "--buildid-dir", folder, "--offsets"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                            env=sanitized_environment())
    assert result.returncode == 0, result.stderr.decode(errors="replace")
    return read(result.stdout.decode(errors="backslashreplace")), read(theirs)


def explained(ours, theirs):
    """Differences in which ours says more, or is right."""
    if ours[2] != theirs[2]:
        return False
    if theirs[0] == "[unknown]":
        # perf 6.1 knows only some kinds of procedure linkage tables; and perf looks for an address
        # in the symbol that starts last before it, not in one around that.
        return ours[0].endswith("@plt") or ours[0] == "around"
    if theirs[0] == ".plt":
        # perf 7 has a name for the first entry, which belongs to no function.
        return ours[0] == "[unknown]"
    if theirs[0].endswith("@plt") and ours[0].endswith("@plt"):
        # perf 6.1 counts the entries: those behind one for a function that is chosen at run time
        # get the name of the next, since that one's relocation is the last. perf 7 has a name for it.
        return ours[1] == theirs[1] and \
            (perf_program.version() < (7,) or ours[0].startswith("*ABS*"))
    # perf 6.1 prints C++ functions without their parameters.
    return ours[1] == theirs[1] and re.sub(r"\(.*", "", ours[0]) == theirs[0]


def names(recording):
    """The names of all frames, which are those of perf."""
    ours, theirs = both(recording)
    assert [len(stack) for stack in ours] == [len(stack) for stack in theirs]
    pairs = {pair for stacks in zip(ours, theirs) for pair in zip(*stacks)}
    wrong = [pair for pair in pairs if pair[0] != pair[1] and not explained(*pair)]
    assert not wrong, wrong[:5]
    return {frame[0] for stack in ours for frame in stack}


@again
def test_of_several_names_the_one_that_perf_takes(perf):
    shown = names(perf.record(symbols(), frequency=4999))
    assert {"aliases_globally_longer", "sizeless", "label", "around", "within",
            "space::function(int, unsigned long)", "__vdso_clock_gettime"} <= shown
    assert any(name.endswith("@plt") for name in shown)
    assert any("getppid" in name and name.startswith(("__x64_sys", "__do_sys")) for name in shown) \
        or not kernel_has_names(), "no frames of the kernel"


def kernel_has_names():
    with open("/proc/kallsyms") as lines:
        return any(int(line.split()[0], 16) for line in [next(lines), next(lines)])


@again
def test_an_interpreter_and_its_modules(perf):
    pythons = found()
    if not pythons:
        pytest.skip("there is no CPython on this machine")
    assert len(names(perf.record(pythons[-1], MIXED_WORK, 0.6))) > 50


@pytest.fixture
def stripped(tmp_path):
    """The target without its symbols; these are in symbols.debug, which it names."""
    if not shutil.which("objcopy"):
        pytest.skip("there is no objcopy: apt install binutils")
    program, debug = tmp_path / "symbols", tmp_path / "symbols.debug"
    subprocess.run(["objcopy", "--only-keep-debug", symbols(), debug], check=True)
    subprocess.run(["objcopy", "--strip-all", symbols(), program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True, cwd=tmp_path)
    return program


def test_names_from_a_debug_file_beside_the_program(perf, stripped):
    assert {"aliases_globally_longer", "sizeless", "within"} <= names(perf.record(stripped))


def test_a_debug_file_of_another_build_is_not_believed(perf, stripped):
    subprocess.run(["objcopy", "--only-keep-debug", "--remove-section=.note.gnu.build-id",
                    symbols(), stripped.with_name("symbols.debug")], check=True)
    ours, _ = both(perf.record(stripped))
    assert "sizeless" not in {frame[0] for stack in ours for frame in stack}


def test_names_from_the_cache_of_perf(perf, tmp_path):
    """perf copies what it recorded into its cache; then the program is gone, or another one."""
    program = tmp_path / "gone"
    shutil.copy(symbols(), program)
    recording = perf.record(program)
    program.unlink()
    assert {"aliases_globally_longer", "sizeless", "within"} <= names(recording)
    shutil.copy(shutil.which("true"), program)
    assert {"aliases_globally_longer", "sizeless", "within"} <= names(recording)


def test_a_perf_map_of_another_pid_namespace(perf, tmp_path):
    """The process writes perf-PID.map by the number that it has in its own namespace, with a /tmp of
    its own; both are there as long as it runs."""
    need_checkout_elsewhere()
    if subprocess.run(["unshare", "--pid", "--fork", "--mount", "true"],
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this system does not allow namespaces (unshare --pid --mount failed)")
    inside = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount", "--kill-child", "sh", "-c",
         'mount -t tmpfs none /tmp && exec "$0" map 15', jit_spin()], start_new_session=True)
    try:
        pid = wait_for_child(inside.pid)
        recording = perf.record("sleep", "0.5", options=["-p", pid])
        ours, theirs = both(recording)
        mine = [frame[0] for stack in ours for frame in stack]
        assert mine == [frame[0] for stack in theirs for frame in stack]
        assert mine.count("made_at_run_time") > len(ours) / 2, set(mine)
    finally:
        os.killpg(inside.pid, 9)
        inside.wait()
        name_files.remove(pid)


def wait_for_child(pid):
    """The first child of a process, as soon as it is jit_spin."""
    for _ in range(200):
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        if children and open(f"/proc/{children[0]}/comm").read().startswith("jit_spin"):
            return int(children[0])
        subprocess.run(["sleep", "0.05"])
    raise AssertionError("jit_spin does not start")
