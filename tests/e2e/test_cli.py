"""The command line itself: what every command has in common."""
import pytest

from .cli import pitviper


def test_version_is_one_line():
    result = pitviper("--version")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("pitviper ") and result.out.count("\n") == 1


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"]], ids=" ".join)
def test_help_lists_the_commands(arguments):
    result = pitviper(*arguments)
    assert (result.status, result.err) == (0, "")
    assert "inspect" in result.out and "usage: pitviper" in result.out


@pytest.mark.parametrize("arguments", [["help", "inspect"], ["inspect", "--help"]], ids=" ".join)
def test_help_explains_a_command(arguments):
    result = pitviper(*arguments)
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("usage: pitviper inspect") and "--json" in result.out


@pytest.mark.parametrize("arguments, hint", [
    (["inspcet", "file"], "inspect"),
    (["help", "inspet"], "inspect"),
    (["hlep"], "help"),
    (["zzzzzzzz"], "pitviper help"),
    (["--vresion"], "--version"),
    (["inspect", "--jsno", "file"], "--json"),
    (["inspect", "-z", "file"], "pitviper help inspect"),
    (["inspect", "--zzzzzzzz", "file"], "pitviper help inspect"),
    (["inspect"], "pitviper help inspect"),
    (["inspect", "one", "two"], "pitviper help inspect"),
    ([], "pitviper help"),
], ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else None)
def test_a_wrong_command_line_gets_a_hint(arguments, hint):
    result = pitviper(*arguments)
    assert (result.status, result.out) == (2, "")
    assert hint in result.complaint


@pytest.mark.parametrize("arguments", [["--version"], ["help"], ["help", "inspect"]], ids=" ".join)
def test_output_that_cannot_be_written_is_an_error(arguments):
    with open("/dev/full", "wb") as full:
        result = pitviper(*arguments, stdout=full)
    assert result.status == 1
    assert "No space left on device" in result.complaint
