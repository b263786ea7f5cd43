"""Switches the sampler of the process that it is called in off and on.

Two processes that do the same differ by several percent, most likely by where their pages lie: more than the
sampler costs. So what it costs is measured in one process, where parts of the work are interrupted and parts
are not, in turn.

The sampler knows nothing of it: a thread may stop the perf events that it has opened, and its process the
timers that it has, which the kernel numbers from 0. The sampler (sample_trigger.c) has one of these.
"""
import ctypes

PR_TASK_PERF_EVENTS_DISABLE, PR_TASK_PERF_EVENTS_ENABLE = 31, 32
SYS_TIMER_SETTIME = 223  # x86-64


class Time(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class Timer(ctypes.Structure):
    _fields_ = [("interval", Time), ("value", Time)]


class Switch:
    """It is on at first. The process must have one thread."""

    def __init__(self):
        self.libc = ctypes.CDLL(None)
        self.interval = None

    def set_timer(self, interval):
        """Returns the interval that it had."""
        times, before = Timer(interval, interval), Timer()
        assert self.libc.syscall(SYS_TIMER_SETTIME, 0, 0, ctypes.byref(times), ctypes.byref(before)) == 0
        return before.interval

    def off(self):
        if self.interval is None:
            self.libc.prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0)
            self.interval = self.set_timer(Time())

    def on(self):
        if self.interval is not None:
            self.set_timer(self.interval)
            self.libc.prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0)
            self.interval = None
