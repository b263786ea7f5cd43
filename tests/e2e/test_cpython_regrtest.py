"""CPython's own regression tests, with trampolines and without: test by test the same results.

Both sides are compared, not judged: a test that fails on this machine anyway is none of ours. One
test fails under any eval-frame hook, CPython's -X perf included: 3.12 to 3.14 report an event of
`async for` twice. That one, on these versions, must fail under a hook that just forwards in the same
words as with ours; then it does not count.
"""
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from ..builds import BUILD, CHECKOUT, built
from .command import words
from .interpreters import every_python
from .private_tmp import in_private_tmp, obstacle

TIME_LIMIT_S = 600
MODULES = ["test_generators", "test_coroutines", "test_asyncgen", "test_sys_settrace",
           "test_sys_setprofile", "test_threading", "test_fork1", "test_exceptions", "test_scope",
           "test_super", "test_class", "test_contextlib", "test_functools", "test_with"]

# Part of a test's name, and the versions on which it fails under any hook.
FAILS_UNDER_ANY_HOOK = {"test_20_async_for_loop": [(3, 12), (3, 13), (3, 14)]}

FIND_MODULES = """
import importlib.util, sys
find = importlib.util.find_spec
has_tests = find("test") and find("test.libregrtest")
print(*(name for name in sys.argv[1:] if has_tests and find("test." + name)))
"""
RUN_HOOKED = """
import ctypes, sys, unittest
ctypes.PyDLL(sys.argv[1]).install()
unittest.main(module=None, argv=sys.argv[1:])
"""


def modules_of(python):
    found = subprocess.run(words(python, "-c", FIND_MODULES, *MODULES), stdout=subprocess.PIPE,
                           check=True, cwd=CHECKOUT).stdout.decode().split()
    if not found:
        pytest.skip("this interpreter comes without CPython's tests")
    return found


def outcomes(python, modules, folder, *before):
    """{test: "passed", "skipped", "failure" or "error"}; a module that crashes has no tests."""
    tmp = folder / "tmp"
    tmp.mkdir(parents=True)
    command = [*before, python, "-m", "test", "-j2", "--junit-xml", "/tmp/results.xml", *modules]
    ended = subprocess.run(in_private_tmp(tmp, *command), cwd=BUILD, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIME_LIMIT_S)
    results = tmp / "results.xml"
    assert results.is_file(), ended.stdout.decode()[-2000:]
    tests = {}
    for case in ElementTree.parse(results).iter("testcase"):
        verdicts = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        tests[case.get("name")] = verdicts[0] if verdicts else "passed"
    return tests


def complaint(*command):
    """How a single test fails: the text behind the traceback; None when it passes."""
    ended = subprocess.run(words(*command), cwd=BUILD, stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, timeout=TIME_LIMIT_S)
    text = ended.stderr.decode(errors="replace")
    return text[text.index("AssertionError"):text.rindex("-----\nRan ")] if ended.returncode else None


def is_excused(python, test, hook):
    versions = FAILS_UNDER_ANY_HOOK.get(test.split(".")[-1], [])
    if python.version[:2] not in versions:
        return False
    ours = complaint(built(BUILD, "pitviper"), "run", "--", python, "-m", "unittest", test)
    return ours is not None and ours == complaint(python, "-c", RUN_HOOKED, hook, test)


@every_python()
def test_the_results_are_the_same(python, recordings, forward_hook):
    if obstacle():
        pytest.skip(obstacle())
    modules = modules_of(python)
    without = outcomes(python, modules, recordings / "without")
    ours = outcomes(python, modules, recordings / "with", built(BUILD, "pitviper"), "run", "--")
    assert {name.split(".")[1] for name in without} >= {"test_generators", "test_functools"}
    different = {test: (without.get(test), ours.get(test))
                 for test in sorted(without.keys() | ours.keys())
                 if without.get(test) != ours.get(test)}
    blamed = {test: change for test, change in different.items()
              if not is_excused(python, test, forward_hook)}
    assert not blamed
