"""The tables of src/interp/layout.h against the headers of every CPython on the machine."""

import glob
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHECK = ROOT / "tests" / "layout" / "layout_check.c"

ASK = "import sys, sysconfig; print(*sys.version_info[:3]); print(sysconfig.get_path('include'))"


def interpreters():
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    candidates = glob.glob(f"{pyenv}/versions/3.*/bin/python")
    candidates += [shutil.which(f"python3.{minor}") for minor in range(9, 16)]
    candidates.append(shutil.which("python3"))
    return sorted({os.path.realpath(path) for path in candidates if path})


@pytest.mark.parametrize("python", interpreters())
def test_the_tables_agree_with_the_headers(python, tmp_path):
    answer = subprocess.run([python, "-I", "-c", ASK], capture_output=True, text=True, check=True)
    version, include = answer.stdout.splitlines()
    if not (3, 9) <= tuple(map(int, version.split()[:2])) <= (3, 15):
        pytest.skip(f"version {version} is not supported")
    if not os.path.exists(f"{include}/internal/pycore_interp.h"):
        pytest.skip(f"no internal headers in {include}")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no C compiler")
    program = tmp_path / "layout_check"
    subprocess.run(
        [compiler, f"-I{include}", f"-I{ROOT}/src", "-o", program, CHECK],
        check=True,
        capture_output=True,
    )
    result = subprocess.run([program], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
