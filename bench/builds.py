"""Programs that benchmarks need, from the ordinary optimised build."""
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"


def program(path):
    """Builds `path` (relative to the build folder) when it is out of date, and returns it."""
    subprocess.run(["ninja", "-C", BUILD, "--quiet", path], check=True)
    return BUILD / path
