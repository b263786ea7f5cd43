"""Interpreters that are not supported: PyPy, free-threaded builds, debug builds. Programs run there
as without us, whoever asks for trampolines gets the reason, and nothing is said twice."""
import pytest

from .cli import pitviper
from .environments import with_wheel
from .interpreters import REFUSED, every_refused
from .programs import run, with_support

REASONS = dict(zip(REFUSED, ["this is not a CPython", "free-threaded builds are not supported",
                             "debug builds are not supported"]))

# Output on both streams, work that a hook would see, and a status of its own.
PROGRAM = """
import sys
class Shape:
    def __init__(self, n): self.n = n
    def __repr__(self): return f"Shape({self.n})"
def shapes(n): yield from map(Shape, range(n))
print(sum(shape.n for shape in shapes(2000)), repr(Shape(3)))
sys.stderr.write("its own line\\n")
sys.exit(7)
"""
ASK = """
import {module} as module
try:
    print(module.activate_stack_trampoline("{backend}"))
except Exception as error:
    print(type(error).__name__, error)
print(module.is_stack_trampoline_active(), module.deactivate_stack_trampoline())
"""
WISHES = [(["-X", "pitviper=perf"], {}), (["-X", "pitviper=perf_jit"], {}),
          (["-I", "-X", "pitviper=perf"], {}), ([], {"PITVIPER": "perf"}),
          ([], {"PITVIPER": "perf_jit"}), (["-I"], {"PITVIPER": "perf"})]
OLD_WISHES = [(["-X", "perf"], {}), (["-X", "perf_jit"], {}), ([], {"PYTHONPERFSUPPORT": "1"}),
              ([], {"PYTHON_PERF_JIT_SUPPORT": "1"})]
NO_WISHES = [([], {}), ([], {"PITVIPER": ""}), ([], {"PITVIPER": "0"}),
             ([], {"PYTHONPERFSUPPORT": "0"}), ([], {"PYTHONPERFSUPPORT": "no"}),
             (["-I"], {"PYTHONPERFSUPPORT": "1"}), (["-E"], {"PYTHON_PERF_JIT_SUPPORT": "1"})]


def message(python):
    return f"perf trampoline not available: {REASONS[python.refused_as]}"


def assert_same(python, ended, err):
    plain = run(python, "-c", PROGRAM)
    assert (plain.status, plain.err) == (7, "its own line\n")
    assert (ended.status, ended.out, ended.kinds) == (plain.status, plain.out, set())
    assert ended.err == err + plain.err


@pytest.mark.parametrize("jit", [False, True], ids=["perf", "perf_jit"])
@every_refused()
def test_pitviper_run_leaves_programs_alone(python, jit):
    """PyPy shows a preloaded object nothing of itself: it is a program without Python."""
    line = "" if python.implementation == "pypy" else f"pitviper: {message(python)}\n"
    assert_same(python, run(*with_support(python, "-c", PROGRAM, jit=jit)), line)


@every_refused()
def test_package_and_preload_say_it_once(python):
    ended = run(*with_support(with_wheel(python), "-c", PROGRAM))
    assert_same(python, ended, f"pitviper: {message(python)}\n")


@pytest.mark.parametrize("backend", ["perf", "perf_jit"])
@pytest.mark.parametrize("module", ["pitviper", "sys"])
@every_refused()
def test_the_functions_say_why(python, module, backend):
    if module == "sys" and python.version >= (3, 12):
        pytest.skip("from 3.12 on the functions of sys are the interpreter's own")
    ended = run(with_wheel(python), "-c", ASK.format(module=module, backend=backend))
    assert ended.out == f"ValueError {message(python)}\nFalse None\n"
    assert (ended.status, ended.err, ended.kinds) == (0, "", set())


@every_refused()
def test_the_status_says_why(python):
    ended = run(with_wheel(python), "-c", "import pitviper; print(pitviper.status())")
    assert f"'unavailable': '{REASONS[python.refused_as]}'" in ended.out
    assert "'mode': None" in ended.out


@every_refused()
def test_a_wish_at_the_start_gets_one_line(python):
    wishes = WISHES + (OLD_WISHES if python.version < (3, 12) else [])
    for options, variables in wishes:
        ended = run(with_wheel(python), *options, "-c", PROGRAM, **variables)
        assert_same(python, ended, f"pitviper: {message(python)}\n")


@every_refused()
def test_without_a_wish_nothing_is_said(python):
    for options, variables in NO_WISHES:
        if python.version >= (3, 12) and "-I" not in options and "-E" not in options:
            variables = {name: value for name, value in variables.items() if name == "PITVIPER"}
        assert_same(python, run(with_wheel(python), *options, "-c", PROGRAM, **variables), "")


@every_refused()
def test_nothing_is_said_on_the_wrong_stream(python):
    command = 'exec "$0" -X pitviper=perf -c "print(1)" 2>&-'
    ended = run("sh", "-c", command, with_wheel(python))
    assert (ended.status, ended.out) == (0, "1\n")


@every_refused()
def test_doctor_knows(python):
    result = pitviper("doctor", "--json", python.executable)
    said = result.json["python"]
    assert (result.status, said["supported"]) == (1, False)
    assert said["implementation"] == python.implementation
    assert said["version"] == ".".join(map(str, python.version))
    checks = {check["topic"]: check for check in result.json["checks"]}
    assert checks["pitviper"]["level"] == "problem"
    word = {"PyPy": "not CPython", "free-threaded CPython": "free-threaded"}.get(
        python.refused_as, "debug build")
    assert word in checks["pitviper"]["text"]
    assert not [command for command in result.json["commands"] if "pitviper run" in command]
    if not python.perf_support:
        assert not result.json["commands"] and "JIT" not in checks["frames"]["text"]
