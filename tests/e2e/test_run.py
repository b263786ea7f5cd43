"""pitviper run: the command becomes what it would have been, with names for its Python functions.
Nothing else about it changes: its status, its streams, its environment."""
import json
import os
import signal
import sys

import pytest

from ..builds import BUILD, built
from .command import words
from .environments import without_wheel
from .interpreters import every_python
from .programs import run, take_files, with_support

# Prints its own number, then runs what is left of the command line below a new interpreter.
GENERATIONS = """
import os, subprocess, sys
def generation_{0}(): pass
generation_{0}()
print(os.getpid(), flush=True)
"""
CHILD = "subprocess.run([sys.executable, *{0!r}], check=True)"

OURS = {"LD_PRELOAD", "PITVIPER"}


def pitviper_run(*arguments, **options):
    """The program itself, for command lines that with_support() would not write."""
    return run(built(BUILD, "pitviper"), "run", *arguments, **options)


def complaint(ended):
    """The one line on stderr."""
    assert ended.err.count("\n") == 1 and ended.err.endswith("\n"), ended.err
    return ended.err


@pytest.mark.parametrize("status", [0, 3, 255])
@every_python()
def test_the_status_is_that_of_the_command(python, status):
    ended = run(*with_support(python, "-c", f"raise SystemExit({status})"))
    assert (ended.status, ended.out, ended.err) == (status, "", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
@every_python()
def test_a_signal_ends_the_command_as_ever(python, number):
    ended = run(*with_support(python, "-c", f"import os; os.kill(os.getpid(), {int(number)})"))
    assert ended.status == -number
    in_a_shell = run("sh", "-c", '"$@"; echo $?', "sh",
                     *with_support("sh", "-c", f"kill -{int(number)} $$"))
    assert in_a_shell.out == f"{128 + number}\n"


@pytest.mark.parametrize("command", ["no-such-program", "./no-such-program", "/no/such/program"])
def test_a_command_that_is_not_there(command, tmp_path):
    ended = pitviper_run("--", command, cwd=tmp_path)
    assert (ended.status, ended.out) == (127, "")
    assert command in complaint(ended)


def test_a_command_that_cannot_be_run(tmp_path):
    (tmp_path / "text").write_text("text\n")
    for command in ("./text", "/"):
        ended = pitviper_run("--", command, cwd=tmp_path)
        assert (ended.status, ended.out) == (126, "")
        assert command in complaint(ended)


@pytest.mark.parametrize("arguments, hint", [
    ([], "pitviper help run"),
    (["--"], "pitviper help run"),
    (["--jti", "--", "true"], "--jit"),
    (["-z", "true"], "pitviper help run"),
], ids=["nothing", "no command", "misspelt", "unknown"])
def test_a_wrong_command_line_gets_a_hint(arguments, hint):
    ended = pitviper_run(*arguments)
    assert (ended.status, ended.out) == (2, "")
    assert hint in complaint(ended)


@pytest.mark.parametrize("separator", [[], ["--"]], ids=["without --", "with --"])
def test_options_behind_the_command_are_its_own(separator):
    ended = pitviper_run(*separator, "echo", "--jit", "--help", "--", "-x")
    assert (ended.status, ended.out) == (0, "--jit --help -- -x\n")


@pytest.mark.parametrize("options, backend", [([], "perf"), (["--jit"], "perf_jit")])
@every_python()
def test_the_option_chooses_the_file(python, options, backend):
    ended = pitviper_run(*options, python, "-c", "def function(): pass\nfunction()")
    assert (ended.status, ended.out, ended.err, ended.kinds) == (0, "", "", {backend})
    assert {"<module>", "function"} <= ended.functions


@pytest.mark.parametrize("options", [["-I"], ["-S"], ["-E"], ["-I", "-S"], ["-IS", "-B", "-O"]],
                         ids=" ".join)
@every_python()
def test_isolated_interpreters(python, options):
    ended = run(*with_support(python, *options, "-c", "def function(): pass\nfunction()"))
    assert (ended.status, ended.err, ended.kinds) == (0, "", {"perf"})
    assert "function" in ended.functions


@every_python()
def test_a_virtual_environment(python):
    code = "import sys\ndef function(): pass\nfunction(); print(sys.prefix)"
    environment = without_wheel(python)
    ended = run(*with_support(environment, "-c", code))
    assert (ended.status, ended.out, ended.err) == (0, f"{environment.folder}\n", "")
    assert "function" in ended.functions


@every_python()
def test_a_script_with_a_first_line(python, tmp_path):
    script = tmp_path / "server"
    script.write_text(f"#!{python.executable}\ndef serve(): pass\nserve()\n")
    script.chmod(0o755)
    ended = run(*with_support("./server"), cwd=tmp_path)
    assert (ended.status, ended.err) == (0, "")
    assert "serve" in ended.functions


@every_python()
def test_a_subprocess_of_a_subprocess(python):
    code = ""
    for number in (3, 2, 1):
        child = CHILD.format(["-c", code]) if code else ""
        code = GENERATIONS.format(number) + child
    ended = run(*with_support(python, "-c", code))
    assert (ended.status, ended.err) == (0, "")
    pids = [int(line) for line in ended.out.split()]
    assert pids[0] == ended.pid and len(set(pids)) == 3
    generations = [ended.files, *map(take_files, pids[1:])]
    for number, files in enumerate(generations, 1):
        own = {name for name in files.functions if name.startswith("generation_")}
        assert own == {f"generation_{number}"}


@every_python()
def test_a_command_below_a_shell(python):
    ended = run(*with_support("sh", "-c", '"$0" -c "import os; print(os.getpid())"; true', python))
    assert take_files(int(ended.out)).kinds == {"perf"}


def test_a_command_without_the_environment_simply_runs():
    ended = run(*with_support("env", "-i", sys.executable, "-c", "print('ran')"))
    assert (ended.status, ended.out, ended.err, ended.kinds) == (0, "ran\n", "", set())


@every_python()
def test_what_was_preloaded_before_stays(python):
    other = other_library()
    code = ("import os; print(os.environ['LD_PRELOAD']);"
            f"print({os.path.basename(other)!r} in open('/proc/self/maps').read())")
    ended = run(*with_support(python, "-c", code), LD_PRELOAD=other)
    preload, is_mapped = ended.out.splitlines()
    assert preload.split(":")[1:] == [other] and is_mapped == "True"
    assert ended.kinds == {"perf"}


def other_library():
    """One that no Python asks for by itself."""
    for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"):
        path = f"{folder}/libBrokenLocale.so.1"
        if os.path.exists(path):
            return path
    pytest.skip("libBrokenLocale.so.1, which comes with glibc, is not on this machine")


COPY = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
TEXT = "".join(f"line {number}\0\r\n" for number in range(20000))


@every_python()
def test_the_streams_are_untouched(python):
    plain = run(python, "-c", COPY, stdin=TEXT)
    ended = run(*with_support(python, "-c", COPY), stdin=TEXT)
    assert (ended.status, ended.out, ended.err) == (plain.status, plain.out, plain.err)
    assert ended.out == TEXT


@every_python()
def test_a_traceback_reads_the_same(python):
    code = "def outer(): inner()\ndef inner(): 1 / 0\nouter()"
    plain, ended = run(python, "-c", code), run(*with_support(python, "-c", code))
    assert (ended.status, ended.out, ended.err) == (plain.status, plain.out, plain.err)
    assert "ZeroDivisionError" in ended.err


def test_the_environment_is_otherwise_the_same():
    report = words("env", "-0")
    plain, ended = (dict(line.split("=", 1) for line in run(*command).out.split("\0") if line)
                    for command in (report, with_support(*report)))
    assert set(ended) - set(plain) == OURS
    assert {name: value for name, value in ended.items() if name not in OURS} == plain


@every_python()
def test_the_command_gets_the_same_descriptors_and_arguments(python):
    code = ("import json, os, signal, sys; "
            "print(json.dumps([sys.argv, sys.flags[:], os.getcwd(), os.umask(0),"
            " [str(signal.getsignal(n)) for n in range(1, 32)],"
            " [n for n in range(100) if os.path.exists(f'/proc/self/fd/{n}')]]))")
    plain, ended = run(python, "-c", code, "a b", "é"), run(*with_support(python, "-c", code,
                                                                       "a b", "é"))
    assert json.loads(ended.out) == json.loads(plain.out)


def test_a_library_that_is_not_there_is_said(tmp_path):
    ended = pitviper_run("--", "true", PITVIPER_LIBRARY=str(tmp_path / "missing.so"))
    assert (ended.status, ended.out) == (1, "")
    assert "missing.so" in complaint(ended)
