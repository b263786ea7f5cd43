"""What `pitviper view` writes, in a real browser: chromium opens pages of real recordings, and does
what people do. The checks themselves are in tests/viewer; whatever one is about, an error on the
console or a request to anywhere fails it."""
import base64
import gzip
import os
import re
import subprocess
import tempfile
import warnings
from pathlib import Path

import pytest

from . import browser as browser_module
from .cli import pitviper
from .interpreters import found
from .recorder import Recorder
from .targets import PHASES, make_recording

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
    if reason and os.environ.get("PITVIPER_REQUIRE_BROWSER") != "1":
        pytest.skip(reason)
    assert not reason, f"{reason}, and PITVIPER_REQUIRE_BROWSER says that there must be"
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
          "lens", "search", "deepLink", "strangeLinks", "keyboard", "themes", "phone"]


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
             for row in browser.check("pythonFunctions", page) if row["total"]}
    assert shown == expected


def test_a_range_has_the_samples_of_its_time(browser, page, data):
    shown = browser.check("range", page)
    assert shown["from"] < shown["to"]


def test_ranges_add_up(browser, page):
    text = page.read_text()
    profile = re.search(r'id="profile">([^<]*)<', text).group(1)
    header = gzip.decompress(base64.b64decode(profile))[8:]
    start, end = (int(re.search(rb'"%s": ?(\d+)' % key, header).group(1))
                  for key in (b"start_ns", b"end_ns"))
    browser.check("rangesAddUp", page, duration=end - start)


@pytest.mark.parametrize("name, comment", [("split_fields", "the hot line of parse"),
                                           ("draw", "the hot line of draw")])
def test_source_has_the_hot_line(browser, page, data, name, comment):
    line = line_of(comment)
    shown = browser.check("source", page, name=name, line=line)
    report = pitviper("report", "--json", "-i", data).json
    function = next(row for row in report["functions"] if row["name"] == name)
    weight = next(row["self_periods"] for row in function["lines"] if row["line"] == line)
    assert shown["share"] == pytest.approx(100 * weight / report["periods"], abs=0.06)


def test_source_without_text(browser, folder, data):
    page = view(folder, "no-source.html", data, "--no-source")
    browser.check("sourceWithoutText", page, line=line_of("the hot line of draw"))


def test_compare(browser, folder, data):
    base = record(folder, "base", "-F", "1999", newest_python(), PHASES, "0.8", "0.4")
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
