"""The files of names, as hostile surroundings see them: links laid in wait in /tmp, programs that
end without notice or fork, names that are no names, a disk that is full. `pitviper inspect` says of
each file whether it is whole."""
import errno
import os
import re
import shutil

import pytest

from .cli import pitviper
from .environments import with_wheel
from .interpreters import every_python
from .name_files import read_jitdump, read_perf_map
from .private_tmp import need_checkout_elsewhere, propagation
from .programs import Files, run, take_files, with_support

every_backend = pytest.mark.parametrize("backend", ["perf", "perf_jit"])
PATHS = {"perf": "/tmp/perf-{}.map", "perf_jit": "/tmp/jit-{}.dump"}

# Puts a link, or an old file, where the file of its own process will be.
LAY_IN_WAIT = """
import os, stat, pitviper
path = {path!r}.format(os.getpid())
{trap}
pitviper.activate_stack_trampoline({backend!r})
def named(): pass
named()
status = os.lstat(path)
print(stat.S_ISREG(status.st_mode), oct(stat.S_IMODE(status.st_mode)), status.st_nlink)
"""

MANY_FUNCTIONS = """
import os
for number in range(300):
    exec(f"def function_{{number}}(): pass\\nfunction_{{number}}()")
{end}
"""

FORK = """
import os
def only_in_the_parent(): pass
def in_both(): pass
def only_in_the_child(): pass
def after_the_fork(): pass
def forks():
    pid = os.fork()
    if pid == 0:
        only_in_the_child()
        in_both()
        os._exit(0)
    os.waitpid(pid, 0)
    return pid
only_in_the_parent()
in_both()
print(forks())
after_the_fork()
"""

ODD_NAMES = {
    "newline": "a\\nb",
    "carriage return": "a\\rb",
    "NUL": "a\\0b",
    "lone surrogate": "a\\udc80\\ud800b",
    "non-ASCII": "naïve_数_😀",
    "colons and blanks": "a: b :c  ",
    "100 KB": "x' * 100000 + 'y",
    "100 KB of surrogates": "\\udc80' * 100000 + 'y",
    "line ends of Unicode": "a\\u2028\\x85\\x0b\\x0cb",
}
# Calls a function of that name, from a file of that name, between two others.
ODD_FUNCTION = """
def template(): return 1
def before(): pass
def behind(): pass
odd = 'start_' + '{name}' + '_end'
names = dict(co_name=odd, co_filename=odd)
if hasattr(template.__code__, 'co_qualname'):
    names['co_qualname'] = odd
code = template.__code__.replace(**names)
before()
assert eval(code) == 1
behind()
"""


@pytest.fixture
def assert_whole(tmp_path):
    """Asserts that every file is there and whole, as inspect sees it."""
    def check(files, *backends):
        contents = {"perf": files.perf_map, "perf_jit": files.jitdump}
        for backend in backends:
            path = tmp_path / PATHS[backend].format(1).split("/")[-1]
            path.write_bytes(contents[backend])
            result = pitviper("inspect", "--json", path)
            assert (result.status, result.err, result.json["whole"]) == (0, "", True)
    return check


@every_backend
@every_python()
def test_the_file_is_for_its_user_only(python, backend):
    command = with_support("sh", "-c", 'umask 0; exec "$0" "$@"', python, "-c",
                           f"import os; print(oct(os.stat({PATHS[backend]!r}.format(os.getpid()))"
                           ".st_mode & 0o7777))", jit=backend == "perf_jit")
    assert run(*command).out == "0o600\n"


TRAPS = {
    "link": "os.symlink({victim!r}, path)",
    "dangling link": "os.symlink({victim!r} + '-missing', path)",
    "hard link": "os.link({victim!r}, path)",
    "old file": "open(path, 'w').write('old content\\n')",
    "pipe": "os.mkfifo(path)",
}


@pytest.mark.parametrize("trap", TRAPS)
@every_backend
@every_python()
def test_what_lies_in_its_place_is_replaced(python, backend, trap, recordings, assert_whole):
    victim = recordings / "victim"  # in /tmp, so that a hard link is possible
    victim.write_text("precious\n")
    code = LAY_IN_WAIT.format(path=PATHS[backend], backend=backend,
                              trap=TRAPS[trap].format(victim=str(victim)))
    ended = run(with_wheel(python), "-c", code)
    assert (ended.status, ended.out, ended.err) == (0, "True 0o600 1\n", "")
    assert victim.read_text() == "precious\n" and os.listdir(recordings) == ["victim"]
    assert "named" in ended.functions and "old content" not in ended.files.names
    assert_whole(ended.files, backend)


@every_backend
@every_python()
def test_a_folder_in_its_place_is_an_exception(python, backend):
    code = ("import os, pitviper\n"
            f"path = {PATHS[backend]!r}.format(os.getpid())\n"
            "os.mkdir(path)\n"
            f"try: pitviper.activate_stack_trampoline({backend!r})\n"
            "except OSError as error: print(type(error).__name__, error.errno)\n"
            "print(pitviper.is_stack_trampoline_active())\n"
            "os.rmdir(path)")
    ended = run(with_wheel(python), "-c", code)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == f"IsADirectoryError {errno.EISDIR}\nFalse\n"


@every_backend
@pytest.mark.parametrize("end, status", [("os._exit(5)", 5), ("os.kill(os.getpid(), 9)", -9),
                                         ("os.abort()", -6)], ids=["_exit", "SIGKILL", "abort"])
@every_python()
def test_a_sudden_end_loses_nothing(python, end, status, backend, assert_whole):
    ended = run(*with_support(python, "-c", MANY_FUNCTIONS.format(end=end),
                              jit=backend == "perf_jit"))
    assert ended.status == status
    assert {f"function_{number}" for number in range(300)} <= ended.functions
    assert_whole(ended.files, backend)


@every_backend
@every_python()
def test_a_forked_child_has_a_file_of_its_own(python, backend, assert_whole):
    ended = run(*with_support(python, "-c", FORK, jit=backend == "perf_jit"))
    assert (ended.status, ended.err) == (0, "")
    child = take_files(int(ended.out))
    assert child.kinds == {backend}
    # What it called, and what it was in when it was forked.
    assert {"only_in_the_child", "in_both", "forks", "<module>"} <= child.functions
    assert "only_in_the_parent" not in child.functions
    assert {"only_in_the_parent", "in_both", "forks", "after_the_fork"} <= ended.functions
    assert "only_in_the_child" not in ended.functions
    assert_whole(child, backend)
    assert_whole(ended.files, backend)


@pytest.mark.parametrize("kind", ODD_NAMES)
@every_backend
@every_python()
def test_every_name_gives_a_valid_entry(python, backend, kind, assert_whole):
    ended = run(*with_support(python, "-X", "utf8", "-c",
                              ODD_FUNCTION.format(name=ODD_NAMES[kind]), jit=backend == "perf_jit"))
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert_whole(ended.files, backend)
    names = ended.files.names
    position = names.index("py::before:<string>")
    assert names[position + 2] == "py::behind:<string>"
    assert re.fullmatch(r"py::start_.+_end:start_.+_end", names[position + 1])
    if backend == "perf":
        assert ended.files.perf_map.count(b"\n") == len(names)


@every_python()
def test_a_name_without_odd_characters_is_written_as_it_is(python):
    ended = run(*with_support(python, "-X", "utf8", "-c",
                              ODD_FUNCTION.format(name=ODD_NAMES["non-ASCII"])))
    assert "py::start_naïve_数_😀_end:start_naïve_数_😀_end" in ended.files.names


@every_python()
def test_a_jitdump_has_code_unwinding_and_lines_of_every_function(python, tmp_path):
    ended = run(*with_support(python, "-c", MANY_FUNCTIONS.format(end=""), jit=True))
    counts = read_jitdump(ended.files.jitdump).counts()
    assert counts["load"] >= 300
    assert counts["load"] == counts["unwinding_info"] == counts["debug_info"]
    path = tmp_path / "jit-1.dump"
    path.write_bytes(ended.files.jitdump)
    inspected = pitviper("inspect", "--json", path).json
    assert inspected["pid"] == ended.pid and inspected["clock"] == "monotonic"
    assert inspected["functions_with_unwinding"] == inspected["functions_with_lines"] == \
        inspected["functions"] == counts["load"]


@every_backend
@every_python()
def test_every_record_is_one_write(python, backend, recordings):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed: apt install strace")
    log = recordings / "strace.log"
    command = with_support(python, "-c", MANY_FUNCTIONS.format(end=""), jit=backend == "perf_jit")
    ended = run("strace", "-f", "-y", "-o", log,
                "-e", "trace=write,writev,pwrite64,pwritev,sendfile,ftruncate", *command)
    if "ptrace" in ended.err.lower():
        pytest.skip(f"strace may not trace here: {ended.err.strip().splitlines()[0]}")
    assert ended.status == 0, ended.err
    file_name = re.compile(PATHS[backend].format(r"(\d+)"))
    lines = log.read_text(errors="replace").splitlines()
    calls = [line for line in lines if file_name.search(line)]
    files = take_files(int(file_name.search(calls[0])[1]))
    assert all(re.match(r"\d+ +write\(", call) for call in calls)
    assert all(re.search(r", (\d+)\) += \1$", call) for call in calls), "a write was cut short"
    header = 1 if backend == "perf_jit" else 0
    assert len(files.names) >= 300 and len(calls) == len(files.names) + header


# As `sh -c SCRIPT MOUNT_OPTIONS PREPARE COMMAND...` in a mount namespace. First comes the program's
# output, then a line, then the map that it left.
IN_A_TMP = """
mount -t tmpfs -o "$0" tmpfs /tmp || exit 77
eval "$1"
shift
"$@"
status=$?
echo the map:
cat /tmp/perf-*.map 2>/dev/null
exit $status
"""
FILL = "dd if=/dev/zero of=/tmp/filling bs=4096 2>/dev/null"


def run_with_tmp(options, prepare, *command):
    """What came of it, and the map."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount another /tmp")
    need_checkout_elsewhere()
    ended = run("unshare", "--mount", "--propagation", propagation(), "sh", "-c", IN_A_TMP, options,
                prepare, *command)
    if ended.status == 77 or "unshare" in ended.err:
        pytest.skip(f"another /tmp cannot be mounted here: {ended.err.strip()}")
    out, perf_map = ended.out.split("the map:\n")
    return ended._replace(out=out), Files(perf_map.encode() or None, None)


PROGRAM = MANY_FUNCTIONS.format(end="print('ran'); raise SystemExit(3)")


@pytest.mark.parametrize("options, prepare, reason", [
    ("ro", "", os.strerror(errno.EROFS)),
    ("size=16k", FILL, os.strerror(errno.ENOSPC)),
], ids=["not writable", "full"])
@every_backend
@every_python()
def test_a_tmp_that_takes_nothing_is_said_once(python, backend, options, prepare, reason):
    ended, _ = run_with_tmp(options, prepare, *with_support(python, "-c", PROGRAM,
                                                            jit=backend == "perf_jit"))
    assert (ended.status, ended.out) == (3, "ran\n")
    assert ended.err.startswith("pitviper: ") and ended.err.count("\n") == 1
    assert "/tmp/" in ended.err and reason in ended.err


@every_backend
@every_python()
def test_a_tmp_without_execution_has_no_room_for_a_dump(python, backend):
    """perf finds a dump by an executable mapping of it. A map needs none."""
    ended, files = run_with_tmp("noexec", "", *with_support(python, "-c", PROGRAM,
                                                            jit=backend == "perf_jit"))
    assert (ended.status, ended.out) == (3, "ran\n")
    if backend == "perf":
        assert ended.err == "" and "function_299" in files.functions
    else:
        assert ended.err.startswith("pitviper: ") and ended.err.count("\n") == 1
        assert "/tmp/jit-" in ended.err and os.strerror(errno.EPERM) in ended.err


@every_backend
@every_python()
def test_a_tmp_that_fills_up_does_not_disturb_the_program(python, backend, assert_whole):
    ended, files = run_with_tmp("size=8k", "", *with_support(python, "-c", PROGRAM,
                                                             jit=backend == "perf_jit"))
    assert (ended.status, ended.out) == (3, "ran\n")
    assert ended.err.count("\n") <= 1
    if backend == "perf":
        assert 0 < len(read_perf_map(files.perf_map)) < 300
        assert_whole(files, "perf")


@every_backend
@every_python()
def test_the_file_has_the_number_that_its_process_knows(python, backend):
    code = ("import os; pid = os.getpid(); "
            f"print(pid < 10, os.path.exists({PATHS[backend]!r}.format(pid)))")
    ended, _ = run_with_tmp("size=1m", "", "unshare", "--pid", "--fork", "--kill-child",
                            *with_support(python, "-c", code, jit=backend == "perf_jit"))
    assert (ended.status, ended.out, ended.err) == (0, "True True\n", "")
