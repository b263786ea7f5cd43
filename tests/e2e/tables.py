"""The table of `perf report --stdio -n`, whoever printed it, as rows that can be compared.

    ours, theirs = read_table(text), read_table(other)
    ours[("python3", "libc.so.6", "memcpy")].samples

What is known to differ on purpose (docs/report-differences.md) is brought to one form here, and
nothing else:

  addresses  A function without a name in a module is an offset in the module for us. perf prints
             the address in that process for callers and the offset for sampled functions. Both
             become UNNAMED, one row per module; what such rows have in common is their self time.
  plt        perf 6.1 lacks the names of some PLT entries ("@plt") and does not see others as such.
             All become UNNAMED, likewise. So does `_init`, which has no size and stands before the
             PLT: perf lets it reach to the first entry. (Seen once, two samples; that they were in
             the PLT's head follows from the layout of the file, nobody looked at them.)
"""
import re
from collections import Counter
from typing import Dict, NamedTuple, Tuple

UNNAMED = "(unnamed)"

# Where the copy of a stack was too short (dwarf mode), perf 6.1 reads a return address of 0 and shows
# a frame 1 below it. There we may have found one caller more: its return address was still in the copy.
BELOW_ZERO = "0xffffffffffffffff"
NUMBERS = {"Children", "Self", "Overhead", "Samples"}


class Row(NamedTuple):
    children: float  # percent; equal to `self` without --children
    self: float
    samples: int
    tree: Counter    # lines of its call chains, without the bars


def columns_of(names, dots):
    """(name, first, last) of the columns: the dots below the names are as wide as they are."""
    return [(names[m.start():m.end()].strip(), m.start(), m.end())
            for m in re.finditer(r"\.+", dots)]


def key_of(cells):
    symbol = re.sub(r"^\[.\] ", "", cells.get("Symbol", ""))
    module = cells.get("Shared Object", "")
    if re.fullmatch(r"(0x)?[0-9a-f]{16}", symbol) and module != "[unknown]":
        symbol = UNNAMED
    elif symbol.endswith("@plt") or symbol in ("_init", ".plt"):
        symbol = UNNAMED
    return cells.get("Command", ""), module, symbol


def add(rows, key, row):
    old = rows.get(key)
    if old and key[2] != UNNAMED:
        # Functions of one name in one module: static ones of several files.
        row = Row(old.children + row.children, old.self + row.self, old.samples + row.samples,
                  old.tree + row.tree)
    elif old:
        row = Row(0, old.self + row.self, old.samples + row.samples, Counter())
    elif key[2] == UNNAMED:
        row = Row(0, row.self, row.samples, Counter())
    rows[key] = row


def cells_of(line, columns):
    return {name: line[first:(last if i + 1 < len(columns) else None)].strip()
            for i, (name, first, last) in enumerate(columns)}


def read_table(text) -> Dict[Tuple[str, str, str], Row]:
    rows, columns, key = {}, [], None
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# ...."):
            columns = columns_of(lines[i - 1], line)
        elif columns and re.match(r"\s+\d+\.\d\d%  ", line):
            cells = cells_of(line, columns)
            key = key_of(cells)
            own = float(cells.get("Self", cells.get("Overhead")).rstrip("%"))
            children = float(cells.get("Children", cells.get("Overhead")).rstrip("%"))
            add(rows, key, Row(children, own, int(cells["Samples"]), Counter()))
        elif key and line.strip() and not line.startswith("#"):
            words = re.sub(r"^[| -]+", "", line)
            if words and key[2] != UNNAMED:
                rows[key].tree[re.sub(r"\S*@plt$", "@plt", words)] += 1
    return rows


def cut_short(rows):
    """Percent of the samples whose stacks perf could not follow to their end."""
    return sum(row.children for key, row in rows.items() if key[2] == BELOW_ZERO)


def differences(ours, theirs, tolerance=0.01):
    """Rows that are not the same, as lines for people."""
    cut = cut_short(theirs)
    for key in sorted(set(ours) | set(theirs)):
        a, b = ours.get(key), theirs.get(key)
        if key[2] == BELOW_ZERO:
            continue
        if cut and a and a.samples == (b.samples if b else 0) \
                and 0 <= a.children - (b.children if b else 0) <= cut:
            continue
        if not a or not b:
            yield f"only {'theirs' if b else 'ours'}: {key} {b or a}"
        elif a.samples != b.samples:
            yield f"samples: {key} {a.samples} != {b.samples}"
        elif key[2] != UNNAMED and (abs(a.self - b.self) > tolerance + 1e-9
                                       or abs(a.children - b.children) > tolerance + 1e-9):
            yield f"percent: {key} {a.children, a.self} != {b.children, b.self}"
        elif key[2] != UNNAMED and a.tree != b.tree:
            yield f"tree: {key} ours only {a.tree - b.tree}, theirs only {b.tree - a.tree}"
