"""What perf itself reads in a recording, raw: the output of `perf report -D`.

    7f12 0x2a8 [0x48]: PERF_RECORD_SAMPLE(IP, 0x2): 12/12: 0x55d0 period: 250000 addr: 0
    ... FP chain: nr:3
    .....  0: fffffffffffffe00
    .....  1: 000055d0
"""
import re
from collections import Counter
from typing import NamedTuple

RECORD = re.compile(r"(?:\d+ )?\d+ 0x[0-9a-f]+(?:@\S+)? \[0x[0-9a-f]+\]: PERF_RECORD_(?P<type>\w+)")
SAMPLE = re.compile(r"(?:\d+ )?(?P<time>\d+) 0x[0-9a-f]+(?:@\S+)? \[0x[0-9a-f]+\]: "
                    r"PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): (?P<pid>-?\d+)/(?P<tid>-?\d+): "
                    r"(?P<ip>0x[0-9a-f]+|0) period: (?P<period>\d+)")
CHAIN_ENTRY = re.compile(r"\.\.\.\.\. +\d+: (?P<ip>[0-9a-f]+)$")
OUR_SAMPLE = re.compile(r"sample (?P<event>.*) (?P<pid>-?\d+)/(?P<tid>-?\d+) (?P<time>\d+) "
                        r"(?P<period>\d+) (?P<ip>[0-9a-f]+):(?P<chain>[0-9a-f ]*)(?: regs .*)?$")

FIRST_MARKER = 2**64 - 4095  # PERF_CONTEXT_MAX


class RawSample(NamedTuple):
    pid: int
    tid: int
    time: int
    period: int
    ip: int
    chain: tuple


def read_dump(text):
    """(samples, Counter of records by type in lower case) of `perf report -D`."""
    samples, counts, chain = [], Counter(), None
    for line in text.split("\n"):
        record = RECORD.match(line)
        if record:
            counts[record["type"].lower()] += 1
        sample = SAMPLE.match(line)
        entry = CHAIN_ENTRY.match(line)
        if sample:
            chain = []
            samples.append((sample, chain))
        elif entry and chain is not None:
            if int(entry["ip"], 16) < FIRST_MARKER:
                chain.append(int(entry["ip"], 16))
        elif not line.strip():
            chain = None
    return [RawSample(int(sample["pid"]), int(sample["tid"]), int(sample["time"]),
                      int(sample["period"]), int(sample["ip"], 16), tuple(chain))
            for sample, chain in samples], counts


def read_ours(text):
    """The samples that tests/targets/perfdata_dump.c printed."""
    for line in text.split("\n"):
        if line.startswith("sample "):
            sample = OUR_SAMPLE.match(line)
            assert sample, f"not understood: {line}"
            yield RawSample(int(sample["pid"]), int(sample["tid"]), int(sample["time"]),
                            int(sample["period"]), int(sample["ip"], 16),
                            tuple(int(ip, 16) for ip in sample["chain"].split()))
