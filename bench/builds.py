"""Programs that benchmarks need, from the ordinary optimised build. PITVIPER_BUILD names its folder, as
for the tests."""
import os
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / os.environ.get("PITVIPER_BUILD", "build")


def program(path):
    """Builds `path` (relative to the build folder) when it is out of date, and returns it."""
    subprocess.run(["ninja", "-C", BUILD, "--quiet", path], check=True, stdout=subprocess.DEVNULL)
    return BUILD / path
