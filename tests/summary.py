"""The end of a run: every skip with its reason, then one line that scripts may rely on.

    N passed, N failed, N skipped

It is the very last line, whatever else pytest prints. Errors outside of tests (a fixture, a file
that cannot be read) count as failed.
"""
from collections import Counter


def reason_of(report):
    if isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        return reason[len("Skipped: "):] if reason.startswith("Skipped: ") else reason
    return str(report.longrepr)


def print_skips(reporter):
    reasons = Counter(reason_of(report) for report in reporter.stats.get("skipped", []))
    if reasons:
        reporter.section("skipped")
        for reason, count in sorted(reasons.items()):
            reporter.line(f"{count} x {reason}")


def count(reporter):
    """(passed, failed, skipped)"""
    def number(*kinds):
        return sum(len(reporter.stats.get(kind, [])) for kind in kinds)
    return number("passed"), number("failed", "error"), number("skipped")
