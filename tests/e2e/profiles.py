"""What a profiler saw, whichever profiler it was: samples with stacks, and shares of them.

    profile.while_running(SCRIPT).share_of(chain("<module>", "baz", "bar", "foo")) >= 0.97

The denominator decides what a share means, so it is said in the test:

  while_running(script)  For each thread, the samples between the first and the last one that shows
                         a Python function of the script. This leaves out the start and the end of
                         the interpreter, and nothing else: a stack that was cut off or has no
                         names in between counts as a miss. Were all stacks cut off from some
                         moment on, the last one would be early: so a part of all samples of the
                         processes has to be inside (at_least).
  of(command)            All samples of the processes with that name, from the first to the last.
"""
import re
from typing import NamedTuple, Optional, Tuple

# Below this a share says little: one sample is more than half a percent.
FEWEST_SAMPLES = 200

# A script is this much of its process at least, even one of a fraction of a second on the interpreter
# that takes longest to start. Less means that the functions were lost somewhere on the way.
SMALLEST_WINDOW = 0.5

PYTHON_NAME = re.compile(r"py::(?P<function>[^:]*):(?P<file>.*)$")


class Frame(NamedTuple):
    name: str    # the symbol, or an address where there is none
    module: str  # the file or mapping that the code belongs to

    @property
    def function(self) -> Optional[str]:
        """The qualified name of the Python function, None for other code."""
        match = PYTHON_NAME.match(self.name)
        return match and match["function"]

    @property
    def file(self) -> Optional[str]:
        match = PYTHON_NAME.match(self.name)
        return match and match["file"]


class Sample(NamedTuple):
    command: str
    pid: int
    tid: int
    time: float  # seconds
    stack: Tuple[Frame, ...]  # root first
    weight: int = 1  # what it stands for, in units of the event

    def shows(self, script):
        return any(frame.file == str(script) for frame in self.stack)


def chain(*functions):
    """Python functions that called each other in this order, no other Python function between."""
    wanted = list(functions)

    def matches(sample):
        seen = [frame.function for frame in sample.stack if frame.function]
        return any(seen[i:i + len(wanted)] == wanted for i in range(len(seen)))
    return matches


def calls(*names):
    """Functions of any language in this order, others between them allowed."""
    def matches(sample):
        rest = iter(frame.name for frame in sample.stack)
        return all(name in rest for name in names)
    return matches


class Profile:
    def __init__(self, samples, what="the recording"):
        self.samples = sorted(samples, key=lambda sample: sample.time)
        self.what = what

    @property
    def pids(self):
        return {sample.pid for sample in self.samples}

    def of(self, command):
        return Profile([sample for sample in self.samples if sample.command == command],
                       f"the samples of {command}")

    def while_running(self, script, at_least=SMALLEST_WINDOW):
        first, last = {}, {}  # by thread
        for sample in self.samples:
            if sample.shows(script):
                first.setdefault(sample.tid, sample.time)
                last[sample.tid] = sample.time
        inside = [sample for sample in self.samples if sample.tid in first
                  and first[sample.tid] <= sample.time <= last[sample.tid]]
        pids = {sample.pid for sample in inside}
        everything = sum(sample.pid in pids for sample in self.samples)
        assert len(inside) >= at_least * everything, \
            f"{script.name} is seen in {len(inside)} of {everything} samples only"
        return Profile(inside, f"the samples while {script.name} runs")

    def share_of(self, matches):
        assert len(self.samples) >= FEWEST_SAMPLES, \
            f"{self.what} are {len(self.samples)}: too few to tell"
        return sum(map(matches, self.samples)) / len(self.samples)

    def weight_of(self, matches):
        """In units of the event: nanoseconds for time."""
        return sum(sample.weight for sample in self.samples if matches(sample))
