"""The script of CPython's documentation, running for a given CPU time: foo_bar_baz.py SECONDS

How long the original takes depends on the interpreter; a fixed time gives every interpreter the
same number of samples. All of it is spent below <module> > baz > bar > foo.
"""
import sys
import time

def foo(n):
    result = 0
    for _ in range(n):
        result += 1
    return result

def bar(n):
    foo(n)

def baz(n):
    bar(n)

if __name__ == "__main__":
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        baz(1000000)
