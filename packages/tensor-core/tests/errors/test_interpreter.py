"""The end of the interpreter, sub-interpreters, and capsules of others: nothing ends the
process.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra

DAEMONS = """
import threading
import time
import candelabra

x = candelabra.rand(300, 300)
started = threading.Barrier(7)

def repeat(work):
    work()
    started.wait()
    while True:
        work()

for work in (
    lambda: x @ x, lambda: x.sort(), lambda: x.sum().item(), lambda: x.clone(), lambda: candelabra.stack([x, x]),
    lambda: x[x > 0.5],
):
    threading.Thread(target=repeat, args=(work,), daemon=True).start()
started.wait()
time.sleep(0.05)
print("ended")
"""

SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
text = '''
try:
    import candelabra
except ImportError as error:
    assert "sub-interpreter" in str(error), error
else:
    raise AssertionError("imported")
'''
assert interpreters.run_string(made, text) is None
import candelabra
print(candelabra.ones(2).sum().item())
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)


def test_daemon_threads_at_the_end_of_the_interpreter():
    for _ in range(3):
        ended = run(DAEMONS)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


def test_a_sub_interpreter_is_refused_and_the_main_one_is_not():
    ended = run(SUBINTERPRETER)
    assert (ended.returncode, ended.stdout) == (0, "2.0\n"), ended.stderr


class Tensor(ctypes.Structure):
    """``DLTensor``, and after it the fields of ``DLManagedTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


NAME = b"dltensor"


def capsule_of(tensor: Tensor) -> object:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(tensor), NAME, None)


@pytest.mark.parametrize(
    ("size", "fields", "message"),
    [
        (4, {"data": None}, "its data pointer is null"),
        (4, {"shape": None}, "without a shape"),
        (-4, {}, "negative size -4"),
        (2**62, {}, "is too large"),
        (4, {"ndim": 1000}, "1000 dimensions"),
        (4, {"ndim": -1}, "-1 dimensions"),
        (4, {"lanes": 4}, "lanes|vector"),
        (4, {"bits": 31}, "31|dtype"),
        (4, {"device_type": 99}, "device type 99"),
    ],
)
def test_damaged_capsules(size, fields, message):
    numbers = (ctypes.c_float * 4)(1, 2, 3, 4)
    sizes = (ctypes.c_int64 * 1)(size)
    tensor = Tensor(ctypes.addressof(numbers), 1, 0, 1, 2, 32, 1, sizes, None, 0, None, None)
    for name, value in fields.items():
        setattr(tensor, name, value)
    with pytest.raises(BufferError, match=message):
        candelabra.from_dlpack(capsule_of(tensor))


def test_an_empty_capsule_needs_no_memory():
    sizes = (ctypes.c_int64 * 1)(0)
    tensor = Tensor(None, 1, 0, 1, 2, 32, 1, sizes, None, 0, None, None)
    assert candelabra.from_dlpack(capsule_of(tensor)).shape == (0,)
