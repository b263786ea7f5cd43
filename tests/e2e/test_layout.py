"""The tables of offsets in src/interp against the headers of every interpreter that has them."""
import subprocess
from pathlib import Path

import pytest

from ..builds import CHECKOUT
from .interpreters import every_python

INCLUDE_FOLDER = "import sysconfig; print(sysconfig.get_path('include'))"


# What is compiled, by the table that it checks.
SOURCES = {
    "layout": ["tests/layout/layout_check.c"],
    "sample_layout": ["tests/layout/sample_layout_check.c", "src/interp/sample_layout.c"],
}


@pytest.mark.parametrize("table", SOURCES)
@every_python()
def test_the_tables_agree_with_the_headers(python, table, tmp_path):
    include = Path(subprocess.run([python, "-I", "-c", INCLUDE_FOLDER], check=True,
                                  stdout=subprocess.PIPE, text=True).stdout.strip())
    if not (include / "internal" / "pycore_interp.h").exists():
        pytest.skip(f"CPython {python.label} has no internal headers installed (python3-dev)")
    program = tmp_path / "check"
    subprocess.run(["cc", f"-I{include}", f"-I{CHECKOUT / 'src'}", "-o", program,
                    *(CHECKOUT / source for source in SOURCES[table])], check=True)
    result = subprocess.run([program], stdout=subprocess.PIPE, text=True)
    assert result.returncode == 0, result.stdout
