"""The examples of the documents, word for word, on every interpreter with the wheel installed: the
environment variables, the options, the functions of sys. On 3.13 and later these are CPython's own
and stay so; pitviper's names for the same things work everywhere."""
from typing import Dict, List, NamedTuple

import pytest

from .environments import with_wheel
from .interpreters import every_python
from .perf import ENVIRONMENT
from .profiles import chain
from .programs import run
from .targets import FOO_BAR_BAZ, MY_SCRIPT

WHOLE_CHAIN = chain("<module>", "baz", "bar", "foo")
DOCUMENTED = {f"py::{function}:{MY_SCRIPT}" for function in ("<module>", "baz", "bar", "foo")}
SECONDS = 0.5

# The last example of the documents, with something to do for each function.
EXAMPLE = """
import sys, time
{imports}

def spin():
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        sum(range(10000))

def do_profiled_stuff():
    spin()

def other_spin():
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        sum(range(10000))

def non_profiled_stuff():
    other_spin()

{module}.activate_stack_trampoline("{backend}")
do_profiled_stuff()
{module}.deactivate_stack_trampoline()

non_profiled_stuff()
"""


class Form(NamedTuple):
    """One way to switch the support on at the start."""
    backend: str
    options: List[str]
    variables: Dict[str, str]

    def __str__(self):
        return " ".join([*self.options, *map("=".join, self.variables.items())])


DOCUMENTS_FORMS = [
    Form("perf", [], {"PYTHONPERFSUPPORT": "1"}),
    Form("perf", ["-X", "perf"], {}),
    Form("perf_jit", [], {"PYTHON_PERF_JIT_SUPPORT": "1"}),
    Form("perf_jit", ["-X", "perf_jit"], {}),
    Form("perf_jit", ["-Xperf_jit"], {}),
]
OUR_FORMS = [
    Form("perf", [], {"PITVIPER": "perf"}),
    Form("perf", ["-X", "pitviper=perf"], {}),
    Form("perf_jit", [], {"PITVIPER": "perf_jit"}),
    Form("perf_jit", ["-X", "pitviper=perf_jit"], {}),
]


def example(folder, module, backend, seconds=0):
    path = folder / "example.py"
    path.write_text(EXAMPLE.format(module=module, backend=backend, seconds=seconds,
                                   imports="import pitviper" if module == "pitviper" else ""))
    return path


def sys_knows(python, backend):
    """3.13 got perf_jit as an option first; its function learned it in 3.13.10 and 3.14.1."""
    own = python.version >= (3, 13)
    return not own or backend == "perf" or python.version >= (3, 14, 1) or \
        (3, 13, 10) <= python.version < (3, 14)


@pytest.mark.parametrize("form", DOCUMENTS_FORMS + OUR_FORMS, ids=str)
@every_python()
def test_every_form_names_the_functions_and_prints_nothing(python, form):
    ended = run(with_wheel(python), *form.options, MY_SCRIPT, **form.variables)
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert ended.kinds == {form.backend}
    assert DOCUMENTED <= set(ended.files.names)


@pytest.mark.parametrize("backend", ["perf", "perf_jit"])
@pytest.mark.parametrize("module", ["sys", "pitviper"])
@every_python()
def test_the_functions_name_what_runs_between_them(python, module, backend, tmp_path):
    if module == "sys" and not sys_knows(python, backend):
        pytest.skip(f"CPython {python.label} has its own sys function, which takes no {backend}")
    ended = run(with_wheel(python), example(tmp_path, module, backend))
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert ended.kinds == {backend}
    assert {"do_profiled_stuff", "spin"} <= ended.functions
    assert not {"non_profiled_stuff", "other_spin"} & ended.functions


@every_python()
def test_without_any_form_nothing_is_named(python):
    ended = run(with_wheel(python), MY_SCRIPT)
    assert (ended.status, ended.out, ended.err, ended.kinds) == (0, "", "", set())


@pytest.mark.parametrize("form", DOCUMENTS_FORMS, ids=str)
@every_python(at_least=(3, 13))
def test_from_3_13_on_the_documents_forms_are_cpythons_own(python, form):
    code = "import sys; print(*sorted(name for name in sys.modules if 'pitviper' in name))"
    ended = run(with_wheel(python), *form.options, "-c", code, **form.variables)
    assert (ended.out, ended.kinds) == ("\n", {form.backend})


def profile_of(recording):
    return recording.inject().profile()


def assert_shows_the_chain(profile):
    assert profile.while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN) >= 0.97


@every_python()
def test_the_example_with_the_variable_in_perf(python, perf, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "PYTHON_PERF_JIT_SUPPORT", "1")
    assert_shows_the_chain(profile_of(perf.record(
        with_wheel(python), FOO_BAR_BAZ, SECONDS, call_graph="dwarf", clock="mono")))


@every_python()
def test_the_example_with_the_option_in_perf(python, perf):
    assert_shows_the_chain(profile_of(perf.record(
        with_wheel(python), "-Xperf_jit", FOO_BAR_BAZ, SECONDS, call_graph="dwarf", clock="mono")))


@every_python()
def test_the_example_with_the_functions_in_perf(python, perf):
    module = "sys" if sys_knows(python, "perf_jit") else "pitviper"
    script = example(perf.folder, module, "perf_jit", SECONDS)
    profile = profile_of(perf.record(with_wheel(python), script, call_graph="dwarf", clock="mono"))
    profiled = profile.while_running(script, at_least=0.4)
    assert profiled.share_of(chain("do_profiled_stuff", "spin")) >= 0.97
    # The second half of the time was not profiled.
    assert len(profile.samples) >= 1.7 * len(profiled.samples)
    assert profile.share_of(chain("non_profiled_stuff")) == 0
    assert profile.share_of(chain("other_spin")) == 0


@pytest.mark.parametrize("option", ["perf", "pitviper=perf"])
@every_python(frame_pointers=True)
def test_the_example_with_frame_pointers(python, option, perf):
    recording = perf.record(with_wheel(python), "-X", option, FOO_BAR_BAZ, SECONDS, call_graph="fp")
    assert_shows_the_chain(recording.profile())


@every_python()
def test_the_example_of_samply(python, samply):
    """Trampolines of CPython 3.12 and of 3.13 before 3.13.6 have no frame pointer for samply."""
    own_is_blind = (3, 12) <= python.version < (3, 13, 6)
    variable = "PITVIPER=perf" if own_is_blind else "PYTHONPERFSUPPORT=1"
    assert_shows_the_chain(samply.record(variable, with_wheel(python), FOO_BAR_BAZ, SECONDS))
