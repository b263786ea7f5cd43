"""What the end-to-end tests ask for: real peers, or a skip that says why there are none."""
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from ..builds import BUILD, CHECKOUT
from . import perf as perf_module, samply as samply_module


# Long, and with nothing in them that is newer in the sid root than here. `./dev test` runs them on the
# interpreters of the machine; `./dev matrix` need not do that again, and runs them on its own.
LONG = ("test_stress", "test_cpython_regrtest", "test_sampler", "test_soak", "test_surroundings",
        "test_record", "test_record_kernel", "test_record_surroundings", "test_record_interpreters",
        "test_record_undescribed", "test_record_short", "test_record_generators", "test_record_deep",
        "test_waiting", "test_view", "test_export")


def is_repeated(item):
    python = item.callspec.params.get("python") if hasattr(item, "callspec") else None
    return (python is not None and item.module.__name__.endswith(LONG)
            and not str(python.executable).startswith("/usr/"))


def pytest_collection_modifyitems(config, items):
    if "PITVIPER_MATRIX" in os.environ:
        config.hook.pytest_deselected(items=[item for item in items if is_repeated(item)])
        items[:] = [item for item in items if not is_repeated(item)]


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
    with samply_module.permitted():
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
        def compile_one(source, *options, compiler="cc"):
            path = Path(folder) / f"{len(os.listdir(folder))}-{source.stem}"
            try:
                subprocess.run([compiler, "-O2", "-o", path, source, *options], check=True)
            except FileNotFoundError:
                pytest.skip("there is no C compiler")
            return path
        yield compile_one


@pytest.fixture(scope="session")
def forward_hook(compiled):
    """The shared object of a hook that only forwards."""
    return compiled(CHECKOUT / "bench" / "forward_hook.c", "-shared", "-fPIC")
