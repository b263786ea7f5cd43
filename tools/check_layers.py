#!/usr/bin/env python3
"""Checks that includes in src/ point only upward in the list of layers.

    tools/check_layers.py [ROOT]

A file of one layer may include headers of its own layer and of those before it in the list. Two
layers are stricter: what is loaded into somebody's interpreter sees only what it names here. Prints
one line per violation and exits with 1 when there is any.
"""
import re
import sys
from pathlib import Path

LAYERS = ["base", "formats", "interp", "elf", "unwind", "symbol", "profile", "record", "report",
          "export", "cmd"]
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def may_include(layer, other):
    if other == layer:
        return True
    if layer == "interp":
        return other in ("base", "formats")
    if other == "interp":
        return False  # the guest's code is not part of the program
    return LAYERS.index(other) < LAYERS.index(layer)


def problems(root):
    src = root / "src"
    for path in sorted(src.rglob("*.[ch]")):
        layer = path.relative_to(src).parts[0]
        if layer not in LAYERS:
            yield path, 1, f"'{layer}' is not in the list of layers"
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            other = match.group(1).split("/")[0]
            if "/" not in match.group(1) or other not in LAYERS:
                yield path, number, f'include "{match.group(1)}": write it as "layer/header.h"'
            elif not may_include(layer, other):
                yield path, number, f"{layer}/ must not include {match.group(1)}"


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    found = list(problems(root))
    for path, number, problem in found:
        print(f"{path.relative_to(root)}:{number}: {problem}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
