"""Programs that do everything at once, with trampolines and without: the same output, the same end,
nothing printed besides, and every file that is left behind is whole and has the names.

Both sides run at the same time, each in a mount namespace with a /tmp of its own. So all files of
all processes that a program starts are found there, and nothing has to be cleaned up. The programs
are in tests/targets/stress.
"""
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from ..builds import BUILD, CHECKOUT, built
from .cli import pitviper
from .interpreters import every_python
from .name_files import jitdump_of, perf_map_of, read_jitdump, read_perf_map
from .private_tmp import in_private_tmp, obstacle

TIME_LIMIT_S = 30
STRESS = CHECKOUT / "tests" / "targets" / "stress"
NAME = re.compile(rb"py::([^:]+):")
MODES = {"perf": [], "perf_jit": ["--jit"]}

PURE_RECURSION = ["plain", "handlers", "generators"]
RECURSION_THROUGH_C = ["map", "eval", "re", "repr", "comparison", "getattr", "getitem", "reduce"]
RAISED_LIMIT = 10 ** 6
SMALL_STACKS_KB = [128, 256, 1024]


class Ended(NamedTuple):
    status: int
    out: str
    err: str
    tmp: Path
    pid: int

    def files(self):
        return [*self.tmp.glob("perf-*.map"), *self.tmp.glob("jit-*.dump")]

    def names(self):
        """What the files of the program's own process name: function by function."""
        files = [self.own(file_of) for file_of in (perf_map_of, jitdump_of)]
        return [name.decode() for path in files if path.exists()
                for name in NAME.findall(path.read_bytes())]

    def own(self, file_of):
        return self.tmp / file_of(self.pid).name

    def assert_files_are_whole(self):
        for path in self.files():
            assert pitviper("inspect", path).status == 0, path


class Sides:
    """Runs programs of tests/targets/stress, with ours and without."""
    def __init__(self, folder):
        self.folder = folder

    def start(self, side, *command):
        tmp = self.folder / f"{side}-{len(list(self.folder.iterdir()))}"
        tmp.mkdir()
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PYTHON")}
        return tmp, subprocess.Popen(in_private_tmp(tmp, *command), cwd=CHECKOUT,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, env=environment)

    def end(self, tmp, process):
        try:
            out, err = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"{process.args[-3:]} did not end within {TIME_LIMIT_S} s")
        return Ended(process.returncode, out.decode(), err.decode(), tmp, process.pid)

    def command(self, python, program, *arguments):
        return [python, "-W", "ignore", STRESS / f"{program}.py", *arguments]

    def start_with(self, python, program, *arguments, mode="perf"):
        return self.start("with", built(BUILD, "pitviper"), "run", *MODES[mode], "--",
                          *self.command(python, program, *arguments))

    def with_ours(self, python, program, *arguments, mode="perf"):
        return self.end(*self.start_with(python, program, *arguments, mode=mode))

    def without(self, python, program, *arguments):
        return self.end(*self.start("without", *self.command(python, program, *arguments)))

    def same(self, python, program, *arguments, mode="perf", status=0):
        """Both sides, which must not differ. What ours left behind is whole; returned."""
        started = self.start_with(python, program, *arguments, mode=mode)
        without = self.end(*self.start("without", *self.command(python, program, *arguments)))
        ours = self.end(*started)
        assert (without.status, without.err) == (status, "")
        assert (ours.status, ours.err, ours.out) == (status, "", without.out)
        assert ours.files()
        ours.assert_files_are_whole()
        return ours


@pytest.fixture
def sides(recordings):
    if obstacle():
        pytest.skip(obstacle())
    return Sides(recordings)


# --- on and off ----------------------------------------------------------------------------------

@every_python()
def test_a_thousand_cycles(python, sides):
    names = sides.same(python, "toggling", "cycles").names()
    assert [name for name in names if name.startswith("made_")] == \
        [f"made_{i}" for i in range(1000)]


@every_python()
def test_switching_between_the_files(python, sides):
    ours = sides.same(python, "toggling", "switching")
    in_dump = [entry.name.split(":")[2]
               for entry in read_jitdump(ours.own(jitdump_of).read_bytes()).functions]
    in_map = [entry.name.split(":")[2]
              for entry in read_perf_map(ours.own(perf_map_of).read_bytes())]
    assert {f"made_{i}" for i in range(0, 1000, 2)} <= set(in_dump)
    assert {f"made_{i}" for i in range(1, 1000, 2)} <= set(in_map)
    assert in_dump.count("fib") == in_map.count("fib") == 1


@every_python()
def test_activating_twice(python, sides):
    assert sides.same(python, "toggling", "twice").names().count("fib") == 1


@every_python()
def test_twenty_threads_call_while_another_toggles(python, sides):
    assert "fib" in sides.same(python, "toggling", "threads").names()


# --- processes -----------------------------------------------------------------------------------

@every_python()
def test_two_hundred_forks_from_a_threaded_parent(python, sides):
    ours = sides.same(python, "processes", "forks", mode="perf_jit")
    children = [path for path in ours.files() if str(ours.pid) not in path.name]
    assert len(children) == 200
    assert all(b"only_in_child" in path.read_bytes() for path in children)
    assert "only_in_child" not in ours.names()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@every_python()
def test_pools(python, method, sides):
    ours = sides.same(python, "processes", method)
    workers = [path for path in ours.files()
               if str(ours.pid) not in path.name and b"py::square:" in path.read_bytes()]
    assert workers


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end, status", [("hard_exit", 3), ("killed", -9)])
@every_python()
def test_nothing_is_lost_at_a_hard_end(python, end, status, mode, sides):
    ours = sides.same(python, "processes", end, mode=mode, status=status)
    assert ours.names()[-1] == "only_in_child"


@pytest.mark.parametrize("threads", ["daemon_threads", "running_threads"])
@every_python()
def test_threads_at_exit(python, threads, sides):
    assert "keep_calling" in sides.same(python, "processes", threads).names()


# --- code ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", MODES)
@every_python()
def test_every_shape_of_call(python, mode, sides):
    names = sides.same(python, "shapes", mode=mode).names()
    methods = {"__init__", "__del__", "__lt__", "__getattr__", "__exit__", "twice"}
    last_parts = {name.split(".")[-1] for name in names}
    assert {"generator", "asynchronous", "coroutine", "<module>", *methods} <= last_parts


@every_python()
def test_fifty_thousand_functions(python, sides):
    names = sides.same(python, "code_objects", "many").names()
    assert {f"function_{i}" for i in range(50000)} <= set(names)


@every_python()
def test_functions_that_die(python, sides):
    ours = sides.same(python, "code_objects", "dying")
    entries = read_perf_map(ours.own(perf_map_of).read_bytes())
    assert {f"short_lived_{i}" for i in range(5000)} <= set(ours.names())
    assert len({entry.start for entry in entries}) == len(entries), "an address has two names"


@pytest.mark.parametrize("part", ["kinds", "frozen", "functions_named_init",
                                  "while_instances_are_made"])
@every_python()
def test_classes(python, part, sides):
    ours = sides.same(python, "classes", part)
    if part != "functions_named_init":
        assert "Plain.__init__" in ours.names() or "__init__" in ours.names()
    assert "False" not in ours.out


@every_python()
def test_subinterpreters(python, sides):
    names = sides.same(python, "subinterpreters").names()
    assert {"in_main", "in_subinterpreter"} <= set(names)


@every_python()
def test_interpreters_with_a_gil_each(python, sides):
    names = sides.same(python, "own_gils").names()
    assert {f"known_{number}" for number in range(4)} <= set(names)


# --- recursion -----------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", PURE_RECURSION)
@every_python()
def test_the_default_limit_is_reached_as_without_us(python, kind, sides):
    sides.same(python, "recursion", kind, "default")


# 3.12 counts C calls, 1500 of them, and a hook adds some; what it adds is given back by an estimate
# (src/interp/hook.c), which can tell recursion through C from plain one only where C counts itself.
@pytest.mark.parametrize("kind", RECURSION_THROUGH_C)
@every_python()
def test_recursion_through_c_is_as_deep_as_without_us(python, kind, sides):
    if python.version[:2] != (3, 12):
        sides.same(python, "recursion", kind, "default")
        return
    ours = sides.with_ours(python, "recursion", kind, "default")
    depth, exception = sides.without(python, "recursion", kind, "default").out.split()
    assert ours.out.split()[1] == exception
    assert int(ours.out.split()[0]) >= int(depth) * 0.99


@pytest.mark.parametrize("kind", PURE_RECURSION + RECURSION_THROUGH_C)
@every_python()
def test_a_raised_limit_ends_in_an_exception(python, kind, sides):
    ours = sides.with_ours(python, "recursion", kind, RAISED_LIMIT)
    assert (ours.status, ours.err) == (0, "")
    assert ours.out.split()[1] in ("RecursionError", "MemoryError")


@pytest.mark.parametrize("limit", ["default", RAISED_LIMIT])
@pytest.mark.parametrize("kilobytes", SMALL_STACKS_KB)
@every_python()
def test_a_thread_with_a_small_stack_ends_in_an_exception(python, kilobytes, limit, sides):
    for kind in ("plain", "generators", "repr", "comparison"):
        ours = sides.with_ours(python, "recursion", kind, limit, kilobytes)
        assert (kind, ours.status, ours.err) == (kind, 0, "")
        assert ours.out.split()[1] in ("RecursionError", "MemoryError")


# --- neighbours ----------------------------------------------------------------------------------

@pytest.mark.parametrize("order", ["before", "after", "after_chained"])
@every_python()
def test_another_hook_is_kept(python, order, sides, forward_hook):
    ours = sides.same(python, "other_hooks", order, forward_hook)
    assert "False" not in ours.out
    assert "called_while_both_are_there" in ours.names()
    if order == "after_chained":
        assert "through_the_other" in ours.names()
