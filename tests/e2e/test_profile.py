"""The model of a profile against `perf script`: the same recording, the same stacks.

tests/targets/profile_dump prints every sample with its resolved stack in perf script's format, so
that one parser reads both. A frame is the same when symbol and module are. All samples must be there,
with the same thread, name and time, and all frames must be the same, but for the differences that are
named below.
"""
import collections
import re
import shutil
import subprocess

import pytest

from ..builds import sanitized_environment
from .again import again
from . import oracle
from .interpreters import every_python, found
from .perf import read_script
from .profiles import FEWEST_SAMPLES, Profile, chain
from .targets import FOO_BAR_BAZ, MIXED_WORK, inlined, jit_spin, profile_dump

UNKNOWN = "[unknown]"

# So that no stack ends where its copy does: libdw does not know generated code, and so could not
# tell who is right.
WHOLE_STACKS = "dwarf,65528"


def dump(recording, *options):
    result = subprocess.run([profile_dump(), recording.data, "--buildid-dir",
                             recording.perf.folder / "buildids", *options],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=sanitized_environment(), timeout=300)
    assert result.returncode == 0, result.stderr.decode(errors="replace")
    return result.stdout.decode(errors="backslashreplace")


def ours(recording, *options):
    return Profile(read_script(dump(recording, *options)))


def by_sample(profile):
    samples = collections.defaultdict(list)
    for sample in profile.samples:
        samples[sample.command, sample.pid, sample.tid, sample.time].append(sample.stack)
    return samples


def explained(peer, mine):
    """Differences in which ours says more, or no less."""
    if peer.name == mine.name and "/jitted-" in peer.module and "/jit-" in mine.module:
        return True  # perf inject: a file per function; ours: the dump itself
    if peer.name == UNKNOWN and mine.name.endswith("@plt"):
        return True  # perf 6.1 knows only some kinds of procedure linkage tables
    if mine.name == UNKNOWN and peer.name in ("_init", ".plt"):
        return True  # the start of such a table, which nothing names; see PLT in tables.py
    if mine.name.startswith("*ABS*") and peer.name.endswith("@plt"):
        return True  # a function that is chosen at run time, see there, too
    if peer.name == UNKNOWN and mine.module == "[vdso]":
        return True  # perf reads it from its own process, and not everywhere
    if peer.name + "_end" == mine.name:
        return True  # a label in the last byte of a function (glibc 2.41): perf finds one or the other
    return False


def same(peers, frames):
    return len(peers) == len(frames) and all(peer == mine or explained(peer, mine)
                                             for peer, mine in zip(peers, frames))


def comes_less_far(peer, mine):
    """perf's frames are the innermost of ours, with one behind them at most that has no name.

    perf 6.1 unwinds with libunwind: where the copy of the stack ends, it reads a return address of
    0 and shows a frame 1 below it. Ours ends there, or has one caller more, whose return address was
    still in the copy. And seen once each: perf followed a wrong word into the heap (12 frames of 15,
    3.11) and stopped for a reason that is not known (2 frames of 58, 3.10). Unless ours is just
    without the nameless frame, libdw tells who is right (see judged)."""
    good = peer[1:] if peer and peer[0].name == UNKNOWN else peer
    return len(good) <= len(mine) and same(good, mine[len(mine) - len(good):])


def compare(peer_profile, profile):
    """(frames that differ by how often they do, stacks in which ours goes on behind perf's)."""
    peers, mine = by_sample(peer_profile), by_sample(profile)
    assert {key: len(stacks) for key, stacks in peers.items()} == \
        {key: len(stacks) for key, stacks in mine.items()}, "other samples than perf's"
    differences, longer = collections.Counter(), 0
    for key, stacks in peers.items():
        for peer_stack, stack in zip(stacks, mine[key]):
            if same(peer_stack, stack):
                continue
            if comes_less_far(peer_stack, stack):
                longer += len(stack) >= len(peer_stack)
                continue
            differences["lengths", len(peer_stack), len(stack)] += 1
            for peer, frame in zip(reversed(peer_stack), reversed(stack)):
                if not same([peer], [frame]):
                    differences[peer, frame] += 1
    return differences, longer


def judged(recording):
    """Whether libdw finds what ours does, in every stack of a recording."""
    oracle.need()
    result = oracle.run(recording.data)
    return result.counts["equal"] == result.samples - result.apart, result.differences


def assert_same(recording, profile, peer_recording=None):
    assert len(profile.samples) >= FEWEST_SAMPLES
    differences, longer = compare((peer_recording or recording).profile(), profile)
    assert not differences, differences.most_common(5)
    if longer:
        right, text = judged(recording)
        assert right, f"perf came less far in {longer} stacks, and libdw is not on our side\n{text}"


# Interpreters from distributions and pyenv alike; one of each minor version is enough.
def newest(at_least=(3, 9)):
    pythons = [python for python in found() if python.version >= at_least]
    return pythons[-1] if pythons else pytest.skip(f"there is no CPython {at_least} or later")


@every_python()
@again
def test_chains_of_the_kernel_resolve_as_in_perf(perf, python):
    recording = perf.record(python, MIXED_WORK, 0.6)
    assert_same(recording, ours(recording))


@every_python(at_least=(3, 12))
@again
def test_names_from_a_perf_map(perf, python):
    recording = perf.record(python, "-X", "perf", MIXED_WORK, 0.6)
    assert_same(recording, ours(recording))


def test_a_function_that_only_a_perf_map_names(perf):
    """Without frame pointers an interpreter's chains may show no Python function at all, so the
    names above may be none. Here nearly every sample needs the map."""
    recording = perf.record(jit_spin(), "map", 0.5)
    profile = ours(recording)
    assert_same(recording, profile)
    assert profile.of("jit_spin").share_of(lambda sample: any(
        "/perf-" in frame.module and frame.name != UNKNOWN for frame in sample.stack)) >= 0.95


@pytest.mark.parametrize("way", ["threads", "children"])
@again
def test_threads_and_children(perf, way):
    recording = perf.record(newest((3, 12)), "-X", "perf", MIXED_WORK, 0.8, way)
    profile = ours(recording)
    assert_same(recording, profile)
    tids = {sample.tid for sample in profile.samples}
    assert len(tids) >= 3


@every_python()
@again
def test_stacks_unwound_from_copies(perf, python):
    recording = perf.record(python, MIXED_WORK, 0.6, call_graph="dwarf,16384", frequency=999)
    assert_same(recording, ours(recording))


@every_python(at_least=(3, 13))
@again
def test_a_jitdump_needs_no_inject(perf, python):
    recording = perf.record(python, "-X", "perf_jit", MIXED_WORK, 0.8,
                            call_graph=WHOLE_STACKS, frequency=499, clock="mono")
    assert_same(recording, ours(recording), recording.inject())


@every_python(at_least=(3, 13))
@again
def test_injected_files_are_read_too(perf, python):
    recording = perf.record(python, "-X", "perf_jit", MIXED_WORK, 0.8,
                            call_graph=WHOLE_STACKS, frequency=499, clock="mono").inject()
    assert_same(recording, ours(recording))


@every_python(at_least=(3, 13))
def test_a_jitdump_needs_no_clock_option(perf, python):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1,
                            call_graph="dwarf", frequency=999)
    shown = ours(recording).while_running(FOO_BAR_BAZ)
    assert shown.share_of(chain("<module>", "baz", "bar", "foo")) >= 0.97


@every_python(at_least=(3, 13))
def test_folding_puts_python_functions_next_to_each_other(perf, python):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1,
                            call_graph="dwarf", frequency=999, clock="mono")
    folded = ours(recording, "--fold").while_running(FOO_BAR_BAZ)

    def is_one_run(sample):
        names = [frame.function for frame in sample.stack]
        return names[:4] == ["<module>", "baz", "bar", "foo"]
    assert folded.share_of(is_one_run) >= 0.97


# What libdw found out is compared with addr2line, which goes its own way (libbfd).
def addr2line(path, svma):
    """[(function, file name, line)] at an address, innermost first."""
    out = subprocess.run(["addr2line", "-f", "-i", "-e", path, hex(svma)],
                         stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    places = []
    for function, place in zip(out[::2], out[1::2]):
        file, line = re.match(r"(.*):(\d+|\?)", place).groups()
        places.append((function, file.rsplit("/", 1)[-1], int(line) if line != "?" else 0))
    return places


def test_inlined_functions_and_lines_are_those_of_addr2line(perf):
    if not shutil.which("addr2line"):
        pytest.skip("addr2line is not installed: apt install binutils")
    recording = perf.record(inlined())
    text = dump(recording, "--inline", "--lines")
    if "(inlined)" not in text:
        pytest.skip("pitviper was built without libdw: apt install libdw-dev")
    seen = collections.Counter()
    for group in re.findall(r"((?:\t *[0-9a-f]+ \S+ \(inlined\)\n(?:  .*\n)?)*"
                            r"\t *[0-9a-f]+ \S+ \(\S*/inlined\)\n(?:  .*\n)?)", text):
        frames = re.findall(r"\t *([0-9a-f]+) (\S+) .*\n  .*?([^/]*):(\d+)\n", group)
        seen[tuple(frames)] += 1
    assert sum(seen.values()) >= FEWEST_SAMPLES
    # The program's only executable segment: its pages are where they are in the file.
    for frames, _ in seen.most_common(20):
        if not frames:
            continue  # code of the C library's, which has no lines
        places = [(function, file, int(line)) for _, function, file, line in frames]
        offset = int(frames[0][0], 16) & 0xfff
        assert places in [addr2line(inlined(), page + offset) for page in range(0, 0x4000, 0x1000)]
    assert any([frame[1] for frame in frames] == ["innermost", "middle", "outer"]
               for frames in seen)
