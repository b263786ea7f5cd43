"""pitviper doctor: what it says of an interpreter is true, and the commands it recommends show the
chain. They are run as they stand, but for the script's name and for samply's browser."""
import functools
import os
import subprocess

import pytest

from ..builds import BUILD, built
from . import perf as perf_module
from .cli import pitviper
from .command import words
from .environments import with_wheel
from .interpreters import every_python
from .perf import ENVIRONMENT, Recording
from .profiles import chain
from .programs import run
from .targets import FOO_BAR_BAZ

WHOLE_CHAIN = chain("<module>", "baz", "bar", "foo")
SECONDS = 0.15  # at the 9999 Hz that the documents recommend
TIME_LIMIT_S = 120


@functools.lru_cache(maxsize=None)
def doctor(python):
    return pitviper("doctor", "--json", python)


def levels(result):
    return {check["topic"]: check["level"] for check in result.json["checks"]}


@every_python()
def test_it_knows_the_interpreter(python):
    said = doctor(python).json["python"]
    assert said["version"] == ".".join(map(str, python.version))
    assert said["implementation"] == "cpython" and said["supported"]
    assert said["executable"] == os.path.realpath(python)
    assert said["machine"] == os.uname().machine


@every_python()
def test_it_knows_what_is_built_in(python):
    assert doctor(python).json["python"]["have_perf_trampoline"] == python.perf_support
    assert levels(doctor(python))["built-in"] == ("ok" if python.perf_support else "note")


@every_python()
def test_it_knows_whether_there_are_frame_pointers(python):
    assert doctor(python).json["python"]["frame_pointers"] == python.frame_pointers
    assert levels(doctor(python))["frames"] == ("ok" if python.frame_pointers else "note")


@every_python()
def test_frame_pointers_are_what_a_profile_shows(python, perf):
    """Without them, perf's plain -g finds foo but not who called it."""
    command = words(built(BUILD, "pitviper"), "run", "--", python, FOO_BAR_BAZ, 0.5)
    profile = perf.record(*command, call_graph="fp").profile()
    says = doctor(python).json["python"]["frame_pointers"]
    assert (profile.share_of(WHOLE_CHAIN) >= 0.5) == says


@every_python()
def test_its_status_says_whether_there_is_a_problem(python):
    assert doctor(python).status == (1 if "problem" in levels(doctor(python)).values() else 0)
    assert doctor(python).err == ""


@every_python()
def test_it_finds_the_tools_of_this_machine(python):
    said = {check["topic"]: check["text"] for check in doctor(python).json["checks"]}
    assert (levels(doctor(python))["perf"] == "ok") == bool(perf_module.find())
    if perf_module.find():
        assert perf_module.find()[1] in said["perf"]


@every_python()
def test_the_text_says_the_same(python):
    text, said = pitviper("doctor", python), doctor(python)
    assert text.status == said.status
    lines = text.out.splitlines()
    for check in said.json["checks"]:
        assert [line for line in lines if line.startswith(check["level"])
                and check["topic"] in line and check["text"] in line]
    assert [line.strip() for line in lines if line.startswith("  ")] == said.json["commands"]


@every_python()
def test_the_environment_of_the_wheel_is_the_same_interpreter(python):
    said, base = (pitviper("doctor", "--json", path).json["python"]
                  for path in (with_wheel(python), python))
    assert {**said, "command": None} == {**base, "command": None}


def in_a_shell(command, folder):
    """Runs a recommended command where `pitviper` is ours and ~ is the folder."""
    command = command.replace("my_script.py", f"{FOO_BAR_BAZ} {SECONDS}")
    environment = {**ENVIRONMENT, "PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": str(folder)}
    result = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, cwd=folder, env=environment,
                            timeout=TIME_LIMIT_S)
    assert result.returncode == 0, result.stderr.decode(errors="replace")
    return result.stdout.decode(errors="replace")


@every_python()
def test_the_recommended_perf_commands_show_the_chain(python, perf):
    commands = [command for command in doctor(python).json["commands"] if "samply" not in command]
    record, *between, report = commands
    perf.recordings.append(Recording(perf, perf.folder / "perf.data"))
    for command in (record, *between):
        in_a_shell(command, perf.folder)
    assert "py::foo" in in_a_shell(report, perf.folder)
    reported = Recording(perf, perf.folder / report.split()[-1])
    assert reported.profile().while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN) >= 0.97


@every_python()
def test_the_recommended_samply_command_shows_the_chain(python, samply, monkeypatch):
    [command] = [line for line in doctor(python).json["commands"] if "samply" in line]
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{BUILD}:{os.environ['PATH']}")
    program, verb, *rest = command.replace("my_script.py", f"{FOO_BAR_BAZ} 1").split()
    assert (program, verb) == ("samply", "record")
    profile = samply.record(*rest)
    assert profile.while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN) >= 0.97


def test_a_machine_without_perf_is_told_how_to_get_it(tmp_path):
    if perf_module.find() and perf_module.find()[0].startswith("/usr/lib/linux-tools/"):
        pytest.skip("perf is found here without the PATH")
    python = os.path.realpath("/usr/bin/python3")
    ended = run(built(BUILD, "pitviper"), "doctor", python, PATH=str(tmp_path))
    assert ended.status == 1
    [line] = [line for line in ended.out.splitlines() if line.startswith("problem  perf")]
    assert "install" in line


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("program", ["no-such-python", "/no/such/python", "/bin/true", "/bin/cat",
                                     "/etc/passwd", "/"])
def test_what_is_no_interpreter_gets_one_line(program, json):
    result = pitviper("doctor", *json, program)
    assert (result.status, result.out) == (1, "")
    assert program in result.complaint


def test_it_takes_one_interpreter():
    result = pitviper("doctor", "python3", "python3")
    assert (result.status, result.out) == (2, "")
    assert "pitviper help doctor" in result.complaint


def test_without_a_name_it_looks_at_python3():
    assert pitviper("doctor", "--json").json["python"] == \
        pitviper("doctor", "--json", "python3").json["python"]
