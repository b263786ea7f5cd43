"""Switching on and off: what it takes, what it answers, which wish wins.

CPython 3.13 and later have all of it themselves, so they are the oracle: each question is put to
the newest of them on this machine, to ours on every interpreter, and the answers are compared.
"""
import functools
import glob
import json
import os

import pytest

from .environments import with_wheel, without_wheel
from .interpreters import ask, every_python, found
from .programs import run, with_support

# Puts its arguments, as they would be written in a call, to MODULE.activate_stack_trampoline.
QUESTIONS = """
import json, sys
import {module}
answers = {{}}
for arguments in sys.argv[1:]:
    try:
        answer = repr(eval("{module}.activate_stack_trampoline(" + arguments + ")"))
    except Exception as error:
        answer = [type(error).__name__, str(error)]
    answers[arguments] = answer
print(json.dumps(answers))
"""
REFUSED = ["", "1", "None", "b'perf'", "'nope'", "'per\\0f'", "'\\0'", "''", "'Perf'", "'perf '",
           "'\\udc80'", "'ñandú'", "'perf', 'perf'", "'nope' * 1000", "[]", "object"]

# The life of it: states, answers, and that neither twice on nor twice off is an error.
LIFE = """
import {module} as module
state = module.is_stack_trampoline_active
print(state())
print(module.activate_stack_trampoline("{backend}"), state())
print(module.activate_stack_trampoline("{backend}"), state())
print(module.deactivate_stack_trampoline(), state())
print(module.deactivate_stack_trampoline(), state())
"""

# A function that is called in each state.
TWO_PARTS = """
import {module} as module
def before(): pass
def after(): pass
before()
{switch}
after()
"""

SAY_WHETHER_ACTIVE = "import sys; print(sys.is_stack_trampoline_active())"


@functools.lru_cache(maxsize=None)
def oracle():
    """The newest CPython with functions of its own, or a skip."""
    own = [python for python in found() if python.version >= (3, 13) and python.perf_support]
    if not own:
        pytest.skip("there is no CPython 3.13 or later on this machine to compare with")
    return own[-1]


@functools.lru_cache(maxsize=None)
def answers(python, module):
    ended = run(python, "-c", QUESTIONS.format(module=module), *REFUSED)
    assert ended.status == 0, ended.err
    return json.loads(ended.out.replace("pitviper._pitviper.", "sys."))


@pytest.mark.parametrize("arguments", REFUSED, ids=ascii)
@every_python()
def test_our_function_refuses_in_the_same_words(python, arguments):
    assert answers(with_wheel(python), "pitviper")[arguments] == answers(oracle(), "sys")[arguments]


@pytest.mark.parametrize("arguments", REFUSED, ids=ascii)
@every_python()
def test_the_function_of_sys_refuses_in_the_same_words(python, arguments):
    assert answers(with_wheel(python), "sys")[arguments] == answers(oracle(), "sys")[arguments]


@pytest.mark.parametrize("call", ["activate_stack_trampoline(backend='perf')",
                                  "activate_stack_trampoline()",
                                  "deactivate_stack_trampoline(1)",
                                  "is_stack_trampoline_active(1)"])
@every_python()
def test_a_wrong_first_call_gets_the_same_exception(python, call):
    code = f"import sys\ntry: sys.{call}\nexcept TypeError as error: print(error)"
    assert run(with_wheel(python), "-c", code).out == run(oracle(), "-c", code).out


@pytest.mark.parametrize("backend", ["perf", "perf_jit"])
@every_python()
def test_our_functions_answer_the_same(python, backend):
    ended = run(with_wheel(python), "-c", LIFE.format(module="pitviper", backend=backend))
    assert ended.out == run(oracle(), "-c", LIFE.format(module="sys", backend="perf")).out
    assert (ended.status, ended.err, ended.kinds) == (0, "", {backend})


@every_python()
def test_the_functions_of_sys_answer_the_same(python):
    life = LIFE.format(module="sys", backend="perf")
    ended = run(with_wheel(python), "-c", life)
    assert ended.out == run(oracle(), "-c", life).out
    assert (ended.status, ended.err, ended.kinds) == (0, "", {"perf"})


@every_python()
def test_switching_from_one_backend_to_the_other(python):
    switch = "module.activate_stack_trampoline('perf_jit')"
    ended = run(with_wheel(python), "-X", "pitviper=perf", "-c",
                TWO_PARTS.format(module="pitviper", switch=switch))
    assert (ended.status, ended.err, ended.kinds) == (0, "", {"perf", "perf_jit"})
    in_map = ended.files._replace(jitdump=None).functions
    in_dump = ended.files._replace(perf_map=None).functions
    assert "before" in in_map and "after" not in in_map
    assert "after" in in_dump and "before" not in in_dump


@pytest.mark.parametrize("option", ["perf", "pitviper=perf"])
@every_python()
def test_a_function_wins_over_an_option(python, option):
    module = option.split("=")[0].replace("perf", "sys")
    ended = run(with_wheel(python), "-X", option, "-c",
                TWO_PARTS.format(module=module, switch="module.deactivate_stack_trampoline()"))
    assert (ended.status, ended.err) == (0, "")
    assert "before" in ended.functions and "after" not in ended.functions


@every_python()
def test_our_option_wins_over_our_variable(python):
    ended = run(with_wheel(python), "-X", "pitviper=perf_jit", "-c", "", PITVIPER="perf")
    assert ended.kinds == {"perf_jit"}


@pytest.mark.parametrize("options", [[], ["-I"], ["-E"]], ids=" ".join)
@every_python()
def test_our_variable_reaches_isolated_interpreters(python, options):
    assert run(with_wheel(python), *options, "-c", "", PITVIPER="perf").kinds == {"perf"}


WISHES = [
    (["-X", "perf=0"], {}),
    (["-X", "perf=yes"], {}),
    (["-X", "perf_jit=0"], {}),
    (["-X", "perf", "-X", "perf_jit"], {}),
    (["-X", "perf_jit", "-X", "perf"], {}),
    (["-X", "perf_jit"], {"PYTHONPERFSUPPORT": "1"}),
    (["-X", "perf"], {"PYTHONPERFSUPPORT": "0"}),
    ([], {"PYTHONPERFSUPPORT": "1", "PYTHON_PERF_JIT_SUPPORT": "1"}),
    ([], {"PYTHONPERFSUPPORT": "1", "PYTHON_PERF_JIT_SUPPORT": "0"}),
    *(([], {"PYTHONPERFSUPPORT": value})
      for value in ("0", "", "yes", "1x", "2", "-1", "+1", " 1", "1 ", "00", "0x1", "4294967296")),
    *(([], {"PYTHON_PERF_JIT_SUPPORT": value}) for value in ("0", "", "yes", "2")),
    (["-I"], {"PYTHONPERFSUPPORT": "1"}),
    (["-E"], {"PYTHONPERFSUPPORT": "1"}),
    (["-I"], {"PYTHON_PERF_JIT_SUPPORT": "1"}),
    (["-I", "-X", "perf"], {}),
]


def wish_name(wish):
    options, variables = wish
    return " ".join([*options, *map("=".join, variables.items())])


@functools.lru_cache(maxsize=None)
def granted_by_oracle(number):
    options, variables = WISHES[number]
    return granted(oracle(), options, variables)


def granted(python, options, variables):
    ended = run(python, *options, "-c", SAY_WHETHER_ACTIVE, **variables)
    return (ended.status, ended.out, ended.err), ended.kinds


@pytest.mark.parametrize("number", range(len(WISHES)), ids=lambda number: wish_name(WISHES[number]))
@every_python()
def test_a_wish_is_granted_as_by_cpython(python, number):
    """3.12 opens its own map for -X perf before anything of ours runs: that one stays."""
    options, variables = WISHES[number]
    answer, kinds = granted(with_wheel(python), options, variables)
    expected_answer, expected_kinds = granted_by_oracle(number)
    early = run(python, *options, "-c", "", **variables).kinds
    assert answer == expected_answer
    assert kinds == expected_kinds | early


@every_python()
def test_the_option_wins_over_the_variable_for_the_other_backend(python):
    """As the documents have it; CPython 3.13 and later take perf_jit here."""
    if python.version >= (3, 13):
        pytest.skip("from 3.13 on the option and the variable are CPython's own")
    variables = {"PYTHON_PERF_JIT_SUPPORT": "1"}
    assert run(with_wheel(python), "-X", "perf", "-c", "", **variables).kinds == {"perf"}


@pytest.mark.parametrize("value", ["nope", "perf_jitt", "1", "two\nlines", "x" * 10000],
                         ids=lambda value: ascii(value)[:12])
@pytest.mark.parametrize("source", ["variable", "option"])
@every_python()
def test_a_wrong_wish_gets_one_line_and_the_program_runs_on(python, source, value):
    options = ["-X", f"pitviper={value}"] if source == "option" else []
    variables = {"PITVIPER": value} if source == "variable" else {}
    ended = run(with_wheel(python), *options, "-c", "print('ran')", **variables)
    assert (ended.status, ended.out, ended.kinds) == (0, "ran\n", set())
    assert ended.err.startswith("pitviper: ") and ended.err.count("\n") == 1
    assert value[:3] in ended.err and "perf_jit" in ended.err


@every_python()
def test_a_wrong_wish_is_said_once_with_package_and_preload(python):
    command = with_support("env", "PITVIPER=nope", with_wheel(python), "-c", "print('ran')")
    ended = run(*command)
    assert (ended.status, ended.out, ended.kinds) == (0, "ran\n", set())
    assert ended.err.count("\n") == 1


@every_python()
def test_package_and_preload_work_together(python):
    code = "import pitviper as our; print(our.is_stack_trampoline_active(), our.status()['lost'])"
    ended = run(*with_support(with_wheel(python), "-c", code))
    assert (ended.status, ended.out, ended.err) == (0, "True 0\n", "")
    assert ended.kinds == {"perf"}


OUR_NAMES = {"_pitviper", "activate_stack_trampoline", "deactivate_stack_trampoline",
             "is_stack_trampoline_active"}


def state_of(python, options):
    """What its start leaves in an interpreter: the modules, and the names in sys."""
    ended = run(python, *options, "-c", "import sys; print(*sys.modules); print(*dir(sys))")
    assert (ended.status, ended.err, ended.kinds) == (0, "", set())
    return [set(line.split()) for line in ended.out.splitlines()]


@pytest.mark.parametrize("options", [[], ["-I"], ["-S"], ["-s"], ["-E"], ["-I", "-S"]],
                         ids=lambda options: " ".join(options) or "none")
@every_python()
def test_support_that_is_off_leaves_the_interpreter_alone(python, options):
    modules, names = state_of(with_wheel(python), options)
    modules_without, names_without = state_of(without_wheel(python), options)
    assert modules == modules_without
    assert names - names_without <= (OUR_NAMES if python.version < (3, 13) else set())


@pytest.mark.parametrize("options", [["-I"], ["-I", "-X", "pitviper=perf"]], ids=" ".join)
@every_python()
def test_the_package_can_be_imported_by_an_isolated_interpreter(python, options):
    code = "import pitviper; pitviper.activate_stack_trampoline('perf'); print('on')"
    ended = run(with_wheel(python), *options, "-c", code)
    assert (ended.status, ended.out, ended.err, ended.kinds) == (0, "on\n", "", {"perf"})


@pytest.mark.parametrize("command, out, status", [
    (["/bin/true"], "", 0),
    (["/bin/false"], "", 1),
    (["/bin/sh", "-c", "echo hello; exit 3"], "hello\n", 3),
], ids=["true", "false", "sh"])
def test_programs_without_python_do_not_notice(command, out, status):
    ended = run(*with_support(*command))
    assert (ended.status, ended.out, ended.err, ended.kinds) == (status, out, "", set())


def older_pythons():
    """Interpreters before 3.9, which are not supported."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for path in sorted(glob.glob(os.path.join(glob.escape(root), "versions/*/bin/python"))):
        if ask(path) is None:
            yield path


@pytest.mark.parametrize("path", list(older_pythons()))
def test_an_interpreter_that_is_not_supported_runs_on(path):
    ended = run(*with_support(path, "-c", "print('ran')"))
    assert (ended.status, ended.out, ended.kinds) == (0, "ran\n", set())
    assert not ended.err or ended.err.startswith("pitviper: perf trampoline not available: ")
    assert ended.err.count("\n") <= 1
