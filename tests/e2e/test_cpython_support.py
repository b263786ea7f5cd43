"""CPython's own support for profilers, with real perf and real samply: what works today, and what
ours is compared with. Where CPython's is known not to work there is no test: 3.12 and builds
without frame pointers under `perf record -g`, trampolines before 3.13.6 under samply."""
from .interpreters import every_python
from .profiles import chain
from .targets import FOO_BAR_BAZ

WHOLE_CHAIN = chain("<module>", "baz", "bar", "foo")


@every_python(at_least=(3, 13))
def test_perf_shows_the_chain_by_unwinding_data(python, perf):
    recording = perf.record(python, "-X", "perf_jit", FOO_BAR_BAZ, 1, call_graph="dwarf",
                            clock="mono")
    profile = recording.inject().profile()
    assert profile.while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN) >= 0.97


@every_python(at_least=(3, 12), frame_pointers=True)
def test_perf_shows_the_chain_by_frame_pointers(python, perf):
    profile = perf.record(python, "-X", "perf", FOO_BAR_BAZ, 1, call_graph="fp").profile()
    assert profile.while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN) >= 0.97


@every_python(at_least=(3, 13, 6))
def test_samply_shows_the_chain(python, samply):
    profile = samply.record(python, "-X", "perf", FOO_BAR_BAZ, 1)
    assert profile.while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN) >= 0.95


@every_python(at_least=(3, 13))
def test_without_support_no_python_function_shows(python, perf):
    profile = perf.record(python, FOO_BAR_BAZ, 1, call_graph="fp").profile()
    assert profile.share_of(chain("foo")) == 0
