"""Line tables of real code objects, of every interpreter: each instruction is on the line that the
interpreter itself says."""
import subprocess

from ..builds import SANITIZED, built, sanitized_environment
from .interpreters import every_python

# Prints two lines per code object: what python_lines_dump asks for, and its answer as the
# interpreter knows it.
DESCRIBE = r'''
import dis, importlib.util, sys

def truth(code):
    lines = [None] * len(code.co_code)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            lines[start:end] = [-1 if line is None else line] * (end - start)
    else:
        starts = list(dis.findlinestarts(code)) + [(len(lines), None)]
        for (start, line), (end, _) in zip(starts, starts[1:]):
            lines[start:end] = [line] * (end - start)
    return lines[::2]

def describe(code):
    table = code.co_linetable if hasattr(code, "co_lines") else code.co_lnotab
    lines = truth(code)
    print(sys.version_info[1], code.co_firstlineno, len(code.co_code), table.hex() or "-")
    print(*lines, "|", *sorted(set(lines) - {-1}))
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            describe(constant)

ODD = """
def far_away(a):
    x = [a,
         """ + "\n" * 1000 + """
         a + 1,
         lambda: 2]
    return x
def much_on_a_line(a):
    """ + "; ".join(f"a = a + {i}" for i in range(500)) + """
    return a
def back(a): return (a(
    1) if a else
    a(2))
def clean_up(a):
    with a as b, b as c:
        try:
            yield a
        except ValueError as error:
            print(error)
        finally:
            del b
async def waits(a):
    async for b in a:
        await b
    async with a: return [c async for c in a]
class Something(metaclass=type):
    x: int = 1
"""

modules = ["json.decoder", "re", "asyncio.base_events", "argparse", "_pydecimal", "typing",
           "dataclasses", "inspect", "pickletools", "tarfile", "contextlib", "enum"]
for module in modules:
    source = importlib.util.find_spec(module).loader.get_source(module)
    for optimize in (0, 2):
        describe(compile(source, module, "exec", optimize=optimize))
describe(compile(ODD, "odd", "exec"))
describe(compile("", "empty", "exec"))
describe(compile("\n\n\n1 + x", "expression", "eval"))
'''


@every_python()
def test_every_instruction_is_on_its_line(python, tmp_path):
    script = tmp_path / "describe.py"
    script.write_text(DESCRIBE)
    described = subprocess.run([python, "-I", script], stdout=subprocess.PIPE, text=True,
                               check=True, timeout=120).stdout.splitlines()
    questions, expected = described[::2], described[1::2]
    result = subprocess.run([built(SANITIZED, "tests/python_lines_dump")], text=True, timeout=120,
                            input="".join(question + "\n" for question in questions),
                            stdout=subprocess.PIPE, check=True, env=sanitized_environment())
    answers = result.stdout.splitlines()
    assert len(answers) == len(expected) > 2000
    wrong = [(question, answer) for question, answer, truth in zip(questions, answers, expected)
             if answer.split() != truth.split()]
    assert wrong == []
