"""Memory shared with NumPy, by DLPack and by the buffer protocol: values, aliasing, lifetime,
errors.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import candelabra

DTYPES = {
    "bool": np.bool_, "uint8": np.uint8, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64, "complex64": np.complex64, "complex128": np.complex128,
}  # fmt: skip


def sample(name: str, *shape: int) -> np.ndarray:
    numbers = np.random.default_rng(0).normal(size=shape) * 50
    if name.startswith("complex"):
        numbers = numbers + 1j * numbers[::-1]
    return (
        (numbers > 0)
        if name == "bool"
        else numbers.astype(DTYPES[name])
        if name != "uint8"
        else np.abs(numbers).astype(np.uint8)
    )


# ---- NumPy


@pytest.mark.parametrize("name", DTYPES)
def test_from_numpy_and_back_share_memory(name: str) -> None:
    array = sample(name, 3, 4)
    tensor = candelabra.from_numpy(array)
    assert tensor.dtype == getattr(candelabra, name)
    assert tensor.data_ptr() == array.ctypes.data
    back = tensor.numpy()
    assert back.dtype == array.dtype
    assert back.ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(back, array)
    array[1, 2] = not array[1, 2] if name == "bool" else 7
    np.testing.assert_array_equal(back, array)
    assert tensor.tolist() == array.tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T, lambda a: a[::2, 1:], lambda a: a[1], lambda a: a[1, 2], lambda a: a[:0], lambda a: a[:, None],
        lambda a: np.broadcast_to(a, (2, 4, 6)).copy()[:, ::2], lambda a: np.asfortranarray(a),
    ],
    ids=["transposed", "strided", "row", "element", "empty", "new axis", "copied", "fortran"],
)  # fmt: skip
def test_strides_survive(view: Any) -> None:
    array = np.asarray(view(np.arange(24.0).reshape(4, 6)))
    tensor = candelabra.from_numpy(array)
    back = tensor.numpy()
    assert back.shape == array.shape
    np.testing.assert_array_equal(back, array)
    if array.size > 1:
        assert [s for s, n in zip(back.strides, array.shape, strict=True) if n > 1] == [
            s for s, n in zip(array.strides, array.shape, strict=True) if n > 1
        ]


def test_the_array_lives_as_long_as_the_tensor() -> None:
    array = np.arange(5.0)
    alive = weakref.ref(array)
    view = candelabra.from_numpy(array)[1:]
    del array
    gc.collect()
    assert alive() is not None
    assert view.tolist() == [1, 2, 3, 4]
    del view
    gc.collect()
    assert alive() is None


def test_the_tensor_memory_lives_as_long_as_the_array() -> None:
    array = candelabra.full((1000,), 3.0).numpy()
    others = [candelabra.zeros(1000) for _ in range(4)]
    assert (array == 3).all()
    assert len(others) == 4


def test_an_exported_buffer_keeps_the_memory_when_the_tensor_gets_other() -> None:
    tensor = candelabra.full((1000,), 3.0)
    array = tensor.numpy()
    tensor.data = candelabra.zeros(2)
    gc.collect()
    candelabra.zeros(1000)
    assert (array == 3).all()


def test_no_reference_is_lost() -> None:
    array = np.arange(4)
    before = sys.getrefcount(array)
    for _ in range(100):
        candelabra.from_numpy(array).numpy()
        candelabra.tensor(array)
        candelabra.from_dlpack(array).__dlpack__()
    gc.collect()
    assert sys.getrefcount(array) == before


def test_from_numpy_errors() -> None:
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        candelabra.from_numpy([1])
    with pytest.raises(ValueError, match="At least one stride in the given numpy array is negative"):
        candelabra.from_numpy(np.arange(3)[::-1])
    with pytest.raises(
        TypeError, match="can't convert np.ndarray of type numpy.*The only supported types are: float64"
    ):
        candelabra.from_numpy(np.arange(3, dtype=np.longdouble))
    for array in (np.array(["a"]), np.array([object()]), np.array([1], "M8[s]"), np.zeros(1, [("a", "i4")])):
        with pytest.raises(TypeError, match="can't convert np.ndarray of type numpy"):
            candelabra.from_numpy(array)
    with pytest.raises(ValueError, match="byte order"):
        candelabra.from_numpy(np.arange(3).astype(">i8"))
    misaligned = np.zeros(4, [("a", "i1"), ("b", "i4")])["b"]
    with pytest.raises(ValueError, match="not a multiple of the element byte size"):
        candelabra.from_numpy(misaligned)


def test_a_read_only_array_warns() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        assert candelabra.from_numpy(array).tolist() == [0, 1, 2]


def test_numpy_errors() -> None:
    grad = candelabra.ones(2).requires_grad_()
    message = r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."
    for call in (grad.numpy, lambda: np.asarray(grad), lambda: np.array(grad)):
        with pytest.raises(RuntimeError, match=message):
            call()
    assert grad.numpy(force=True).tolist() == [1, 1]
    assert grad.detach().numpy().tolist() == [1, 1]
    with pytest.raises(TypeError, match="Got unsupported ScalarType BFloat16"):
        candelabra.ones(2, dtype=candelabra.bfloat16).numpy()
    with pytest.raises(TypeError):
        candelabra.ones(2).numpy(1)


def test_array_protocol() -> None:
    tensor = candelabra.tensor([[1.5, 2.5]])
    shared = np.asarray(tensor)
    shared[0, 0] = 7
    assert tensor[0, 0].item() == 7
    assert np.asarray(tensor, dtype=np.float64).dtype == np.float64
    assert tensor.__array__(np.int32).tolist() == [[7, 2]]
    copied = tensor.__array__(copy=True)
    copied[0, 0] = 0
    assert tensor[0, 0].item() == 7
    with pytest.raises(ValueError, match="Unable to avoid copy"):
        tensor.__array__(np.float64, copy=False)
    assert (np.ones(2, np.float32) + np.asarray(tensor)).tolist() == [[8, 3.5]]


def test_numpy_is_imported_only_when_asked_for() -> None:
    code = """
import sys, candelabra
x = candelabra.tensor([[1.0, 2.0]]) * 2
assert x.tolist() == [[2, 4]] and x[0, 1].item() == 4
assert "numpy" not in sys.modules
x.numpy()
assert "numpy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- the buffer protocol


@pytest.mark.parametrize("name", DTYPES)
def test_buffer_protocol(name: str) -> None:
    array = sample(name, 2, 3)
    tensor = candelabra.tensor(array)
    view = memoryview(tensor)
    assert view.shape == (2, 3)
    assert view.itemsize == array.itemsize
    assert view.strides == array.strides
    assert not view.readonly
    np.testing.assert_array_equal(np.asarray(view), array)
    assert bytes(view) == array.tobytes()


def test_buffer_of_a_strided_tensor() -> None:
    tensor = candelabra.arange(6, dtype=candelabra.int32).reshape(2, 3).t()
    view = memoryview(tensor)
    assert view.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert view.f_contiguous
    assert not view.c_contiguous
    with pytest.raises((BufferError, TypeError), match="contiguous"):
        (ctypes.c_char * 24).from_buffer(tensor)
    view[0, 1] = 9
    assert tensor[0, 1].item() == 9


def test_buffer_errors() -> None:
    with pytest.raises(BufferError, match="requires grad"):
        memoryview(candelabra.ones(2).requires_grad_())
    with pytest.raises(BufferError, match="no format for bfloat16"):
        memoryview(candelabra.ones(2, dtype=candelabra.bfloat16))


def test_writing_by_a_raw_buffer() -> None:
    tensor = candelabra.zeros(4, dtype=candelabra.uint8)
    (ctypes.c_uint8 * 4).from_buffer(tensor)[2] = 200
    assert tensor.tolist() == [0, 0, 200, 0]


# ---- DLPack


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_to_numpy_and_back(name: str) -> None:
    array = sample(name, 3, 4)
    tensor = candelabra.tensor(array)
    there = np.from_dlpack(tensor)
    assert there.ctypes.data == tensor.data_ptr()
    np.testing.assert_array_equal(there, array)
    back = candelabra.from_dlpack(array)
    assert back.data_ptr() == array.ctypes.data
    assert back.dtype == tensor.dtype
    assert back.tolist() == array.tolist()


def test_dlpack_within() -> None:
    for tensor in (
        candelabra.ones(2, 3, dtype=candelabra.bfloat16),
        candelabra.arange(12).reshape(3, 4).t()[1:, ::2],
        candelabra.tensor(3.0),
        candelabra.empty(0, 3),
    ):
        other = candelabra.from_dlpack(tensor)
        assert other.dtype == tensor.dtype
        assert other.shape == tensor.shape
        assert other.tolist() == tensor.tolist()
        if tensor.numel():
            assert other.data_ptr() == tensor.data_ptr()


def test_dlpack_strides() -> None:
    array = np.arange(12).reshape(3, 4)
    assert candelabra.from_dlpack(array.T).stride() == (1, 4)
    assert np.from_dlpack(candelabra.arange(12).reshape(3, 4).t()).strides == (8, 32)


def test_dlpack_capsules() -> None:
    tensor = candelabra.ones(3)
    assert "dltensor" in repr(tensor.__dlpack__())
    assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 0)))
    assert "dltensor_versioned" not in repr(tensor.__dlpack__(max_version=(0, 8)))
    for versions in (None, (1, 0), (1, 2), (2, 0)):
        capsule = tensor.__dlpack__(max_version=versions)
        other = candelabra.from_dlpack(capsule)
        other[0] = 5
        assert tensor[0].item() == 5
        with pytest.raises(RuntimeError, match="can be consumed only once"):
            candelabra.from_dlpack(capsule)


@pytest.mark.parametrize("versions", [None, (1, 0)])
def test_dlpack_lifetime(versions: Any) -> None:
    tensor = candelabra.full((100,), 2.0)
    alive = weakref.ref(tensor)
    unused = tensor.__dlpack__(max_version=versions)
    taken = candelabra.from_dlpack(tensor.__dlpack__(max_version=versions))
    del tensor, unused
    gc.collect()
    assert alive() is not None  # taken still needs it
    assert taken.tolist() == [2.0] * 100
    del taken
    gc.collect()
    assert alive() is None


def test_dlpack_keeps_a_numpy_array_alive() -> None:
    array = np.arange(4.0)
    alive = weakref.ref(array)
    tensor = candelabra.from_dlpack(array)
    del array
    gc.collect()
    assert alive() is not None
    assert tensor.tolist() == [0, 1, 2, 3]
    del tensor
    gc.collect()
    assert alive() is None


def test_dlpack_copy_and_device() -> None:
    tensor = candelabra.ones(2)
    assert tensor.__dlpack_device__() == (1, 0)
    copied = candelabra.from_dlpack(tensor.__dlpack__(copy=True, max_version=(1, 0)))
    copied[0] = 5
    assert tensor[0].item() == 1
    assert candelabra.from_dlpack(tensor.__dlpack__(copy=False, dl_device=(1, 0))).data_ptr() == tensor.data_ptr()
    with pytest.raises(BufferError, match="cannot export cpu to DLPack's device type 2"):
        tensor.__dlpack__(dl_device=(2, 0))


def test_dlpack_of_unsigned_integers_and_copies() -> None:
    array = np.array([0, 2**16 - 1], np.uint16)
    shared = candelabra.from_dlpack(array)
    assert shared.dtype is candelabra.uint16 and shared.data_ptr() == array.ctypes.data
    assert candelabra.from_dlpack(array, copy=False, device="cpu").data_ptr() == array.ctypes.data
    assert candelabra.from_dlpack(array, copy=True).data_ptr() != array.ctypes.data


def test_dlpack_errors() -> None:
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        candelabra.ones(2).requires_grad_().__dlpack__()
    with pytest.raises(BufferError, match="stream must be None"):
        candelabra.ones(2).__dlpack__(stream=3)
    with pytest.raises(TypeError, match="has no __dlpack__"):
        candelabra.from_dlpack(3)
    with pytest.raises(BufferError):
        candelabra.from_dlpack(np.arange(3, dtype=np.longdouble))
    with pytest.raises(BufferError, match="negative strides"):
        candelabra.from_dlpack(np.arange(3)[::-1])
    with pytest.raises(TypeError):
        candelabra.ones(2).__dlpack__(copy=1)


class OldExporter:
    """An exporter from before DLPack 1.0."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream: Any = None) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_dlpack_from_an_old_exporter() -> None:
    array = np.arange(3.0)
    assert candelabra.from_dlpack(OldExporter(array)).data_ptr() == array.ctypes.data


# ---- arrays as operands


def test_numpy_computes_with_an_array_at_the_right():
    x = candelabra.tensor([[1.0, 2.0], [3.0, 4.0]])
    a = np.array([10.0, 20.0])
    expected = x.numpy()
    for made, wanted in [
        (x + a, expected + a), (x * a, expected * a), (x / a, expected / a), (x**a, expected**a), (x @ a, expected @ a),
        (x + a[::-1], expected + a[::-1]), (a / x, a * (1 / expected)),
    ]:  # fmt: skip
        assert type(made) is candelabra.Tensor and made.dtype is candelabra.float64
        np.testing.assert_array_equal(made.numpy(), wanted)
    y = x
    y += a
    assert y is not x and y.dtype is candelabra.float64


def test_an_array_does_not_take_a_tensor_at_the_right():
    x = candelabra.ones(2)
    a = np.ones(2, np.float32)
    for call in (
        lambda: a + x, lambda: a - x, lambda: a * x, lambda: a**x, lambda: a @ x, lambda: a < x, lambda: x < a,
        lambda: candelabra.add(x, a), lambda: candelabra.add(a, x), lambda: x.eq(a),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()


def test_equality_compares_with_the_values_of_an_array():
    x = candelabra.tensor([1.0, 2.0])
    a = np.array([1, 3])
    for made in (x == a, a == x):
        assert made.dtype is candelabra.bool and made.tolist() == [True, False]
    assert (x != a) is True
    assert (x == np.array(["a", "b"])) is False


def test_numpy_scalars_are_numbers():
    x = candelabra.ones(2, dtype=candelabra.int32)
    for scalar, dtype in [
        (np.int64(2), "int32"), (np.float64(2), "float32"), (np.float16(2), "float32"), (np.complex128(2), "complex64"),
        (np.bool_(True), "float32"),
    ]:  # fmt: skip
        for made in (x + scalar, scalar + x, candelabra.add(x, scalar)):
            assert type(made) is candelabra.Tensor and made.dtype is getattr(candelabra, dtype)
    with pytest.warns(np.exceptions.ComplexWarning):
        assert (x + np.complex64(2j)).tolist() == [1.0, 1.0]
    assert candelabra.tensor(np.complex64(2j)).item() == 2j
    assert candelabra.tensor(np.bool_(True)).dtype is candelabra.bool


def test_an_array_does_not_take_a_tensor_off_the_tape():
    pytest.importorskip("candelabra.autograd")
    x = candelabra.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x * np.array([2.0, 3.0], dtype="float32")


def test_other_operands_are_still_refused():
    with pytest.raises(TypeError, match="unsupported operand"):
        candelabra.ones(2) + [1, 2]
    with pytest.raises(TypeError):
        candelabra.ones(2) + np.array(["a", "b"])
    assert (candelabra.ones(2) == [1, 1]) is False


def test_functions_of_numpy_give_tensors():
    x = candelabra.tensor([0.0, 4.0])
    for made, wanted in [(np.sqrt(x), [0, 2]), (np.add(x, 1), [1, 5]), (np.sqrt(x[1]), 2)]:
        assert type(made) is candelabra.Tensor and made.tolist() == wanted
