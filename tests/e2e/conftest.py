"""What the end-to-end tests ask for: real peers, or a skip that says why there are none."""
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from ..builds import BUILD, CHECKOUT
from . import perf as perf_module, samply as samply_module


@pytest.fixture
def recordings():
    """A folder for recordings, which are large: unlike pytest's tmp_path it goes with the test."""
    with tempfile.TemporaryDirectory(prefix="pitviper-test-") as folder:
        yield Path(folder)


@pytest.fixture
def perf(recordings):
    if perf_module.obstacle():
        pytest.skip(perf_module.obstacle())
    perf = perf_module.Perf(recordings)
    yield perf
    perf.close()


@pytest.fixture(scope="session")
def permitted_for_samply():
    """Root may permit what samply needs; what was set before comes back at the end."""
    setting = perf_module.PARANOID
    before = setting.read_text()
    if (samply_module.find() and int(before) > samply_module.MOST_PARANOID
            and os.access(setting, os.W_OK)):
        setting.write_text(str(samply_module.MOST_PARANOID))
        yield
        setting.write_text(before)
    else:
        yield


@pytest.fixture
def samply(recordings, permitted_for_samply):
    if samply_module.obstacle():
        pytest.skip(samply_module.obstacle())
    samply = samply_module.Samply(recordings)
    yield samply
    samply.close()


@pytest.fixture(scope="session")
def compiled():
    """Compiles a program or shared object of one C file: compiled(SOURCE, *OPTIONS) is its path. In
    the build folder, not under /tmp, which may be another one for the programs that use it."""
    with tempfile.TemporaryDirectory(prefix="compiled-", dir=BUILD) as folder:
        def compile_one(source, *options):
            path = Path(folder) / f"{len(os.listdir(folder))}-{source.stem}"
            try:
                subprocess.run(["cc", "-O2", "-o", path, source, *options], check=True)
            except FileNotFoundError:
                pytest.skip("there is no C compiler")
            return path
        yield compile_one


@pytest.fixture(scope="session")
def forward_hook(compiled):
    """The shared object of a hook that only forwards."""
    return compiled(CHECKOUT / "bench" / "forward_hook.c", "-shared", "-fPIC")
