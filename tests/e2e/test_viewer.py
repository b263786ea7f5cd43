"""What `pitviper view` writes, in a real browser: chromium opens pages of real recordings, and does
what people do. The checks themselves are in tests/viewer; whatever one is about, an error on the
console or a request to anywhere fails it."""
import base64
import gzip
import re
import subprocess
import tempfile
import warnings
from pathlib import Path

import pytest

from . import browser as browser_module, perf as perf_module
from .cli import pitviper
from .interpreters import found
from .recorder import Recorder
from .targets import PHASES, THREADS_AND_FORKS, make_recording
from .viewer import PYTHON, Page

NASTY = ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "quote\"quote'back\\slash",
         "Straße_函数_🐍", "&lt;b&gt;", "__proto__", "${alert(1)}", "n" * 10000]
NASTY_SCRIPT = """
import time
def spin():
    end = time.process_time() + 0.04
    while time.process_time() < end:
        sum(range(500))
for name in {names!r}:
    code = spin.__code__.replace(co_name=name, **({{"co_qualname": name}} if {has_qualname} else {{}}))
    exec("def f(): pass")
    f.__code__ = code
    f()
"""


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="pitviper-viewer-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def browser(folder):
    reason = browser_module.obstacle()
    if reason and not browser_module.is_required():
        pytest.skip(reason)
    assert not reason, f"{reason}, and all tests must run here"
    browser = browser_module.Browser(folder)
    yield browser
    browser.close()


def newest_python():
    pythons = found()
    if not pythons:
        pytest.skip("there is no CPython 3.9 or later")
    return pythons[-1]


def record(folder, name, *arguments):
    """The recording of a program by `pitviper record`."""
    (folder / name).mkdir()
    recorder = Recorder(folder / name)
    status, _, err = recorder.run(*arguments)
    assert status == 0, err
    return recorder.data


def view(folder, name, data, *options):
    path = folder / name
    result = pitviper("view", "--no-open", "-i", data, "-o", path, *options)
    assert result.status == 0, result.err
    return path


@pytest.fixture(scope="module")
def data(folder):
    return record(folder, "new", "-F", "1999", newest_python(), PHASES, "0.4", "0.8")


@pytest.fixture(scope="module")
def page(folder, data):
    return view(folder, "phases.html", data)


def line_of(text):
    lines = PHASES.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


SIMPLE = ["zoom", "hover", "inverted", "timeOrder", "tree", "invertedTree", "functions", "threads", "fold",
          "lens", "search", "deepLink", "strangeLinks", "nothing", "keyboard", "themes", "phone"]


@pytest.mark.parametrize("check", SIMPLE)
def test_page(browser, page, check):
    browser.check(check, page)


def test_opens_and_has_all_samples(browser, page, data):
    shown = browser.check("load", page)
    report = pitviper("report", "--json", "-i", data).json
    assert shown == {"samples": report["samples"], "weight": report["periods"]}


def test_python_functions_are_those_of_report(browser, page, data):
    report = pitviper("report", "--json", "-i", data).json
    expected = {(row["name"], row["file"]): (row["self_periods"], row["total_periods"])
                for row in report["functions"]}
    shown = {(row["name"], row["file"]): (row["self"], row["total"])
             for row in browser.check("numbers", page, hash="#lens=python")["functions"] if row["total"]}
    assert shown == expected


def count_functions(profile, fold, lens, is_chosen):
    """[self, total] per function of the samples that are chosen, by their indexes."""
    tree = "folded" if fold else "stacks"
    function_of, kinds = profile["frames.function"], profile["functions.kind"]
    stacks = [()]
    for parent, frame in zip(profile[tree + ".parent"][1:], profile[tree + ".frame"][1:]):
        function = function_of[frame]
        is_shown = lens == "all" or (kinds[function] == PYTHON) == (lens == "python")
        stacks.append(stacks[parent] + (function,) if is_shown else stacks[parent])
    counts = [[0, 0] for _ in range(profile.table("functions"))]
    for number, (stack, weight) in enumerate(zip(profile["samples.stack"], profile["samples.weight"])):
        if is_chosen(number):
            functions = stacks[profile["folded.of"][stack] if fold else stack]
            for function in set(functions):
                counts[function][1] += weight
            if functions:
                counts[functions[-1]][0] += weight
    return counts


@pytest.mark.parametrize("lens", ["all", "python", "native"])
@pytest.mark.parametrize("fold", [True, False], ids=["folded", "unfolded"])
def test_numbers_are_those_of_the_data(browser, page, fold, lens):
    profile = Page(page.read_text()).profile
    times, threads = profile["samples.time"], profile["samples.thread"]
    first, end = times[len(times) // 5], times[-20]
    chosen = sorted(set(threads))[:2]
    for link, is_chosen in [
            ("", lambda number: True),
            (f"&range={first}-{end}", lambda number: first <= times[number] < end),
            (f"&threads={','.join(map(str, chosen))}", lambda number: threads[number] in chosen)]:
        shown = browser.check("numbers", page, hash=f"#fold={int(fold)}&lens={lens}{link}")
        assert [[row["self"], row["total"]] for row in shown["functions"]] == \
            count_functions(profile, fold, lens, is_chosen)
        assert shown["samples"] == sum(map(is_chosen, range(len(times))))


def test_ranges(browser, page):
    browser.check("range", page)
    clock = Page(page.read_text()).profile.header["clock"]
    browser.check("rangesAddUp", page, duration=clock["end_ns"] - clock["start_ns"])


def test_processes(browser, folder):
    data = record(folder, "forks", newest_python(), THREADS_AND_FORKS, "forks", "300000")
    page = view(folder, "forks.html", data)
    browser.check("processes", page, count=Page(page.read_text()).profile.table("processes"))


def test_events_of_perf(browser, folder):
    if perf_module.obstacle():
        pytest.skip(perf_module.obstacle())
    (folder / "events").mkdir()
    data = folder / "events" / "perf.data"
    subprocess.run(["perf", "record", "-q", "-g", "-e", "cpu-clock:u,page-faults:u", "-o", data,
                    newest_python(), PHASES, "0.2", "0.2"], check=True, stderr=subprocess.DEVNULL)
    page = view(folder, "events.html", data)
    browser.check("events", page, expected=Page(page.read_text()).profile.header["events"])


def test_numbers_of_any_size(browser, page):
    browser.check("columns", page)


@pytest.mark.parametrize("name, comment", [("split_fields", "the hot line of parse"),
                                           ("draw", "the hot line of draw")])
def test_source_has_the_hot_line(browser, page, data, name, comment):
    line = line_of(comment)
    shown = browser.check("source", page, name=name, line=line)
    report = pitviper("report", "--json", "-i", data).json
    function = next(row for row in report["functions"] if row["name"] == name)
    weight = next(row["self_periods"] for row in function["lines"] if row["line"] == line)
    assert shown["share"] == pytest.approx(100 * weight / report["periods"], abs=0.06)


def test_a_line_counts_once_however_often_it_is_on_the_stack(browser, page, data):
    shown = browser.check("source", page, name="descend", line=line_of("the hot line of descend"))
    report = pitviper("report", "--json", "-i", data).json
    function = next(row for row in report["functions"] if row["name"] == "descend")
    assert shown["share"] == pytest.approx(100 * function["total_periods"] / report["periods"], abs=0.2)


def test_source_without_text(browser, folder, data):
    page = view(folder, "no-source.html", data, "--no-source")
    browser.check("sourceWithoutText", page, line=line_of("the hot line of draw"))


def test_compare(browser, folder, data):
    base = record(folder, "base", "-F", "1999", newest_python(), PHASES, "1.0", "0.4")
    browser.check("compare", view(folder, "compared.html", data, "--base", base))


def test_waiting_samples_are_told_apart(browser, folder):
    data = record(folder, "wall", "-e", "wall", newest_python(), PHASES, "0.2", "0.2")
    shown = browser.check("waiting", view(folder, "wall.html", data))
    assert 0 < shown["waiting"] < shown["samples"]


def test_names_do_nothing(browser, folder):
    python = newest_python()
    script = folder / "nasty'\"<b>.py"
    script.write_text(NASTY_SCRIPT.format(names=NASTY, has_qualname=python.version >= (3, 11)))
    data = record(folder, "nasty", "-F", "1999", python, script)
    browser.check("nastyNames", view(folder, "nasty.html", data), names=NASTY)


def test_a_large_profile(browser, folder):
    """One million samples, 200,000 stacks, 1,000 threads; how long things took is shown, not judged."""
    (folder / "large").mkdir()
    subprocess.run([make_recording(), folder / "large", "1000000", "200000", "1000"], check=True)
    page = view(folder, "large.html", folder / "large" / "perf.data")
    shown = browser.check("large", page)
    assert shown["samples"] == 1000000
    took = ", ".join(f"{name} {ms / 1000:.2f} s" for name, ms in shown["timings"].items())
    warnings.warn(f"one million samples: {page.stat().st_size / 1e6:.1f} MB; {took}", stacklevel=1)


@pytest.mark.parametrize("change, expected", [
    (lambda data: b"PVV9" + data[4:], "not a profile"),
    (lambda data: data[:len(data) // 2], "ends inside"),
    (lambda data: data.replace(b'"version":', b'"versiom":', 1), "version"),
], ids=["magic", "cut off", "version"])
def test_damaged_data_is_said(browser, folder, page, change, expected):
    text = page.read_text()
    profile = re.search(r'id="profile">([^<]*)<', text).group(1)
    damaged = change(gzip.decompress(base64.b64decode(profile)))
    path = folder / f"damaged-{expected.split()[0]}.html"
    path.write_text(text.replace(profile, base64.b64encode(gzip.compress(damaged)).decode()))
    browser.check("damaged", path, expected=expected)
