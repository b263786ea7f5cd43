"""Reads the page that `pitviper view` writes, as docs/viewer-format.md describes it, so that its
numbers can be compared with others.

    page = Page(path.read_text())
    page.profile.functions()[("work", "/app.py")].self_samples
"""
import base64
import gzip
import json
import re
import struct
from typing import NamedTuple

SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)
BASE64 = re.compile(r"[A-Za-z0-9+/]{64,}=*")
DATA_URL = "data:text/javascript;base64,"
PYTHON = 3  # functions.kind


def numbers(data):
    """The LEB128 numbers in some bytes."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0
    assert shift == 0, "a number without end"


def decode(encoding, data):
    if encoding == "varint":
        return list(numbers(data))
    if encoding == "delta":
        values, value = [], 0
        for number in numbers(data):
            value += (number >> 1) ^ -(number & 1)
            values.append(value)
        return values
    assert encoding == "runs", encoding
    pairs = iter(numbers(data))
    return [value for value in pairs for _ in range(next(pairs))]


class Counts:
    def __init__(self):
        self.self_samples = self.total_samples = self.self_periods = self.total_periods = 0

    def __iter__(self):
        return iter((self.self_samples, self.total_samples, self.self_periods, self.total_periods))


class Frame(NamedTuple):
    name: str
    module: str
    file: str
    line: int
    is_python: bool


class ViewerProfile:
    def __init__(self, text):
        data = gzip.decompress(base64.b64decode(text, validate=True))
        assert data[:4] == b"PVV1"
        length, = struct.unpack_from("<I", data, 4)
        self.header = json.loads(data[8:8 + length].decode())
        self.columns, at = {}, 8 + length
        for column in self.header["columns"]:
            content = data[at:at + column["bytes"]]
            at += column["bytes"]
            if column["encoding"] != "bytes":
                content = decode(column["encoding"], content)
            assert len(content) == column["count"], column["name"]
            self.columns[column["name"]] = content
        assert at == len(data)
        self.strings = list(self.cut_strings())
        self.check()

    def cut_strings(self):
        at = 0
        for length in self["strings.length"]:
            yield self["strings.bytes"][at:at + length].decode()
            at += length

    def __getitem__(self, name):
        return self.columns[name]

    def texts(self, name):
        return [self.strings[number] for number in self[name]]

    def table(self, name):
        """The number of rows, which all columns of a table have."""
        counts = {len(column) for key, column in self.columns.items()
                  if key.startswith(name + ".") and key not in ("strings.bytes", "folded.of")}
        assert len(counts) == 1, name
        return counts.pop()

    def check(self):
        """What the format promises."""
        assert self.strings[0] == ""
        assert len(set(self.strings)) == len(self.strings)
        tables = {name: self.table(name) for name in (
            "strings", "modules", "functions", "frames", "stacks", "folded", "processes", "threads",
            "samples", "sources")}
        for column, other in (
                ("functions.module", "modules"), ("frames.function", "functions"),
                ("samples.stack", "stacks"), ("samples.thread", "threads"),
                ("threads.process", "processes"), ("folded.of", "folded"),
                ("functions.name", "strings"), ("functions.file", "strings"),
                ("frames.file", "strings"), ("sources.text", "strings")):
            assert all(0 <= number < tables[other] for number in self[column]), column
        assert len(self["folded.of"]) == tables["stacks"]
        for tree in ("stacks", "folded"):
            assert all(parent < number for number, parent in
                       enumerate(self[tree + ".parent"]) if number)
            assert all(frame < tables["frames"] for frame in self[tree + ".frame"][1:])
        times = self["samples.time"]
        assert times == sorted(times) and (not times or times[0] == 0)
        clock = self.header["clock"]
        assert not times or times[-1] == clock["end_ns"] - clock["start_ns"]
        used = set(self["frames.function"])
        assert used == set(range(tables["functions"])), "functions that nothing uses"
        assert set(self["stacks.frame"][1:]) == set(range(tables["frames"]))

    def frames(self):
        names, files = self.texts("functions.name"), self.texts("functions.file")
        modules = self.texts("modules.name")
        lines = self.texts("frames.file")
        return [Frame(names[function], modules[self["functions.module"][function]],
                      files[function] or lines[number], self["frames.line"][number],
                      self["functions.kind"][function] == PYTHON)
                for number, function in enumerate(self["frames.function"])]

    def stacks(self, tree="stacks"):
        """Per node: its frames, outermost first."""
        frames = self.frames()
        stacks = [()]
        for parent, frame in zip(self[tree + ".parent"][1:], self[tree + ".frame"][1:]):
            stacks.append(stacks[parent] + (frames[frame],))
        return stacks

    def samples(self, tree="stacks"):
        """(frames, weight) of each sample of the event that is shown."""
        stacks = self.stacks(tree)
        for stack, weight, event in zip(self["samples.stack"], self["samples.weight"],
                                        self["samples.event"]):
            if event == self.header["event"]:
                yield stacks[stack if tree == "stacks" else self["folded.of"][stack]], weight

    def functions(self, tree="stacks"):
        """Counts by (name, file) of Python functions, as the page of report has them."""
        counts = {}
        for frames, weight in self.samples(tree):
            python = [(frame.name, frame.file) for frame in frames if frame.is_python]
            for key in set(python):
                row = counts.setdefault(key, Counts())
                row.total_samples += 1
                row.total_periods += weight
            if python:
                counts[python[-1]].self_samples += 1
                counts[python[-1]].self_periods += weight
        return counts

    def lines(self):
        """Samples by (name, file, line) of the innermost Python function."""
        counts = {}
        for frames, _ in self.samples():
            python = [frame for frame in frames if frame.is_python]
            if python and python[-1].line:
                key = (python[-1].name, python[-1].file, python[-1].line)
                counts[key] = counts.get(key, 0) + 1
        return counts

    def sources(self):
        return dict(zip(self.texts("sources.file"), self.texts("sources.text")))


class Page:
    def __init__(self, text):
        self.text = text
        self.scripts = [(match["attributes"], match["text"]) for match in SCRIPT.finditer(text)]
        self.profile = self.read("profile")
        self.base = self.read("base")
        self.title = re.search(r"<title>\s*(.*?)\s*</title>", text, re.DOTALL).group(1)

    def read(self, name):
        found = [body for attributes, body in self.scripts if f'id="{name}"' in attributes]
        assert len(found) <= 1
        return ViewerProfile(found[0]) if found else None

    @property
    def modules(self):
        """The program: names and texts of its modules."""
        maps = [body for attributes, body in self.scripts if 'type="importmap"' in attributes]
        imports = json.loads(maps[0])["imports"] if maps else {}
        assert all(url.startswith(DATA_URL) for url in imports.values())
        return {name: base64.b64decode(url[len(DATA_URL):]).decode()
                for name, url in imports.items()}

    @property
    def without_data(self):
        """What a browser sees of the page as HTML: all but what is base64."""
        return BASE64.sub("", self.text)
