"""One runner for all tests: C unit tests, corpus replay, end-to-end tests.

    /usr/bin/python3 -m pytest tests              everything
    /usr/bin/python3 -m pytest tests/e2e -k 3.13  what concerns one interpreter

The parts: builds.py (where the programs are), native.py (C tests as items), summary.py (the last
line), e2e/ (the end-to-end tests and their vocabulary).
"""
import signal

import pytest

from . import builds, native, summary
from .e2e import interpreters, perf, samply

NOTHING_RAN = 5  # pytest's own status for it

# A shell lets what it starts in the background ignore Ctrl-C, and programs hand that down. Those
# that the tests start must not: some are about it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def reporter_of(session):
    return session.config.pluginmanager.get_plugin("terminalreporter")


def pytest_collect_file(file_path, parent):
    return native.collect_native(file_path, parent)


# Not pytest_report_header: what was tested belongs to the result, with -q too.
@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    lines = [f"pitviper: {builds.BUILD} (sanitized: {builds.SANITIZED})"]
    lines += [f"CPython {python.describe()}" for python in interpreters.found()]
    for line in [*lines, perf.describe(), samply.describe()]:
        reporter_of(session).write_line(line)


def pytest_terminal_summary(terminalreporter):
    summary.print_skips(terminalreporter)


# The outermost wrapper, so that its end comes behind everything that pytest itself prints.
@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    reporter = reporter_of(session)
    passed, failed, skipped = summary.count(reporter)
    if session.exitstatus == 0 and not passed:
        session.exitstatus = NOTHING_RAN
    yield
    reporter.write_line(f"{passed} passed, {failed} failed, {skipped} skipped")
