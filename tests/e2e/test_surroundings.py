"""Programs in narrow or odd surroundings: sandboxes, limits, somebody else's files in /tmp, static
and setuid programs, programs that embed Python. They run as without us; where there can be no names,
one line says so."""
import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from ..builds import CHECKOUT
from .environments import with_wheel
from .interpreters import every_python
from .name_files import perf_map_of, read_perf_map
from .private_tmp import in_private_tmp, obstacle
from .programs import run, with_support
from .unprivileged import need_open_checkout

TARGETS = CHECKOUT / "tests" / "targets"
DENY = [sys.executable, TARGETS / "deny_syscalls.py"]
NOBODY = 65534

every_backend = pytest.mark.parametrize("backend", ["perf", "perf_jit"])

MANY_FUNCTIONS = """
import sys
sys.path.insert(0, {targets!r})
functions = []
for number in range(2000):
    exec(f"def function_{{number}}(): return {{number}}")
    functions.append(globals()[f"function_{{number}}"])
{before}
print(sum(function() for function in functions))
raise SystemExit(3)
"""


def many_functions(before=""):
    return MANY_FUNCTIONS.format(targets=str(TARGETS), before=before)


RESULT = (3, "1999000\n")


def supported(python, code, backend="perf"):
    return with_support(python, "-c", code, jit=backend == "perf_jit")


# --- sandboxes -----------------------------------------------------------------------------------

@every_backend
@every_python()
def test_no_executable_memory_is_said_once(python, backend):
    ended = run(*DENY, "executable_memory", *supported(python, many_functions(), backend))
    assert (ended.status, ended.out, ended.kinds) == (*RESULT, set())
    assert ended.err == ("pitviper: perf trampoline not available: "
                         "the system gives this process no executable memory\n")


@every_python()
def test_no_executable_memory_is_an_exception(python):
    code = ("import pitviper\ntry: pitviper.activate_stack_trampoline('perf')\n"
            "except ValueError as error: print(error)\n"
            "print(pitviper.is_stack_trampoline_active())")
    ended = run(*DENY, "executable_memory", with_wheel(python), "-c", code)
    assert (ended.status, ended.err, ended.kinds) == (0, "", set())
    assert ended.out == ("perf trampoline not available: the system gives this process no "
                         "executable memory\nFalse\n")


@every_backend
@every_python()
def test_a_sandbox_without_fallocate_and_memfd_changes_nothing(python, backend):
    ended = run(*DENY, "memfd,fallocate", *supported(python, many_functions(), backend))
    assert (ended.status, ended.out, ended.err, ended.kinds) == (*RESULT, "", {backend})
    assert {f"function_{number}" for number in range(2000)} <= ended.functions


@every_backend
@every_python()
def test_a_program_that_locks_itself_in_goes_on(python, backend):
    """What has no trampoline then gets none; the rest keeps its own."""
    pytest.importorskip("ctypes")
    code = many_functions("import deny_syscalls\n"
                          "deny_syscalls.deny(['executable_memory', 'fallocate'])")
    ended = run(*supported(python, code, backend))
    assert (ended.status, ended.out, ended.err) == (*RESULT, "")
    assert "<module>" in ended.functions and "function_1999" not in ended.functions


# --- limits --------------------------------------------------------------------------------------

# What the interpreter itself needs fits into the holes that are left; more trampolines do not.
LIMIT_MEMORY = """
import resource
spare = [bytes(size) for size in range(1, 1000, 16) for _ in range(1000)]
del spare[::2], spare[::3]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 65536, resource.RLIM_INFINITY))
"""
LIMIT_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes}, resource.RLIM_INFINITY))
"""


@every_backend
@every_python()
def test_memory_that_has_come_to_its_limit(python, backend):
    ended = run(*supported(python, many_functions(LIMIT_MEMORY), backend))
    assert (ended.status, ended.out, ended.err) == (*RESULT, "")
    assert "<module>" in ended.functions and "function_1999" not in ended.functions


@every_python()
def test_a_limit_on_files_from_the_start(python):
    """Whoever goes beyond it gets a signal. A program that wants to see it is not ended by us."""
    code = many_functions("import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)")
    ended = run("prlimit", "--fsize=5000", *supported(python, code))
    assert (ended.status, ended.out, ended.err) == (*RESULT, "")
    assert 4000 < len(ended.files.perf_map) <= 5000 and read_perf_map(ended.files.perf_map)


@pytest.mark.parametrize("limit", [0, 20000])
@every_backend
@every_python()
def test_a_limit_on_files_that_comes_later(python, backend, limit):
    ended = run(*supported(python, many_functions(LIMIT_FILES.format(bytes=limit)), backend))
    assert (ended.status, ended.out, ended.err) == (*RESULT, "")
    assert "<module>" in ended.functions and "function_1999" not in ended.functions


# --- files ---------------------------------------------------------------------------------------

CLOSE_ALL = """
import os, tempfile
os.closerange(3, 70000)
mine = [tempfile.TemporaryFile() for _ in range(300)]
"""


@every_backend
@every_python()
def test_a_program_that_closes_all_descriptors(python, backend):
    code = many_functions(CLOSE_ALL).replace(
        "raise", "assert not any(os.fstat(file.fileno()).st_size for file in mine)\nraise")
    ended = run(*supported(python, code, backend))
    assert (ended.status, ended.out, ended.err, ended.kinds) == (*RESULT, "", {backend})
    assert {f"function_{number}" for number in range(2000)} <= ended.functions


@every_python()
def test_the_file_of_another_user_stays(python, recordings):
    """In a /tmp where only the owner of a file may remove it. Root may by CAP_FOWNER; without that
    it is a user like others."""
    if obstacle() or os.geteuid() != 0:
        pytest.skip(obstacle() or "only root can make files of another user")
    tmp = recordings / "tmp"
    tmp.mkdir()
    os.chown(tmp, NOBODY, NOBODY)
    tmp.chmod(0o1777)
    script = 'echo theirs > /tmp/perf-$$.map; chown 65534 /tmp/perf-$$.map; exec "$@"'
    ended = run(*in_private_tmp(tmp, "sh", "-c", script, "sh", "setpriv",
                                "--bounding-set=-fowner", "--inh-caps=-fowner",
                                *supported(python, many_functions())))
    assert (ended.status, ended.out) == RESULT
    assert ended.err.count("\n") == 1 and ended.err.startswith("pitviper: ")
    assert os.strerror(errno.EPERM) in ended.err
    assert (tmp / perf_map_of(ended.pid).name).read_text() == "theirs\n"


# --- other programs ------------------------------------------------------------------------------

def test_a_static_program(compiled):
    program = compiled(TARGETS / "privileges.c", "-static")
    ended = run(*with_support(program))
    assert (ended.status, ended.out, ended.err) == (4, "ordinary, alone\n", "")


def test_a_dynamic_program_is_what_ours_is_loaded_into(compiled):
    """So that the other two say something."""
    assert run(*with_support(compiled(TARGETS / "privileges.c"))).out == "ordinary, ours\n"


def test_a_setuid_program(compiled):
    if os.geteuid() != 0:
        pytest.skip("only root can make a program of root's")
    program = compiled(TARGETS / "privileges.c")
    program.parent.chmod(0o755)
    program.chmod(0o4755)
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    need_open_checkout()
    plain = run(*as_nobody, program)
    if plain.out != "secure, alone\n":
        pytest.skip("setuid has no effect here (mounted with nosuid?)")
    ended = run(*as_nobody, *with_support(program))
    assert (ended.status, ended.out, ended.err) == (4, plain.out, plain.err)
    program.chmod(stat.S_IRWXU)


# --- embedding -----------------------------------------------------------------------------------

FIND_LIBRARY = """
import os, sys, sysconfig
name = sysconfig.get_config_var("INSTSONAME") or ""
folders = [sysconfig.get_config_var("LIBDIR"), os.path.join(
    sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("MULTIARCH") or "")]
names = [name, "libpython%d.%d.so.1.0" % sys.version_info[:2]]
print(*[path for folder in folders for path in (os.path.join(folder, each) for each in names)
        if ".so" in path and os.path.exists(path)][:1])
print(sys.base_prefix)
"""
ROUNDS = 4
TEXT = """
def known(): return 1
class Known:
    def __init__(self): self.value = known()
def generator():
    yield from (Known() for _ in range(100))
list(generator())
"""


@pytest.fixture
def embedded(compiled):
    """Runs a text in a program that embeds an interpreter, several times in one process."""
    def command(python, text):
        library, home = run(python, "-c", FIND_LIBRARY).out.splitlines()
        if not library:
            pytest.skip("this interpreter has no shared library to link with")
        program = compiled(TARGETS / "embed.c", library, f"-Wl,-rpath,{Path(library).parent}")
        return ["env", f"PYTHONHOME={home}", program, ROUNDS, text]
    return command


def assert_named_each_time(ended):
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == "".join(f"round {number}: 0\n" for number in range(ROUNDS))
    for function in ("known", "generator"):
        assert ended.files.names.count(f"py::{function}:<string>") == ROUNDS


@pytest.mark.parametrize("variables", [{}, {"PYTHONMALLOC": "debug"}], ids=["", "debug"])
@every_backend
@every_python()
def test_python_that_is_started_again(python, backend, variables, embedded):
    command = with_support(*embedded(python, TEXT), jit=backend == "perf_jit")
    assert_named_each_time(run(*command, **variables))


@every_python()
def test_python_that_is_started_again_and_switches_itself(python, embedded):
    packages = next(with_wheel(python).folder.glob("lib/py*3*/site-packages"))
    text = ("import sys\nsys.path.append({!r})\nimport pitviper\n"
            "pitviper.activate_stack_trampoline('perf')\n").format(str(packages)) + TEXT
    assert_named_each_time(run(*embedded(python, text)))


@pytest.mark.parametrize("options, variables", [
    (["-X", "dev"], {}), ([], {"PYTHONMALLOC": "debug"}), ([], {"PYTHONMALLOC": "malloc_debug"}),
    ([], {"PYTHONMALLOC": "malloc"}), (["-X", "tracemalloc"], {}),
], ids=str)
@every_python()
def test_every_allocator(python, options, variables):
    command = with_support(python, *options, "-c", many_functions())
    ended = run(*command, **variables)
    assert (ended.status, ended.out, ended.err) == (*RESULT, "")
    assert "function_1999" in ended.functions
