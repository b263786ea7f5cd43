"""tools/check_layers.py finds includes that point the wrong way."""
import subprocess
import sys

import pytest

from .builds import CHECKOUT


@pytest.fixture
def check(tmp_path):
    """Checks a tree that consists of src/FILE with one include each: check({FILE: INCLUDED})."""
    def run(includes):
        for file, included in includes.items():
            path = tmp_path / "src" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'/* A file. */\n#include "{included}"\n')
        return check_layers(tmp_path)
    return run


def check_layers(root):
    return subprocess.run([sys.executable, CHECKOUT / "tools" / "check_layers.py", root],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)


def test_the_sources_are_in_order():
    result = check_layers(CHECKOUT)
    assert result.returncode == 0, result.stdout


def test_an_upward_include_is_right(check):
    result = check({"base/cursor.h": "base/checked.h", "formats/perfmap.h": "base/cursor.h",
                    "cmd/main.c": "formats/perfmap.h"})
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("file, included", [
    ("base/cursor.h", "formats/perfmap.h"),
    ("formats/perfmap.c", "cmd/command.h"),
    ("elf/image.c", "symbol/table.h"),
])
def test_a_downward_include_is_wrong(check, file, included):
    result = check({file: included})
    assert result.returncode == 1
    assert f"src/{file}:2:" in result.stdout


def test_the_part_inside_the_process_sees_only_base_and_formats(check):
    assert check({"interp/a.c": "formats/perfmap.h"}).returncode == 0
    assert check({"interp/b.c": "elf/image.h"}).returncode == 1
