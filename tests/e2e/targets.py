"""The programs that are profiled: tests/targets and the documents' script."""
from ..builds import BUILD, CHECKOUT, SANITIZED, built

TARGETS = CHECKOUT / "tests" / "targets"
MY_SCRIPT = CHECKOUT / "examples" / "my_script.py"
FOO_BAR_BAZ = CHECKOUT / "tests" / "targets" / "foo_bar_baz.py"
MIXED_WORK = CHECKOUT / "tests" / "targets" / "mixed_work.py"
DEEP_AND_CHANGING = CHECKOUT / "tests" / "targets" / "deep_and_changing.py"
JSON_AND_RE = CHECKOUT / "tests" / "targets" / "json_and_re.py"
THREADS_AND_FORKS = CHECKOUT / "tests" / "targets" / "threads_and_forks.py"

GENERATORS = CHECKOUT / "tests" / "targets" / "generators.py"
KNOWN_COSTS = CHECKOUT / "tests" / "targets" / "known_costs.py"
KERNEL_TIME = CHECKOUT / "tests" / "targets" / "kernel_time.py"
SHORT_LIVED = CHECKOUT / "tests" / "targets" / "short_lived.py"
WAITS = CHECKOUT / "tests" / "targets" / "waits.py"
PHASES = CHECKOUT / "tests" / "targets" / "phases.py"
SOAK = CHECKOUT / "tests" / "targets" / "soak.py"
DENY_SYSCALLS = CHECKOUT / "tests" / "targets" / "deny_syscalls.py"


def jit_spin():
    return built(BUILD, "tests/jit_spin")


def jit_around():
    """The command up to its last argument, the seconds."""
    return [built(BUILD, "tests/jit_around"), built(BUILD, "tests/leaf.so")]


def inlined():
    return built(BUILD, "tests/inlined")


def profile_dump():
    return built(SANITIZED, "tests/profile_dump")


def symbols():
    return built(BUILD, "tests/symbols")


def make_recording():
    return built(BUILD, "tests/make_recording")
