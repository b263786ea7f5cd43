"""Work that is done by C extensions of the standard library: json_and_re.py SECONDS (of CPU time)."""
import json
import random
import re
import sys
import time

PAIR = re.compile(r'(\w+)"\s*:\s*("[^"]*"|\d+)')
NAME = re.compile(r"user(\d+)")


def make_document():
    random.seed(1)
    return [{"id": i, "name": f"user{i}", "tags": ["a", "b", str(i)], "value": random.random(),
             "below": {"x": [1, 2, 3, {"y": None}]}} for i in range(300)]


def work(document):
    text = json.dumps(document, indent=1)
    again = json.loads(text)
    PAIR.findall(text)
    NAME.sub(lambda match: match.group(1) * 2, text)
    return sorted(again, key=lambda entry: entry["value"])


if __name__ == "__main__":
    documents = make_document()
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        documents = work(documents)
