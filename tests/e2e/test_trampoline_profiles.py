"""The documents' script in real profilers, on every interpreter, with nothing installed in it: the
whole chain <module> > baz > bar > foo in nearly every sample taken while the script runs."""
from .interpreters import every_python
from .profiles import chain
from .programs import with_support
from .targets import FOO_BAR_BAZ

WHOLE_CHAIN = chain("<module>", "baz", "bar", "foo")
SECONDS = 1


def share_of_the_chain(profile):
    return profile.while_running(FOO_BAR_BAZ).share_of(WHOLE_CHAIN)


@every_python()
def test_perf_shows_the_chain_by_unwinding_data(python, perf):
    recording = perf.record(*with_support(python, FOO_BAR_BAZ, SECONDS, jit=True),
                            call_graph="dwarf", clock="mono")
    assert share_of_the_chain(recording.inject().profile()) >= 0.97


@every_python(frame_pointers=True)
def test_perf_shows_the_chain_by_frame_pointers(python, perf):
    recording = perf.record(*with_support(python, FOO_BAR_BAZ, SECONDS), call_graph="fp")
    assert share_of_the_chain(recording.profile()) >= 0.97


@every_python()
def test_samply_shows_the_chain(python, samply):
    profile = samply.record(*with_support(python, FOO_BAR_BAZ, SECONDS))
    assert share_of_the_chain(profile) >= 0.97


@every_python()
def test_samply_shows_the_chain_of_a_jitdump(python, samply):
    profile = samply.record(*with_support(python, FOO_BAR_BAZ, SECONDS, jit=True))
    assert share_of_the_chain(profile) >= 0.97
