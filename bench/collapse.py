"""The same as collapse.awk in the way of stackcollapse-perf.pl: a scripting language, a regular
expression for each line."""
import collections
import re
import sys

HEAD = re.compile(r"(\S.*?)\s+(\d+)\s*$")
FRAME = re.compile(r"\s*[0-9a-f]+ (.*)")


def main(lines):
    sums, comm, period, stack = collections.Counter(), None, 0, []
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if comm is not None:
                sums[";".join([comm, *reversed(stack)])] += period
            comm, stack = None, []
        elif comm is None:
            head = HEAD.match(line)
            comm, period = (head[1], int(head[2])) if head else (None, 0)
        else:
            frame = FRAME.match(line)
            if frame:
                stack.append(frame[1].replace(";", ":"))
    for stack, weight in sums.items():
        print(stack, weight)


sys.stdin.reconfigure(errors="replace", newline="\n")
sys.stdout.reconfigure(errors="replace")
main(sys.stdin)
