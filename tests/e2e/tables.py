"""The table of `perf report --stdio -n`, whoever printed it, and what may differ between two of them.

    wrong, causes = compare(ours, theirs, Mappings(recording))

Two texts that are the same are the same. Otherwise rows are compared one by one, in their order, with
their call trees. What is meant to differ (docs/report-differences.md) is brought to one form before
that, and each time its cause is counted:

  UNNAMED_CALLER  Code without a name in a module. perf shows the offset in the module for sampled
                  functions, and another row with the address in the process for the same place as a
                  caller. The recording's mappings tell which offset an address is.
  PLT             perf 6.1 has no names for entries of .plt.got and .plt.sec. Which addresses these
                  are is asked of readelf. All entries of a module become one row: at most one is in
                  a chain, since calls do not return to them. `_init` is one of them, too: it stands
                  before the table and has no size, so perf 6.1 lets it reach into the table. perf 7
                  calls the first entry .plt. Entries for functions that are chosen at run time are
                  "@plt" in perf 6.1, have a name in perf 7, and are *ABS*+0x1234@plt in ours. Rows of
                  perf 6.1 without a name can have less Children than Self, which cannot be; why is
                  not known. Then Self is compared alone.
  KERNEL_LETTER   perf 7 prints [.] for callers in the kernel where the sample was in user code.
  PARAMETERS      perf 6.1 prints C++ functions without parameters.
  EQUAL_BRANCHES  Branches of equal size are ordered by where in memory perf has its record of their
                  module. Those of other sizes must be in order.
  NO_ADDRESS      Words that were taken for return addresses, far apart from all addresses. perf
                  compares by the sign of the difference, which is no order for such words; what
                  comes out depends on which came first.
  LEFT_OUT        `-g fractal` has a branch for what is left out, "[...]". perf never says whether that
                  is an inlined function: it depends on what its memory held before.

Rows of equal size are not in an order that has a rule (src/report/row_order.c): one row more or less
can change that of others. So where rows have a cause, the order of equal ones does not count; and
likewise the branches of a tree with entries of the PLT in it.
"""
import functools
import os
import re
import subprocess
from typing import List, NamedTuple

UNNAMED_CALLER, PLT, KERNEL_LETTER, PARAMETERS, EQUAL_BRANCHES, NO_ADDRESS, LEFT_OUT = \
    "unnamed caller", "plt", "kernel's letter", "parameters", "equal branches", "no address", "left out"

# Percentages are rounded to 0.01: by how much the sum of rows may be off, for each.
ROUNDING = 0.005
BRANCH = re.compile(r"([ |]*)(?:\|--| --)([\d.]+%?)--(.*)")
ADDRESS = re.compile(r"(0x)?[0-9a-f]{16}")
MAPPING = re.compile(r"PERF_RECORD_MMAP2? -?\d+/-?\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ "
                     r"(?:0x)?([0-9a-f]+)[^]]*\]: \S+ (.*)$", re.MULTILINE)


class Row(NamedTuple):
    command: str
    module: str
    symbol: str
    letter: str        # in brackets before the symbol
    children: float    # percent; equal to `self` without --children
    self: float
    samples: int
    tree: List[str]    # lines, as printed


# --- reading ---------------------------------------------------------------------------------------

def columns_of(names, dots):
    """(name, first, last) of the columns: the dots below the names are as wide as they are."""
    return [(names[m.start():m.end()].strip(), m.start(), m.end())
            for m in re.finditer(r"\.+", dots)]


def read_row(line, columns):
    cells = {name: line[first:(last if i + 1 < len(columns) else None)].strip()
             for i, (name, first, last) in enumerate(columns)}
    own = float(cells.get("Self", cells.get("Overhead")).rstrip("%"))
    children = float(cells.get("Children", cells.get("Overhead")).rstrip("%"))
    letter, symbol = re.match(r"(?:\[(.)\] )?(.*)", cells.get("Symbol", "")).groups()
    return Row(cells.get("Command", ""), cells.get("Shared Object", ""), symbol, letter, children,
               own, int(cells["Samples"]), [])


def read_table(text):
    """The rows, in their order; the events of a recording one behind the other."""
    rows, columns = [], []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# ...."):
            columns = columns_of(lines[i - 1], line)
        elif columns and re.match(r"\s+\d+\.\d\d%  ", line):
            rows.append(read_row(line, columns))
        elif rows and line.strip() and not line.startswith("#"):
            rows[-1].tree.append(line.rstrip())
    return rows


def body(text):
    """The text without what is not part of the table: perf's tip, spaces and lines at the end."""
    text = re.split(r"^# \((?:Tip|Cannot|For)", text, flags=re.MULTILINE)[0]
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n#")


# --- what the recording and its modules tell ----------------------------------------------------------

class Mappings:
    def __init__(self, recording):
        text = recording.perf.run("script", "-i", recording.data, "--show-mmap-events", "-G",
                                  "-F", "comm,pid,tid,time")
        self.all = {(int(start, 16), int(size, 16), int(offset, 16), path)
                    for start, size, offset, path in MAPPING.findall(text)}

    def place(self, address, module=None):
        """(path, offset) of an address in a process; None where no file is."""
        for start, size, offset, path in self.all:
            if start <= address < start + size and path.startswith(("/", "[vdso]")) and \
                    module in (None, os.path.basename(path)):
                return path, address - start + offset
        return None

    def path(self, module):
        return next((path for *_, path in self.all if os.path.basename(path) == module), None)


@functools.lru_cache(maxsize=None)
def plt_sections(path):
    """(offset, size) of them in a file."""
    text = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL).stdout
    return [(int(offset, 16), int(size, 16)) for offset, size in
            re.findall(r"\s\.plt\S*\s+PROGBITS\s+\w+ (\w+) (\w+)", text)]


def is_in_plt(path, offset):
    return bool(path) and os.path.exists(path) and any(first <= offset < first + size for first, size in plt_sections(path))


# --- comparing ----------------------------------------------------------------------------------------

class Settled(NamedTuple):
    """The rows of a table, brought to one form."""
    named: List[Row]
    places: dict     # (command, module, offset or "(plt)") -> [children, self, samples, rows]
    causes: set


def settle_place(row, mappings, is_perf):
    """(offset in the module or "(plt)", causes) of a row without a name of its own, else None."""
    if row.symbol.endswith("@plt"):
        return "(plt)", {PLT} if re.match(r"@|\*ABS\*", row.symbol) else set()
    if row.symbol in ("_init", ".plt"):
        return "(plt)", {PLT}
    if not ADDRESS.fullmatch(row.symbol) or (row.module[:1] == "[" and row.module != "[vdso]"):
        return None
    path, offset, causes = mappings.path(row.module), int(row.symbol, 16), set()
    place = mappings.place(offset, row.module) if is_perf and not row.samples else None
    if place and place[1] != offset:
        path, offset = place
        causes.add(UNNAMED_CALLER)
    if is_in_plt(path, offset):
        return "(plt)", causes | {PLT}
    return offset, causes


def settle_tree(tree, mappings):
    """The tree with one name for all entries of the PLT; then its lines without bars, sorted."""
    def is_plt(word):
        place = mappings.place(int(word, 16)) if re.fullmatch("0x[0-9a-f]+", word) else None
        return word.endswith("@plt") or (place and is_in_plt(*place))
    def settled(match):  # one name, or a folded chain of them
        return ";".join("(plt)" if is_plt(word) else word for word in match[0].split(";"))
    lines = [re.sub(r"[^ -]+$", settled, line) for line in tree]
    return tree if lines == tree else sorted(re.sub(r"^[| -]+", "", line) for line in lines)


def settle(rows, mappings, is_perf):
    result, callers = Settled([], {}, set()), set()
    for row in rows:
        place = settle_place(row, mappings, is_perf)
        if not place:
            result.named.append(row._replace(tree=settle_tree(row.tree, mappings)))
            if ADDRESS.fullmatch(row.symbol) and int(row.symbol, 16) >> 47 not in (0, 0x1ffff):
                result.causes.add(NO_ADDRESS)
            continue
        where, causes = place
        result.causes.update(causes)
        # perf's row of a caller counts all chains with it; that of the sampled function counts
        # its own again.
        key = row.command, row.module, where
        sums = result.places.setdefault(key, [0.0, 0.0, 0, 0])
        is_caller = UNNAMED_CALLER in causes
        if is_caller and key not in callers:
            sums[0] = 0.0
            callers.add(key)
        if is_caller or key not in callers:
            sums[0] += row.children
        sums[1] += row.self
        sums[2] += row.samples
        sums[3] += 1
    return result


def explain(row, other, causes):
    """perf's row in the form of ours, where what differs has a cause that a single row can tell."""
    if row.letter != other.letter and row.module.startswith("["):
        causes.add(KERNEL_LETTER)
        row = row._replace(letter=other.letter)
    if row.symbol != other.symbol and row.symbol == re.sub(r"\(.*", "", other.symbol):
        causes.add(PARAMETERS)
        row = row._replace(symbol=other.symbol)
    if row.tree != other.tree and read_tree(row.tree) == read_tree(other.tree):
        causes.add(EQUAL_BRANCHES)
        row = row._replace(tree=other.tree)
    return row


def read_tree(lines):
    """A drawn tree as (value, names, branches), equal branches sorted; a list of chains sorted."""
    root = ("", [], [])
    open_branches = [(-1, root)]
    for line in lines:
        branch = BRANCH.fullmatch(line)
        if branch:
            while open_branches[-1][0] >= len(branch[1]):
                open_branches.pop()
            new = (branch[2], [branch[3]], [])
            open_branches[-1][1][2].append(new)
            open_branches.append((len(branch[1]), new))
        elif line.strip(" |"):
            open_branches[-1][1][1].append(line.strip(" |"))
    if not root[2]:
        return sorted(root[1])
    return in_order(root)


def in_order(node):
    branches = [in_order(branch) for branch in node[2]]
    values = [branch[0] for branch in branches]
    return node[0], node[1], values, sorted(branches, key=repr)


def compare_named(ours, theirs, causes):
    """Complaints about rows with names. Where rows without one stood between them in another way,
    equal rows may be in another order."""
    if causes:
        ours, theirs = sorted(ours, key=order_of), sorted(theirs, key=order_of)
    for mine, peer in zip(ours, theirs):
        peer = explain(peer, mine, causes)
        if mine != peer:
            yield f"ours is {mine}\nperf's  {peer}"
            return
    if len(ours) != len(theirs):
        yield f"ours has {len(ours)} rows with names, perf's {len(theirs)}"


def order_of(row):
    return -row.children, -row.self, row.command, row.module, re.sub(r"\(.*", "", row.symbol), row.tree


def compare_places(ours, theirs):
    for key in sorted(set(ours) | set(theirs), key=str):
        mine, peer = ours.get(key), theirs.get(key)
        if not mine or not peer:
            yield f"only {'perf has' if peer else 'we have'} {key}: {peer or mine}"
            continue
        differences = [abs(mine[1] - peer[1])]
        if peer[0] >= peer[1]:  # else perf's Children can't be: see PLT
            differences.append(abs(mine[0] - peer[0]))
        if mine[2] != peer[2] or max(differences) > ROUNDING * (mine[3] + peer[3]) + 1e-9:
            yield f"{key}: ours {mine}, perf's {peer}"


def compare(ours, theirs, mappings):
    """(complaints, causes of what differs and may) of two texts."""
    uninlined = theirs.replace("[...] (inlined)", "[...]")
    left_out = {LEFT_OUT} if uninlined != theirs else set()
    theirs = uninlined
    if body(ours) == body(theirs):
        return [], left_out
    mine = settle(read_table(ours), mappings, is_perf=False)
    peer = settle(read_table(theirs), mappings, is_perf=True)
    causes = peer.causes | (mine.causes & {PLT})
    wrong = [*compare_named(mine.named, peer.named, causes),
             *compare_places(mine.places, peer.places)]
    if not wrong and not causes:
        if rows_with_trees(ours) == rows_with_trees(theirs):
            causes.add(EQUAL_BRANCHES)
        else:
            wrong.append(first_difference(body(ours), body(theirs)))
    return wrong, causes | left_out


def rows_with_trees(text):
    """The header, and all rows, those without a name too, with equal branches in one order."""
    header = [line for line in body(text).splitlines() if line.startswith("#")]
    return header, sorted(repr(row._replace(tree=read_tree(row.tree))) for row in read_table(text))


def first_difference(ours, theirs):
    pairs = zip((ours + "\n(end)").splitlines(), (theirs + "\n(end)").splitlines())
    return next((f"ours: {a}\nperf: {b}" for a, b in pairs if a != b), "one is longer")
