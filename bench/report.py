"""Recordings for the report benchmark, and commands measured by time and memory."""
import os
import subprocess
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "PERF_CONFIG": os.devnull, "DEBUGINFOD_URLS": "", "LC_ALL": "C.UTF-8"}
FREQUENCY = 9999


def environment(home):
    return {**ENVIRONMENT, "HOME": str(home)}


class Recordings:
    """Records once and keeps the files until the program ends. The same folder is the home of all
    commands, and so has perf's cache of binaries for both sides: nobody's ~/.debug is touched."""

    def __init__(self, perf="perf"):
        self.perf = perf
        self.folder = tempfile.TemporaryDirectory(prefix="pitviper-bench-")
        self.path = Path(self.folder.name)
        self.made = {}

    def command(self, *arguments):
        return [self.perf, *map(str, arguments)]

    def make(self, name, options, command):
        if name not in self.made:
            data = self.path / f"{name}.data"
            subprocess.run(self.command("record", "-q", "-F", FREQUENCY, *options, "-o", data, "--",
                                        *command),
                           check=True, cwd=self.path, env=environment(self.path),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.made[name] = data
        return self.made[name]


def run_measured(commands, folder):
    """Seconds in all, and the most memory that one of them had, in megabytes."""
    seconds, megabytes = 0.0, 0.0
    for command in commands:
        with open(os.devnull, "wb") as nowhere, tempfile.TemporaryFile() as errors:
            begin = time.perf_counter()
            process = subprocess.Popen(list(map(str, command)), stdout=nowhere, stderr=errors,
                                       cwd=folder, env=environment(folder))
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            seconds += time.perf_counter() - begin
            errors.seek(0)
            assert status == 0, (command, errors.read().decode(errors="replace")[-500:])
        megabytes = max(megabytes, usage.ru_maxrss / 1024)
    return seconds, megabytes
