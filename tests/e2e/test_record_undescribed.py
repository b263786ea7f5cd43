"""pitviper record: code without unwinding information (src/unwind/code_rule_x86_64.c), or with some of a
kind that no compiler makes. Its stacks are complete, and the callers are the right ones."""
import platform
import subprocess

import pytest

from .again import again
from .interpreters import every_python
from .profiles import chain
from .recorder import Recorder
from .targets import TARGETS
from .test_record_surroundings import quality

FUNCTIONS = ["by_pushes", "by_moves", "with_buffer", "with_kept_pointer", "with_frame", "by_a_jump",
             "with_inner", "before_the_pointer", "by_an_index", "with_agreement"]

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="no code of this machine is followed")


@pytest.fixture
def recorder(recordings):
    return Recorder(recordings)


@pytest.fixture
def undescribed(compiled):
    """Compiles it: undescribed(*OPTIONS)."""
    return lambda *options: compiled(TARGETS / "undescribed.c", TARGETS / "undescribed_x86_64.S", *options)


def names_of(sample):
    return [frame.name for frame in sample.stack]


@again
def test_hand_written_code_in_a_program(recorder, undescribed):
    status, _, err = recorder.run("-F", 9999, undescribed(), 12000)
    assert status == 0, err
    assert quality_of_native(err) >= 99.5, err
    samples = [names_of(sample) for sample in recorder.profile().samples]
    for function in FUNCTIONS:
        stacks = [names[:names.index(function)] for names in samples if function in names]
        assert len(stacks) > 100, function
        assert all(before[-1] == "main" for before in stacks), function
    callers = {names[names.index("spend") - 1] for names in samples if "spend" in names}
    assert callers == set(FUNCTIONS) - {"with_inner", "with_agreement"}


def quality_of_native(err):
    return float(err.split("complete stacks ")[1].split(" %")[0])


# Each function of the library is called by a Python function of its name.
BY_CTYPES = """
import ctypes, sys, time
library = ctypes.PyDLL(sys.argv[1])
def turn(name, function):
    for _ in range(300):
        function()
calls = {}
for name in sys.argv[2:]:
    exec(f"def call_{name}(function):\\n    turn({name!r}, function)")
    calls[name] = globals()["call_" + name]
end = time.process_time() + 1.5
while time.process_time() < end:
    for name, call in calls.items():
        call(library[name])
"""


@every_python()
@again
def test_hand_written_code_below_python_functions(recorder, python, undescribed):
    library = undescribed("-shared", "-fPIC")
    status, _, err = recorder.run("-F", 4999, python, "-c", BY_CTYPES, library, *FUNCTIONS)
    assert status == 0, err
    complete, unmatched = quality(err)
    assert complete >= 99.5 and unmatched <= 0.5, err
    samples = recorder.profile().samples
    for function in FUNCTIONS:
        inside = [sample for sample in samples if function in names_of(sample)]
        assert len(inside) > 50, function
        assert all(map(chain("<module>", "call_" + function, "turn"), inside)), function


# Code that is made at run time, of instructions that no trampoline has:
#     push %rbx; push %rbp; mov $-1, %rbp; mov $200000, %rbx; 1: dec %rbx; jne 1b; pop %rbp; pop %rbx; ret
GENERATED = """
import ctypes, mmap, time
code = bytes.fromhex("5355" "48c7c5ffffffff" "48c7c3400d0300" "48ffcb" "75fb" "5d5bc3")
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
function = ctypes.PYFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
def call():
    function()
end = time.process_time() + 1
while time.process_time() < end:
    call()
"""


@every_python()
@again
def test_generated_code(recorder, python):
    status, _, err = recorder.run("-F", 2999, python, "-c", GENERATED)
    assert status == 0, err
    complete, unmatched = quality(err)
    assert complete >= 99.5 and unmatched <= 0.5, err
    assert sum(map(chain("<module>", "call"), recorder.profile().samples)) > 1000


# libffi's way back into Python: where it can, by trampolines that jump through pointers in the next page.
CALLBACKS = """
import ctypes, time
library = ctypes.CDLL(None)
pair = ctypes.POINTER(ctypes.c_int)
def compare(a, b):
    return a[0] - b[0]
callback = ctypes.CFUNCTYPE(ctypes.c_int, pair, pair)(compare)
def sort(numbers):
    library.qsort(numbers, len(numbers), ctypes.sizeof(ctypes.c_int), callback)
end = time.process_time() + 1.5
while time.process_time() < end:
    sort((ctypes.c_int * 300)(*(i * 7919 % 1000 for i in range(300))))
"""


@every_python()
@again
def test_callbacks(recorder, python):
    status, _, err = recorder.run("-F", 4999, python, "-c", CALLBACKS)
    assert status == 0, err
    complete, unmatched = quality(err)
    assert complete >= 99.5 and unmatched <= 0.5, err
    samples = recorder.profile().samples
    assert sum(map(chain("<module>", "sort", "compare"), samples)) > 1000
    inside = [sample for sample in samples if "qsort" in " ".join(names_of(sample))]
    assert sum(map(chain("<module>", "sort"), inside)) >= 0.99 * len(inside) > 1000


HASHES = """
import hashlib, sys, time
def digest(name, data):
    return hashlib.new(name, data).digest()
end = time.process_time() + 1
while time.process_time() < end:
    for name in "md5", "sha1", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s":
        digest(name, bytes(100000))
"""


@every_python()
def test_hashes(recorder, python):
    """OpenSSL's are hand-written."""
    status, _, err = recorder.run("-F", 4999, python, "-c", HASHES)
    assert status == 0, err
    complete, unmatched = quality(err)
    assert complete >= 99.5 and unmatched <= 0.5, err
    assert recorder.profile().share_of(chain("<module>", "digest")) >= 0.8


NUMPY = """
import sys, time
import numpy
def product(a, b): return a @ b
def vector(a, b): return a @ b[0]
def solve(a, b): return numpy.linalg.solve(a, b)
def eigen(a): return numpy.linalg.eig(a)
def decompose(a): return numpy.linalg.svd(a)
random = numpy.random.default_rng(1).random
a, b = random((300, 300)), random((300, 300))
single, complicated = a.astype("f4"), a + 1j * b
end = time.process_time() + 2
while time.process_time() < end:
    for _ in range(5):
        product(a, b), product(single, single)
    for _ in range(50):
        vector(a, b)
    product(complicated, complicated), solve(a, b), eigen(a[:80, :80]), decompose(a[:80, :80])
    numpy.fft.fft(a.ravel()), numpy.sort(a.ravel())
"""


@every_python()
@pytest.mark.parametrize("core", ["", "Haswell", "Nehalem", "Prescott"])
@again
def test_numpys_kernels(recorder, python, core):
    """With OpenBLAS these are hand-written for each kind of processor; newer ones run older code."""
    if subprocess.run([python.executable, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this interpreter has no numpy")
    status, _, err = recorder.run("-F", 4999, "env", f"OPENBLAS_CORETYPE={core}", "OPENBLAS_NUM_THREADS=1",
                                  python, "-c", NUMPY)
    assert status == 0, err
    complete, unmatched = quality(err)
    assert complete >= 99.5 and unmatched <= 0.5, err
    products = [sample for sample in recorder.profile().samples
                if any(name.startswith("dgemm_kernel") for name in names_of(sample))]
    callers = ["product", "solve", "eigen", "decompose"]
    assert all(any(frame.function in callers for frame in sample.stack) for sample in products)
