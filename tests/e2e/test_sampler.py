"""What the sampler of `pitviper record` says is true: without any rights, for programs whose costs
are known, and for CPython's own tests, which must not notice it."""
import json
import re

import pytest

from ..builds import BUILD, built
from . import perf as perf_module
from .again import again
from .cli import pitviper
from .interpreters import every_python, found
from .private_tmp import obstacle
from .profiles import chain
from .recorder import Recorder
from .targets import FOO_BAR_BAZ, KNOWN_COSTS
from .test_cpython_regrtest import modules_of, outcomes
from .unprivileged import take_back, unprivileged

CHAIN = ["<module>", "baz", "bar", "foo"]
TOLERANCE = 0.1
POINTS = 0.03  # of 1, between two profilers
LINE_ROW = re.compile(r"\s*([\d.]+)%\s+[\d.]+%\s+(\S.*?)\s*$", re.M)

oldest_and_newest = pytest.mark.parametrize(
    "python", [pytest.param(python, id=python.label) for python in {found()[0], found()[-1]}])


def line_of(script, text):
    """FILE:NUMBER of the one line of a script that ends like this."""
    [number] = [number for number, line in enumerate(script.read_text().splitlines(), 1)
                if line.endswith(text)]
    return f"{script.name}:{number}"


def share_by_line(recorder):
    """{FILE:NUMBER: percent of the time with what was called from there}."""
    table = pitviper("report", "--stdio", "--sort", "srcline", "-g", "none", "-i",
                     str(recorder.data)).out
    return {place: float(percent) for percent, place in LINE_ROW.findall(table)}


def recorded(recorder, *command):
    """What the program printed."""
    status, out, err = recorder.run(*command)
    assert status == 0, err
    return out, err


# Each function is thrown away before the next is made, and its name and its code with it.
THROWN_AWAY = """
import time
end = time.process_time() + 1
def template():
    for _ in range(20000): pass
count = 0
while time.process_time() < end:
    name = "made_%06d" % count
    names = {"co_name": name, "co_qualname": name} if hasattr(template.__code__, "co_qualname") else {"co_name": name}
    code = template.__code__.replace(**names)
    type(template)(code, {"range": range})()
    del code, name, names
    count += 1
print(count)
"""


@every_python()
def test_functions_that_take_the_place_of_others(recordings, python):
    """Code objects and names stand at the addresses of others before them: each has its own name."""
    recorder = Recorder(recordings)
    out, _ = recorded(recorder, "-F", 9999, python, "-c", THROWN_AWAY)
    page = json.loads(pitviper("report", "--json", str(recorder.data)).out)
    made = {function["name"] for function in page["functions"] if function["name"].startswith("made_")}
    assert len(made) >= 0.9 * int(out)


@every_python()
def test_a_user_without_rights_gets_the_chain_and_the_line(recordings, python):
    recorder = Recorder(recordings, before=unprivileged(recordings, python))
    _, err = recorded(recorder, "-F", 999, python, FOO_BAR_BAZ, 2)
    assert "interrupted by CPU-time timers" in err
    take_back(recorder.data)
    profile = recorder.profile().while_running(FOO_BAR_BAZ)
    own = profile.weight_of(lambda sample: True)
    assert profile.share_of(chain(*CHAIN)) >= 0.99
    assert profile.weight_of(chain(*CHAIN)) >= 0.99 * own
    # There are fewer samples than asked for, of a larger weight each: the sum is the CPU time.
    assert own / 1e9 == pytest.approx(2, rel=TOLERANCE)
    shares = share_by_line(recorder)
    counting = shares[line_of(FOO_BAR_BAZ, "result += 1")]
    loop = shares[line_of(FOO_BAR_BAZ, "for _ in range(n):")]
    assert counting > 20 and counting + loop > 90


def parts(recorder):
    """The samples below each function that main or a part of the program called: {name: weight}."""
    weights = {}
    for sample in recorder.profile().samples:
        for name in {frame.function for frame in sample.stack if frame.file == str(KNOWN_COSTS)}:
            weights[name] = weights.get(name, 0) + sample.weight
    return weights


def assert_true(seen, truth):
    """Each part has its share of all parts."""
    all_seen, all_true = sum(seen[name] for name in truth), sum(truth.values())
    shares = {name: (seen[name] / all_seen, truth[name] / all_true) for name in truth}
    assert all(share == pytest.approx(true, rel=TOLERANCE) for share, true in shares.values()), shares


def need_perf_events(err):
    """Timers of the kernel are too coarse for shares of a few seconds."""
    if "interrupted by perf events" not in err:
        pytest.skip("there are no perf events here: " + (perf_module.obstacle() or err))


@oldest_and_newest
def test_lines_have_their_share(recordings, python):
    recorder = Recorder(recordings)
    out, err = recorded(recorder, "-F", 999, python, KNOWN_COSTS, "lines", 4)
    need_perf_events(err)
    shares = share_by_line(recorder)
    truth = json.loads(out)
    assert_true({name: shares[line_of(KNOWN_COSTS, "# " + name)] for name in truth}, truth)


@pytest.mark.parametrize("program", ["functions", "languages"])
@oldest_and_newest
def test_functions_have_their_share(recordings, python, program):
    recorder = Recorder(recordings)
    out, err = recorded(recorder, "-F", 999, python, KNOWN_COSTS, program, 4)
    need_perf_events(err)
    assert_true(parts(recorder), json.loads(out))


def shares_by(samples, kind):
    """{kind of a sample: its share of their weight}."""
    weights = {}
    for sample in samples:
        weights[kind(sample)] = weights.get(kind(sample), 0) + sample.weight
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def part_of(sample):
    """The part of the program that runs, None outside of all. A function may stand there twice: as
    itself and as the trampoline of -X perf."""
    names = [frame.function for frame in sample.stack if frame.file == str(KNOWN_COSTS)]
    parts = [name for name in names if name not in ("<module>", "main", "languages")]
    return parts[0] if parts else None


def module_of(sample):
    return sample.stack[-1].module


def is_the_programs(sample):
    """Not the sampler's work, of which perf sees the kernel's part and libc's, too: memcpy."""
    return not re.search(r"\[kernel|pitviper\.so|/libc\.so", module_of(sample))


def assert_like(ours, perfs):
    different = {name: (ours.get(name, 0), perfs.get(name, 0)) for name in ours.keys() | perfs.keys()
                 if abs(ours.get(name, 0) - perfs.get(name, 0)) > POINTS}
    assert not different, different


@every_python(at_least=(3, 12), frame_pointers=True)
@again
def test_shares_are_those_of_perf(recordings, python, perf):
    """Both sample the same run. Python functions are compared where perf's stacks are whole: those
    that end in libz or libc are not, for lack of frame pointers."""
    data = recordings / "perf.fp.data"
    recorder = Recorder(recordings, before=[perf.path, "record", "-q", "-F", 1999, "-g", "-o", data])
    _, err = recorded(recorder, "-F", 1999, python, "-X", "perf", KNOWN_COSTS, "languages", 4)
    need_perf_events(err)
    ours = recorder.profile()
    perfs = perf_module.Recording(perf, data).profile()
    perf.recordings.append(perf_module.Recording(perf, data))  # so that its maps are removed
    ours, perfs = ([sample for sample in profile.samples
                    if sample.pid in ours.pids and sample.stack and is_the_programs(sample)]
                   for profile in (ours, perfs))
    assert min(len(ours), len(perfs)) > 4000
    modules = shares_by(perfs, module_of)
    assert max(modules.values()) < 0.95  # not all is in one
    assert_like(shares_by(ours, module_of), modules)

    def parts_in_python(samples):
        own = [sample for sample in samples if module_of(sample) == python.executable]
        return shares_by(own, part_of)
    parts = parts_in_python(perfs)
    assert parts.get(None, 0) < POINTS and len(parts) >= 5
    assert_like(parts_in_python(ours), parts)


@oldest_and_newest
def test_wall_clock_time_shows_sleep(recordings, python):
    recorder = Recorder(recordings)
    out, err = recorded(recorder, "-F", 499, "-e", "wall", python, KNOWN_COSTS, "sleep", 4)
    assert "interrupted by timers" in err
    truth, seen = json.loads(out), parts(recorder)
    asleep = seen["asleep"] / (seen["asleep"] + seen["awake"])
    assert abs(asleep - truth["asleep"] / sum(truth.values())) < TOLERANCE


@every_python()
def test_cpythons_own_tests_have_the_same_results(recordings, python):
    if obstacle():
        pytest.skip(obstacle())
    modules = modules_of(python)
    recorder = [built(BUILD, "pitviper"), "record", "-F", 9999, "-o", "/tmp/perf.data", "--"]
    without = outcomes(python, modules, recordings / "without")
    ours = outcomes(python, modules, recordings / "with", *recorder)
    assert {name.split(".")[1] for name in without} >= {"test_generators", "test_functools"}
    assert ours == without
