"""One row of the table: two sides measured in turn, their best figures, the ratio, the budget."""
from dataclasses import dataclass
from statistics import median
from typing import Callable, Optional


@dataclass
class Comparison:
    """`ours` and `peer` are functions that run once and return a figure in `unit`, the less the
    better. Give the budget as a limit for the ratio ours / peer, for our figure itself, or for what
    it is above the peer's. Without a peer our figure stands alone."""
    what: str
    ours: Callable[[], float]
    peer: Optional[Callable[[], float]]
    peer_name: str
    unit: str
    most_ratio: Optional[float] = None
    most: Optional[float] = None
    most_more: Optional[float] = None
    rounds: int = 7

    def measure(self):
        ours, peer = [], []
        for _ in range(self.rounds):
            ours.append(self.ours())
            peer.append(self.peer() if self.peer else 0)
        return Row(self, min(ours), min(peer))


@dataclass
class Row:
    comparison: Comparison
    ours: float
    peer: float

    @property
    def ratio(self):
        return self.ours / self.peer if self.peer else float("inf")

    @property
    def met(self):
        c = self.comparison
        if c.most_ratio is not None and self.ratio > c.most_ratio:
            return False
        if c.most_more is not None and self.ours - self.peer > c.most_more:
            return False
        return c.most is None or self.ours <= c.most

    def cells(self):
        c = self.comparison
        budget = []
        if c.most_ratio is not None:
            budget.append(f"{c.most_ratio:g}x")
        if c.most is not None:
            budget.append(f"{c.most:g} {c.unit}")
        if c.most_more is not None:
            budget.append(f"{c.most_more:g} {c.unit} more")
        return (c.what, f"{self.ours:.4g} {c.unit}",
                f"{self.peer:.4g} {c.unit} ({c.peer_name})" if c.peer else "-",
                f"{self.ratio:.3f}x" if self.peer else "-", " and ".join(budget) or "-",
                "-" if not budget else "met" if self.met else "NOT MET")


class InTurn:
    """Several sides that are measured in turn, round after round: what else the machine does then falls
    on all of them. `sides` are functions by name that return the figures of the parts of their work. A
    side's figure is the sum of the best of each part."""

    def __init__(self, rounds, sides):
        self.rounds = rounds
        self.sides = sides
        self.figures = {}

    def best(self, name):
        if not self.figures:
            rounds = [{each: side() for each, side in self.sides.items()} for _ in range(self.rounds)]
            self.figures = {each: sum(map(min, zip(*(parts[each] for parts in rounds))))
                            for each in self.sides}
        return self.figures[name]

    def compare(self, what, ours, peer, unit, **limits):
        return Comparison(what, lambda: self.best(ours), lambda: self.best(peer), peer, unit, rounds=1,
                          **limits)


class WithinProcess:
    """One process does the same work again and again, and every second time something is switched off in it:
    `run` returns the figures of these parts, the first of which has it on. Each part that has it is compared
    with the two beside it, and the median of that counts: no other process is as much like it."""

    def __init__(self, rounds, run):
        self.rounds = rounds
        self.run = run
        self.with_it = self.without = None

    def measure(self):
        if self.without is not None:
            return
        ratios, without = [], []
        for _ in range(self.rounds):
            parts = self.run()
            beside = [(before + after) / 2 for before, after in zip(parts[1::2], parts[3::2])]
            ratios += [on / off for on, off in zip(parts[2::2], beside)]
            without += beside
        self.without = median(without)
        self.with_it = self.without * median(ratios)

    def compare(self, what, peer_name, unit, **limits):
        def figure(name):
            self.measure()
            return getattr(self, name)
        return Comparison(what, lambda: figure("with_it"), lambda: figure("without"), peer_name, unit,
                          rounds=1, **limits)


def print_table(rows):
    table = [("what", "ours", "peer", "ratio", "budget", "")] + [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
