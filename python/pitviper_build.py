"""Builds the wheel, with nothing but the standard library, meson and a C compiler.

As a build backend (PEP 517) it serves `pip wheel .` and `pip install .`; run as a program it writes
the wheel into a folder:

    python3 python/pitviper_build.py [--build-dir DIR] [OUTPUT_DIR]

The wheel holds, for every CPython from 3.9 on:

    pitviper/__init__.py, _unavailable.py    the package
    pitviper/_pitviper.so                    the shared object (build/pitviper.so, stripped)
    pitviper.pth                             the start-up hook, beside the package
    pitviper-VERSION.data/scripts/pitviper   the program, when it was built

One file fits every version because the shared object uses no header of Python: tag py3-none-PLATFORM.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = "pitviper"
SUMMARY = "Shows where a Python program spends its time: Python functions in perf and samply"
REQUIRES_PYTHON = ">=3.9"


def project_version():
    text = (ROOT / "meson.build").read_text(encoding="utf-8")
    return re.search(r"^\s*version: '([^']+)'", text, re.MULTILINE).group(1)


def needed_glibc(binary):
    """The newest version of glibc whose symbols the binary asks for, as (major, minor)."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", binary.read_bytes())
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 17))


def platform_tag(binaries):
    """manylinux says how old a system may be; a C library other than glibc has no such tag."""
    machine = platform.machine()
    if platform.libc_ver()[0] != "glibc":
        return f"linux_{machine}"
    major, minor = max([(2, 17), *map(needed_glibc, binaries)])
    return f"manylinux_{major}_{minor}_{machine}"


def compile_all(build_dir):
    """The build folder with fresh binaries: the given one, or one of our own."""
    if build_dir is None:
        build_dir = ROOT / "build-wheel"
        if not (build_dir / "build.ninja").exists():
            subprocess.run(
                ["meson", "setup", str(build_dir), str(ROOT), "-Dtests=false", "--buildtype=release"],
                check=True,
                stdout=sys.stderr,
            )
    subprocess.run(["meson", "compile", "-C", str(build_dir)], check=True, stdout=sys.stderr)
    return pathlib.Path(build_dir)


def stripped(binary, folder):
    copy = pathlib.Path(folder) / binary.name
    shutil.copy2(binary, copy)
    strip = shutil.which("strip")
    if strip:
        subprocess.run([strip, "--strip-unneeded", str(copy)], check=True)
    return copy


def metadata():
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {NAME}",
        f"Version: {project_version()}",
        f"Summary: {SUMMARY}",
        "License: Apache-2.0",
        f"Requires-Python: {REQUIRES_PYTHON}",
    ]
    return "\n".join(lines) + "\n"


def wheel_metadata(tag):
    return (
        "Wheel-Version: 1.0\n"
        f"Generator: {NAME}_build\n"
        "Root-Is-Purelib: false\n"
        f"Tag: {tag}\n"
    )


class WheelWriter:
    """A zip file that notes the hash of every member in RECORD."""

    def __init__(self, path, dist_info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.dist_info = dist_info
        self.rows = []
        epoch = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800))  # zip starts in 1980
        self.date = time.gmtime(max(epoch, 315532800))[:6]

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, self.date)
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        record = f"{self.dist_info}/RECORD"
        rows = "\n".join([*self.rows, f"{record},,"]) + "\n"
        info = zipfile.ZipInfo(record, self.date)
        info.external_attr = 0o100644 << 16
        self.zip.writestr(info, rows)
        self.zip.close()


def write_wheel(output_dir, build_dir=None):
    """Builds and returns the path of the wheel."""
    build_dir = compile_all(build_dir)
    version = project_version()
    output_dir = pathlib.Path(output_dir)
    output_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        library = stripped(build_dir / "pitviper.so", folder)
        program = stripped(build_dir / "pitviper", folder)
        tag = f"py3-none-{platform_tag([library, program])}"
        dist_info = f"{NAME}-{version}.dist-info"
        path = output_dir / f"{NAME}-{version}-{tag}.whl"
        wheel = WheelWriter(path, dist_info)
        for source in sorted((ROOT / "python" / NAME).glob("*.py")):
            wheel.add(f"{NAME}/{source.name}", source.read_bytes())
        wheel.add(f"{NAME}/_{NAME}.so", library.read_bytes(), 0o755)
        wheel.add(f"{NAME}.pth", (ROOT / "python" / f"{NAME}.pth").read_bytes())
        wheel.add(f"{NAME}-{version}.data/scripts/{NAME}", program.read_bytes(), 0o755)
        wheel.add(f"{dist_info}/METADATA", metadata().encode())
        wheel.add(f"{dist_info}/WHEEL", wheel_metadata(tag).encode())
        wheel.close()
    return path


# What a front end such as pip calls (PEP 517).


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory).name


def main():
    parser = argparse.ArgumentParser(description="Build the wheel.")
    parser.add_argument("output_dir", nargs="?", default=str(ROOT / "dist"))
    parser.add_argument("--build-dir", help="a meson build folder to take the binaries from")
    arguments = parser.parse_args()
    print(write_wheel(arguments.output_dir, arguments.build_dir))


if __name__ == "__main__":
    main()
