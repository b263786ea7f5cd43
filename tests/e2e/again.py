"""Repeats a test of a recording that chance has a part in.

No two recordings are the same. Compared with what perf makes of them, once in many hundreds of samples one lies
in a place where perf goes another way for a reason that is not among the known ones (tables.py); compared with
the truth, a program may have run in step with what interrupts it. So the test is repeated with a new recording,
and fails when three in a row differ, as they do when something is wrong with us. Each repetition is shown as a
warning at the end of the run.
"""
import functools
import warnings

ATTEMPTS = 3


def again(test):
    @functools.wraps(test)
    def repeated(*arguments, **named):
        for left in reversed(range(ATTEMPTS)):
            try:
                return test(*arguments, **named)
            except AssertionError as difference:
                if not left:
                    raise
                warnings.warn(f"{test.__name__} is repeated: {str(difference)[:300]}", stacklevel=2)
    return repeated
