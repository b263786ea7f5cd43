"""own_environments.py: starts programs with an environment of their own, in every way that there is. Each
prints its environment, is busy in a function of its way's name, and starts one more."""
import os
import subprocess
import sys

CHILD = """
import os, subprocess, sys, time
print(sys.argv[1], {name: value for name, value in os.environ.items() if name != 'LC_CTYPE'}, flush=True)
exec('''def NAME():
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
NAME()'''.replace("NAME", sys.argv[1]))
if len(sys.argv) == 2:
    subprocess.run([sys.executable, "-c", os.environ["TEXT"], sys.argv[1] + "_again", "last"])
"""
OWN = {"A": "b", "TEXT": CHILD}


def command(way):
    return [sys.executable, "-c", CHILD, way]


def in_child(way, become):
    pid = os.fork()
    if pid == 0:
        become(command(way))
    os.waitpid(pid, 0)


subprocess.run(command("by_subprocess"), env=OWN)
subprocess.run(command("by_subprocess_spawning"), env=OWN, close_fds=False)
os.waitpid(os.posix_spawn(sys.executable, command("by_posix_spawn"), OWN), 0)
os.waitpid(os.posix_spawnp(sys.executable, command("by_posix_spawnp"), OWN), 0)
in_child("by_execve", lambda words: os.execve(sys.executable, words, OWN))
in_child("by_another_preload", lambda words: os.execve(sys.executable, words,
                                                       {**OWN, "LD_PRELOAD": "libm.so.6"}))
# A wrapper that puts another library before what is there; its child starts one with nothing.
os.environ["LD_PRELOAD"] = "libm.so.6:" + os.environ.get("LD_PRELOAD", "")
subprocess.run([sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], env={'TEXT': sys.argv[3]})",
                *command("by_a_wrapper")])
subprocess.run(["/usr/bin/env", "-i", "A=b", f"TEXT={CHILD}", *command("by_env")])
os.environ.clear()
os.environ.update(OWN)
subprocess.run(command("by_clearing"))
