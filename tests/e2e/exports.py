"""What `pitviper export` writes, read back: each format by a strict reader, those of the formats'
own tools where there are any. All give the same: stacks, and what they weigh.

    stacks = read_folded(text)
    by_function(stacks)["py::work:/app.py"].total

A stack is a tuple of frames, outermost first; a frame is (name, line), where the name is perf's own
("py::Class.method:/path/file.py" for Python functions) and the line 0 where the format has none.
"""
import base64
import collections
import contextlib
import functools
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import xml.etree.ElementTree
from pathlib import Path
from typing import NamedTuple

import pytest

from ..builds import CHECKOUT

TIME_LIMIT_S = 120
PROTO = CHECKOUT / "tests" / "data" / "profile.proto"
PACKAGES = CHECKOUT / "tests" / "export"


def missing(reason):
    """A reader that is not there: a skip, but in a complete run of the tests it has to be there.
    The sid root has no browser."""
    if "PITVIPER_ALL_TESTS" in os.environ and "PITVIPER_MATRIX" not in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)


class Stack(NamedTuple):
    thread: str  # what the format says of it
    frames: tuple
    weight: int


class Sums(NamedTuple):
    own: int
    total: int


def by_function(stacks, wanted=lambda name: True):
    """{name: Sums} of the functions that are wanted: as if there were no others."""
    own, total = collections.Counter(), collections.Counter()
    for stack in stacks:
        names = [name for name, _ in stack.frames if wanted(name)]
        if names:
            own[names[-1]] += stack.weight
        for name in set(names):
            total[name] += stack.weight
    return {name: Sums(own[name], total[name]) for name in total}


def by_line(stacks, wanted):
    """{(name, line): weight} of the innermost function that is wanted."""
    sums = collections.Counter()
    for stack in stacks:
        frames = [frame for frame in stack.frames if wanted(frame[0])]
        if frames and frames[-1][1]:
            sums[frames[-1]] += stack.weight
    return dict(sums)


def is_python(name):
    return name.startswith("py::")


def symbol(name, file, is_python_file):
    return f"py::{name}:{file}" if is_python_file else name


# --- folded ---------------------------------------------------------------------------------------

FOLDED_LINE = re.compile(r"(?P<frames>[^\x00-\x1f\x7f]+) (?P<weight>[0-9]+)")


def read_folded(data, has_lines=False):
    text = data.decode("utf-8")  # strict: it is text, whatever the names were
    assert not text or text.endswith("\n")
    for line in text.split("\n")[:-1]:
        match = FOLDED_LINE.fullmatch(line)
        assert match, line
        comm, *frames = match["frames"].split(";")
        assert all(frames), line
        yield Stack(comm, tuple(split_line(frame, has_lines) for frame in frames),
                    int(match["weight"]))


def split_line(frame, has_lines):
    match = re.fullmatch(r"(py::.*):(\d+)", frame) if has_lines else None
    return (match[1], int(match[2])) if match else (frame, 0)


# --- speedscope -----------------------------------------------------------------------------------

def read_speedscope(document):
    """The stacks of a file of ours, or of one that speedscope itself saved."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [(symbol(frame["name"], frame.get("file"), "file" in frame), frame.get("line", 0))
              for frame in document["shared"]["frames"]]
    for profile in document["profiles"]:
        read = read_sampled if profile["type"] == "sampled" else read_evented
        for stack, weight in read(profile):
            yield Stack(profile["name"], tuple(frames[number] for number in stack), weight)


def read_sampled(profile):
    assert len(profile["samples"]) == len(profile["weights"])
    assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
    assert profile["unit"] in ("nanoseconds", "none")
    yield from zip(profile["samples"], profile["weights"])


def read_evented(profile):
    stack, at = [], profile["startValue"]
    for event in profile["events"]:
        if event["at"] != at:
            yield tuple(stack), event["at"] - at
            at = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    assert not stack


@functools.lru_cache(maxsize=None)
def packages():
    """The folder of the readers that npm has, or a skip."""
    if not shutil.which("npm"):
        missing("npm is not installed: apt install npm")
    folder = PACKAGES / "node_modules"
    lock = (PACKAGES / "package-lock.json").read_bytes()
    stamp = folder / ".installed"
    if not stamp.is_file() or stamp.read_bytes() != lock:
        result = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                                cwd=PACKAGES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, timeout=300)
        if result.returncode:
            missing(f"npm can't get what tests/export names: {result.stdout.strip()[-200:]}")
        stamp.write_bytes(lock)
    return folder


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return missing("there is no browser: apt install chromium")


# Presses speedscope's button "Export" as soon as there is one. What it would save is put into the
# page instead, and errors likewise.
PROBE = """<script>
function show(id, text) {
    const element = document.createElement("pre");
    element.id = id;
    element.textContent = text;
    document.body.appendChild(element);
}
window.addEventListener("error", event => show("error", event.message));
window.addEventListener("unhandledrejection", event => show("error", String(event.reason)));
HTMLAnchorElement.prototype.click = () => {};
URL.createObjectURL = blob => {
    blob.text().then(text => show("saved", text));
    return "about:blank";
};
const timer = setInterval(() => {
    for (const element of document.querySelectorAll("div"))
        if (element.textContent.endsWith("Export") && element.children.length <= 1) {
            clearInterval(timer);
            element.click();
            return;
        }
}, 50);
</script>"""


def saved_by_speedscope(path):
    """Lets speedscope's own page import a file in a browser and save what it understood: its JSON."""
    release = packages() / "speedscope" / "dist" / "release"
    program = browser()
    with tempfile.TemporaryDirectory(prefix="pitviper-speedscope-") as folder:
        page = Path(folder, "release")
        shutil.copytree(release, page)
        index = (page / "index.html").read_text()
        assert "<body>" in index
        (page / "index.html").write_text(index.replace("<body>", "<body>" + PROBE))
        encoded = base64.b64encode(path.read_bytes()).decode()
        (page / "load.js").write_text(f'speedscope.loadFileFromBase64("{path.name}", "{encoded}")')
        result = subprocess.run(
            [program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/data",
             "--allow-file-access-from-files", "--virtual-time-budget=60000", "--dump-dom",
             f"file://{page}/index.html#localProfilePath={page}/load.js"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=TIME_LIMIT_S)
    errors = re.findall(r'<pre id="error">(.*?)</pre>', result.stdout, re.S)
    assert not errors, errors
    saved, = re.findall(r'<pre id="saved">(.*?)</pre>', result.stdout, re.S)
    return json.loads(html.unescape(saved))


# --- Firefox Profiler -----------------------------------------------------------------------------

COLUMNS = {
    "samples": ["stack", "time", "weight"],
    "stackTable": ["prefix", "frame", "category", "subcategory"],
    "frameTable": ["address", "inlineDepth", "category", "subcategory", "func", "line", "column",
                   "nativeSymbol", "innerWindowID", "implementation"],
    "funcTable": ["name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber",
                  "columnNumber"],
    "resourceTable": ["lib", "name", "host", "type"],
    "nativeSymbols": ["address", "functionSize", "libIndex", "name"],
    "markers": ["data", "name", "startTime", "endTime", "phase", "category"],
}
THREAD_KEYS = {"processType", "processName", "processStartupTime", "processShutdownTime",
               "registerTime", "unregisterTime", "pausedRanges", "name", "isMainThread", "pid", "tid",
               "stringArray", *COLUMNS}
LIB_KEYS = {"name", "path", "debugName", "debugPath", "breakpadId", "codeId", "arch"}


def check_thread(thread, profile):
    """Every column is as long as its table, every number leads somewhere."""
    assert set(thread) == THREAD_KEYS
    for name, columns in COLUMNS.items():
        assert set(thread[name]) - {"length", "weightType", "threadCPUDelta"} == set(columns)
        assert {len(thread[name][column]) for column in columns} == {thread[name]["length"]}
    strings = thread["stringArray"]
    assert len(set(strings)) == len(strings) and all(isinstance(text, str) for text in strings)
    stacks, frames, functions = (thread[name] for name in ("stackTable", "frameTable", "funcTable"))
    assert all(prefix is None or 0 <= prefix < row for row, prefix in enumerate(stacks["prefix"]))
    links = [(stacks["frame"], frames["length"]), (frames["func"], functions["length"]),
             (functions["name"], len(strings)),
             ([file for file in functions["fileName"] if file is not None], len(strings)),
             ([row for row in functions["resource"] if row != -1], thread["resourceTable"]["length"]),
             (thread["resourceTable"]["name"], len(strings)),
             (thread["resourceTable"]["lib"], len(profile["libs"])),
             ([stack for stack in thread["samples"]["stack"] if stack is not None],
              stacks["length"]),
             (stacks["category"] + frames["category"], len(profile["meta"]["categories"]))]
    for numbers, count in links:
        assert all(0 <= number < count for number in numbers)
    times = thread["samples"]["time"]
    assert len(thread["samples"].get("threadCPUDelta", times)) == len(times)
    assert times == sorted(times) and all(time >= 0 for time in times)
    assert len(set(zip(stacks["prefix"], stacks["frame"]))) == stacks["length"]
    assert all(isinstance(thread[key], str) for key in ("pid", "tid", "name", "processName"))


def read_firefox(profile):
    meta = profile["meta"]
    assert (meta["version"], meta["preprocessedProfileVersion"]) == (24, 49)
    assert meta["interval"] > 0 and all(set(lib) == LIB_KEYS for lib in profile["libs"])
    for thread in profile["threads"]:
        check_thread(thread, profile)
        is_time = thread["samples"]["weightType"] == "tracing-ms"
        stacks = firefox_stacks(thread)
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            yield Stack(f"{thread['pid']}/{thread['tid']} {thread['name']}",
                        () if stack is None else stacks[stack],
                        round(weight * 1000000) if is_time else weight)


def firefox_stacks(thread):
    strings, functions, frames = (thread[name] for name in
                                  ("stringArray", "funcTable", "frameTable"))
    stacks = []
    for prefix, row in zip(thread["stackTable"]["prefix"], thread["stackTable"]["frame"]):
        function = frames["func"][row]
        file = functions["fileName"][function]
        frame = (symbol(strings[functions["name"][function]], file and strings[file],
                        functions["resource"][function] == -1), frames["line"][row] or 0)
        stacks.append((() if prefix is None else stacks[prefix]) + (frame,))
    return stacks


@contextlib.contextmanager
def firefox_profiler():
    """Asks the Firefox Profiler's own program: ask("thread", "list") is its JSON. It has a server per
    home, which ends here."""
    program = packages() / "@firefox-devtools" / "profiler-cli" / "dist" / "profiler-cli.js"
    with tempfile.TemporaryDirectory(prefix="pitviper-firefox-") as home:
        def run(*arguments):
            return subprocess.run(["node", program, *arguments], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=TIME_LIMIT_S,
                                  env={**os.environ, "HOME": home})

        def ask(*arguments):
            result = run(*arguments, "--json")
            assert result.returncode == 0, result.stdout
            return json.loads(result.stdout)

        def load(path):
            said = run("load", path).stdout  # does not wait long for its server
            for _ in range(60):
                if run("thread", "list", "--json").returncode == 0:
                    return
                time.sleep(1)
            pytest.fail(said)
        try:
            yield load, ask
        finally:
            run("stop", "--all")


def firefox_functions(path):
    """{(pid, tid): [(name, own, total)]} in nanoseconds, as the Firefox Profiler adds them up."""
    with firefox_profiler() as (load, ask):
        load(path)
        threads = ask("thread", "list", "--limit", "0")["threads"]
        functions = {}
        for thread in threads:
            rows = ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0",
                       "--include-idle")["functions"]
            functions[thread["pid"], thread["tid"]] = sorted(
                (row["name"], round(row["selfSamples"] * 1000000),
                 round(row["totalSamples"] * 1000000)) for row in rows)
        return functions


# --- pprof ----------------------------------------------------------------------------------------

def decode_pprof(data):
    """The message as a tree {field: [values]}, by protoc."""
    if not shutil.which("protoc"):
        missing("protoc is not installed: apt install protobuf-compiler")
    result = subprocess.run(["protoc", f"--proto_path={PROTO.parent}", "--decode=pprof.Profile",
                             PROTO.name], input=data, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=TIME_LIMIT_S)
    assert (result.returncode, result.stderr) == (0, b"")
    return read_text_format(iter(result.stdout.decode("ascii").split("\n")))


ESCAPES = {"n": 10, "r": 13, "t": 9, '"': 34, "'": 39, "\\": 92}


def unescape(text):
    def character(match):
        code = match[1]
        return bytes([ESCAPES[code] if code in ESCAPES else int(code, 8)])
    return re.sub(rb"\\([0-7]{3}|.)", lambda match: character([None, match[1].decode()]),
                  text.encode()).decode("utf-8")


def read_text_format(lines):
    message = collections.defaultdict(list)
    for line in lines:
        line = line.strip()
        if line == "}":
            return message
        if line.endswith(" {"):
            message[line[:-2]].append(read_text_format(lines))
        elif line:
            name, value = line.split(": ", 1)
            assert not name.isdigit(), f"a field that the format does not have: {line}"
            message[name].append(unescape(value[1:-1]) if value[0] == '"' else
                                 value == "true" if value in ("true", "false") else int(value))
    return message


def one(message, name, default=0):
    values = message.get(name, [default])
    assert len(values) == 1
    return values[0]


def read_pprof(profile, value=1):
    """Stacks that weigh value number `value`: 0 samples, 1 what they stand for."""
    strings = profile["string_table"]
    assert strings[0] == "" and len(set(strings)) == len(strings)
    mappings = {one(mapping, "id"): mapping for mapping in profile["mapping"]}
    functions = {one(function, "id"): function for function in profile["function"]}
    locations = {}
    for location in profile["location"]:
        mapping = mappings[one(location, "mapping_id")]
        assert one(location, "address") < one(mapping, "memory_limit")
        lines = location.get("line", [])
        if lines:
            function = functions[one(lines[0], "function_id")]
            frame = (strings[one(function, "system_name")], one(lines[0], "line"))
        else:
            name = strings[one(mapping, "filename")].rsplit("/", 1)[-1]
            frame = (name if name.startswith("[") else f"[{name}]", 0)
        assert one(location, "id") not in locations and one(location, "id") > 0
        locations[one(location, "id")] = frame
    assert 0 not in mappings and 0 not in functions
    used = set()
    for sample in profile["sample"]:
        assert len(sample["value"]) == len(profile["sample_type"]) == 2
        labels = {strings[one(label, "key")]: one(label, "num") or strings[one(label, "str")]
                  for label in sample["label"]}
        assert set(labels) == {"pid", "tid", "thread"}
        used.update(sample["location_id"])
        yield Stack(f"{labels['pid']}/{labels['tid']} {labels['thread']}",
                    tuple(locations[number] for number in reversed(sample["location_id"])),
                    sample["value"][value])
    assert used == set(locations)


# --- callgrind ------------------------------------------------------------------------------------

ANNOTATED = re.compile(r"\s*([\d,]+) \([\s\d.]+%\)\s+([\d,]+) \([\s\d.]+%\)\s+(.*?)"
                       r"( \[(\[[^\]]*\]|[^\[\]]*)\])?$")


def annotate(path, inclusive):
    """{"file:function": (weight, samples)} as callgrind_annotate tells, and the whole."""
    if not shutil.which("callgrind_annotate"):
        missing("callgrind_annotate is not installed: apt install valgrind")
    result = subprocess.run(["callgrind_annotate", f"--inclusive={'yes' if inclusive else 'no'}",
                             "--threshold=100", "--auto=no", path], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, timeout=TIME_LIMIT_S,
                            cwd="/")  # it shortens names of files below the folder that it is in
    assert (result.returncode, result.stderr) == (0, b"")
    rows, whole = {}, None
    for line in result.stdout.decode("utf-8").split("\n"):
        match = ANNOTATED.match(line)
        if match and match[3] == "PROGRAM TOTALS":
            whole = tuple(int(match[i].replace(",", "")) for i in (1, 2))
        elif match:
            rows[match[3]] = tuple(int(match[i].replace(",", "")) for i in (1, 2))
    return rows, whole


# --- SVG ------------------------------------------------------------------------------------------

class Box(NamedTuple):
    label: str
    x: float
    y: float
    width: float
    weight: int
    kind: str


NAMESPACE = "{http://www.w3.org/2000/svg}"


def read_svg(data):
    """The boxes of a flame graph. Nothing in it but boxes and text: no script, no link."""
    root = xml.etree.ElementTree.fromstring(data)
    kinds = {element.tag.replace(NAMESPACE, "") for element in root.iter()}
    assert kinds <= {"svg", "style", "g", "title", "rect", "text"}
    for element in root.iter():
        assert set(element.attrib) <= {"class", "x", "y", "width", "height", "viewBox"}
    boxes = []
    for group in root.iter(NAMESPACE + "g"):
        title = group.find(NAMESPACE + "title").text
        rect = group.find(NAMESPACE + "rect").attrib
        weight = re.search(r"\n[\d.]+ %, ([\d,]+) \w+$", title)
        boxes.append(Box(title.split("\n")[0], float(rect["x"]), float(rect["y"]),
                         float(rect["width"]), int(weight[1].replace(",", "")), rect["class"]))
    return boxes
