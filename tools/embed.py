#!/usr/bin/env python3
"""Turns files into a C table of names and bytes, for programs that carry them along.

    tools/embed.py OUTPUT.c FILE...

The table is web_files of src/export/web_files.h, by name. A file beside those given that has the same
kind of name and is not among them was forgotten in meson.build, and an error.
"""
import sys
from pathlib import Path

BYTES_PER_LINE = 24


def forgotten(paths):
    kinds = {path.suffix for path in paths}
    return sorted(other for folder in {path.parent for path in paths} for other in folder.iterdir()
                  if other.suffix in kinds and other not in paths)


def array(number, content):
    rows = (content[at:at + BYTES_PER_LINE] for at in range(0, len(content), BYTES_PER_LINE))
    lines = ["    " + ", ".join(str(byte) for byte in row) + "," for row in rows]
    return [f"static const unsigned char file_{number}[] = {{", *lines, "    0};"]


def table(paths):
    lines = ["/* Made by tools/embed.py. */", '#include "export/web_files.h"', ""]
    for number, path in enumerate(paths):
        lines += array(number, path.read_bytes())
    lines += ["", "const struct web_file web_files[] = {"]
    lines += [f'    {{"{path.name}", file_{number}, sizeof file_{number} - 1}},'
              for number, path in enumerate(paths)]
    return "\n".join([*lines, "    {0}};", ""])


def main(output, *names):
    paths = sorted(map(Path, names), key=lambda path: path.name)
    for path in forgotten(paths):
        print(f"{path}: is not in the list of meson.build", file=sys.stderr)
        return 1
    Path(output).write_text(table(paths))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
