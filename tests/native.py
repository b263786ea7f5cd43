"""Tests that are written in C, as items of pytest.

A file tests/unit/test_x.c gives one item for every cmocka_unit_test(name) in it. The program
behind them runs once, when the first of them is due; its TAP output

    ok 1 - reads_an_empty_file
    not ok 2 - reads_a_file_that_grows

has a line for each. A program that dies has no line for the test it died in nor for those after
it, so a missing line is a failure. A sanitizer's report at the end of the program (a leak, for
one) belongs to no test in particular: it fails all of them.

A file tests/fuzz/fuzz_FORMAT.c gives one item, which feeds the corpus in tests/data/FORMAT to the
same harness that the fuzzer drives.
"""
import re
import subprocess

import pytest

from .builds import CHECKOUT, SANITIZED, NotBuilt, built, sanitized_environment

UNIT_TEST = re.compile(r"cmocka_unit_test\((\w+)\)")
TAP_LINE = re.compile(r"(not )?ok \d+ (?:- )?(# SKIP )?(\w+)(.*# SKIP.*)?$", re.MULTILINE)
TIME_LIMIT_S = 300


class Failed(Exception):
    """What a C program printed, as the reason of a failure."""


def collect_native(path, parent):
    """The items of a C file, or None when it is not one of tests."""
    folder = path.parent.name
    if folder == "unit" and path.match("test_*.c"):
        return UnitTestFile.from_parent(parent, path=path)
    if folder == "fuzz" and path.match("fuzz_*.c"):
        return CorpusFile.from_parent(parent, path=path)
    return None


def run(command, **environment):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=TIME_LIMIT_S, env={**sanitized_environment(), **environment})
    return result.returncode, result.stdout.decode(errors="backslashreplace")


class NativeItem(pytest.Item):
    def repr_failure(self, excinfo):
        if isinstance(excinfo.value, (Failed, NotBuilt)):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, None, self.name


class UnitTestFile(pytest.File):
    def collect(self):
        self.outcome = None
        self.names = UNIT_TEST.findall(self.path.read_text())
        for name in self.names:
            yield UnitTest.from_parent(self, name=name)

    def result_of(self, name):
        """(passed, skipped) of one test; raises Failed when the program has nothing to say."""
        if self.outcome is None:
            program = built(SANITIZED, f"tests/{self.path.stem}")
            status, output = run([program], CMOCKA_MESSAGE_OUTPUT="TAP")
            results = {test: (not bad, bool(skip_before or skip_after))
                       for bad, skip_before, test, skip_after in TAP_LINE.findall(output)}
            self.outcome = status, output, results
        status, output, results = self.outcome
        if name not in results:
            raise Failed(f"no result: the program ended with status {status} before it\n{output}")
        well = results.keys() >= set(self.names) and all(map(any, results.values()))
        if status != 0 and well:
            raise Failed(f"all tests ended well, but the program with status {status}\n{output}")
        return results[name]


class UnitTest(NativeItem):
    def runtest(self):
        passed, skipped = self.parent.result_of(self.name)
        if skipped:
            pytest.skip("the test itself says so")
        if not passed:
            output = self.parent.outcome[1]
            own_part = re.search(rf"^not ok \d+ (- )?{self.name}\b.*\n(#.*\n)+", output,
                                 re.MULTILINE)
            raise Failed(own_part[0] if own_part else output)


class CorpusFile(pytest.File):
    def collect(self):
        yield CorpusReplay.from_parent(self, name="replay")


class CorpusReplay(NativeItem):
    def runtest(self):
        file_format = self.path.stem[len("fuzz_"):]
        corpus = CHECKOUT / "tests" / "data" / file_format
        if not corpus.is_dir() or not any(corpus.iterdir()):
            raise Failed(f"the corpus {corpus.relative_to(CHECKOUT)} is empty")
        status, output = run([built(SANITIZED, f"tests/replay_{file_format}"), corpus])
        if status != 0:
            raise Failed(f"status {status}\n{output}")
