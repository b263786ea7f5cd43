"""A browser that opens pages of `pitviper view` and checks them: chromium, driven by
tests/viewer/serve.mjs.

    browser.check("zoom", path="/tmp/page.html")

The checks are in tests/viewer; one that fails raises AssertionError with what was wrong. Where the
browser or what drives it is missing, obstacle() says what. That is a skip, but a failure where all
tests must run: with PITVIPER_ALL_TESTS, outside of the sid root.
"""
import json
import os
import shutil
import subprocess

from ..builds import CHECKOUT

FOLDER = CHECKOUT / "tests" / "viewer"


def obstacle():
    """Why there can be no browser, or None."""
    if not shutil.which("chromium"):
        return "there is no chromium"
    if not shutil.which("node"):
        return "there is no node"
    if not (FOLDER / "node_modules" / "playwright-core").is_dir():
        return "there is no playwright-core: './dev test' installs it"
    return None


def is_required():
    return "PITVIPER_ALL_TESTS" in os.environ and "PITVIPER_MATRIX" not in os.environ


class Browser:
    def __init__(self, folder):
        environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder),
                       "PITVIPER_CHROMIUM": shutil.which("chromium")}
        self.process = subprocess.Popen(["node", FOLDER / "serve.mjs"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=environment, text=True)

    def check(self, check, path, **arguments):
        request = {"check": check, "path": str(path), **arguments}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the browser's process ended"
        answer = json.loads(answer)
        assert "error" not in answer, f"{check}: {answer['error']}"
        return answer["result"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
