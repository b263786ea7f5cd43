"""What code says of itself, against those who know: the lengths of instructions against objdump's, and
the rules that its instructions give against the call frame information of the same code, for every
instruction of the C library and of whatever else is large and here."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..builds import BUILD, built

LIBRARIES = ["libc.so.6", "libcrypto.so.3", "libstdc++.so.6", "libgmp.so.10"]
FOLDERS = [Path("/usr/lib/x86_64-linux-gnu"), Path("/lib/x86_64-linux-gnu"), Path("/usr/lib64")]

LEAST_EQUAL, MOST_WRONG = 0.85, 0.005


def find(name):
    for folder in FOLDERS:
        if (folder / name).exists():
            return (folder / name).resolve()
    return None


def addresses(path):
    """Of every instruction, as objdump has them; 0 between the sections, and behind what it does not
    take for one: data among the code."""
    text = subprocess.run(["objdump", "-d", "-w", "--no-show-raw-insn", path], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    for line in text.splitlines():
        if line.startswith("Disassembly of section"):
            yield "0"
        match = re.match(r" +([0-9a-f]+):\t(.*)", line)
        if match:
            yield match[1]
            if re.match(r"\(bad\)|\.byte|rex", match[2]):
                yield "0"


def compare(path):
    if not shutil.which("objdump"):
        pytest.skip("there is no objdump: apt install binutils")
    result = subprocess.run([built(BUILD, "tests/code_oracle"), path, "5"], text=True, timeout=300,
                            input="\n".join(addresses(path)), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def check(path):
    counts, differences = compare(path)
    described = counts["described"]
    assert described > 10000
    # The tables themselves are wrong in some places: see 011-code-rules.md.
    assert counts["wrong_cfa"] + counts["wrong_registers"] <= MOST_WRONG * described, differences
    alike = counts["equal"] + counts["late"] + counts["other_register"]
    assert alike >= LEAST_EQUAL * described, counts
    return counts, differences


@pytest.mark.parametrize("name", LIBRARIES)
def test_code_says_what_its_tables_say(name):
    path = find(name)
    if not path:
        pytest.skip(f"there is no {name}")
    check(path)


def test_the_interpreters_code_says_what_its_tables_say():
    check(Path(sys.executable).resolve())


def test_instructions_are_as_long_as_objdump_says():
    counts, differences = compare(find("libc.so.6") or pytest.skip("there is no libc.so.6"))
    assert counts["lengths"] > 100000
    assert counts["lengths_differ"] == 0, differences
