"""Copies: between dtypes, strides and overlapping memory, against NumPy; layouts as PyTorch keeps
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candelabra

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_conversion_between_all_dtypes(source: str, target: str) -> None:
    values = np.array([[0, 1, 2, 3], [100, 90, 5, 7]])
    array = values.astype(source)
    if source.startswith("complex") and not target.startswith("complex"):
        expected = array.real.astype(target)
    else:
        expected = array.astype(target)
    tensor = candelabra.tensor(array)
    for view, reference in ((tensor, expected), (tensor.t(), expected.T), (tensor[:, ::2], expected[:, ::2])):
        converted = view.to(getattr(candelabra, target))
        assert converted.dtype == getattr(candelabra, target)
        np.testing.assert_array_equal(converted.numpy(), reference)
    out = candelabra.zeros(2, 4, dtype=getattr(candelabra, target))
    assert out.copy_(tensor) is out
    np.testing.assert_array_equal(out.numpy(), expected)


def test_bfloat16_rounds_to_nearest_even() -> None:
    values = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    bits = candelabra.tensor(values).to(candelabra.bfloat16).view(candelabra.int16).numpy().view(np.uint16)
    raw = values.view(np.uint32).astype(np.uint64)
    np.testing.assert_array_equal(bits, ((raw + 0x7FFF + (raw >> 16 & 1)) >> 16).astype(np.uint16))


@settings(max_examples=200, deadline=None)
@given(st.data(), st.lists(st.integers(0, 4), max_size=4))
def test_copy_between_any_strides(data: st.DataObject, sizes: list[int]) -> None:
    def strided() -> tuple[candelabra.Tensor, np.ndarray]:
        order = data.draw(st.permutations(range(len(sizes))))
        steps = [data.draw(st.integers(1, 2)) for _ in sizes]
        whole = [n * s for n, s in zip(sizes, steps, strict=True)]
        shape = [whole[d] for d in order]
        back = [order.index(d) for d in range(len(sizes))]
        array = np.asarray(np.random.default_rng(0).normal(size=shape), np.float32)
        key = tuple(slice(None, None, s) for s in steps)
        return candelabra.tensor(array).permute(back)[key], array.transpose(back)[(*key, Ellipsis)]

    (target, target_array), (source, source_array) = strided(), strided()
    target.copy_(source)
    target_array = target_array.copy()
    target_array[...] = source_array
    np.testing.assert_array_equal(target.numpy(), target_array)
    np.testing.assert_array_equal(source.clone().numpy(), source_array)
    np.testing.assert_array_equal(source.contiguous().numpy(), source_array)


def test_copy_broadcasts() -> None:
    x = candelabra.zeros(2, 3)
    x.copy_(candelabra.tensor([1, 2, 3]))
    assert x.tolist() == [[1, 2, 3]] * 2
    x.copy_(candelabra.tensor([[4], [5]]))
    assert x.tolist() == [[4] * 3, [5] * 3]
    x.copy_(candelabra.tensor(6))
    assert x.tolist() == [[6] * 3] * 2
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(2\)"):
        x.copy_(candelabra.ones(2))
    with pytest.raises(RuntimeError, match=r"output with shape \[2, 3\] doesn't match the broadcast shape \[1, 2, 3\]"):
        x.copy_(candelabra.ones(1, 2, 3))


def test_copy_of_overlapping_memory() -> None:
    z = candelabra.arange(16).reshape(4, 4)
    z.copy_(z)
    np.testing.assert_array_equal(z.numpy(), np.arange(16).reshape(4, 4))
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        candelabra.zeros(1, 3).expand(2, 3).copy_(candelabra.ones(2, 3))


def test_large_copies() -> None:
    array = np.random.default_rng(0).normal(size=(1000, 700)).astype(np.float32)
    x = candelabra.tensor(array)
    np.testing.assert_array_equal(x.clone().numpy(), array)
    np.testing.assert_array_equal(x.t().clone().numpy(), array.T)
    np.testing.assert_array_equal(x.t().contiguous().numpy(), array.T)
    np.testing.assert_array_equal(x.to(candelabra.float64).numpy(), array.astype(np.float64))


def test_clone_keeps_or_makes_a_layout() -> None:
    x = candelabra.ones(2, 3, 4, 5)
    last = x.clone(memory_format=candelabra.channels_last)
    assert last.stride() == (60, 1, 15, 3)
    assert last.clone().stride() == (60, 1, 15, 3)
    assert last.to(candelabra.float64).stride() == (60, 1, 15, 3)
    assert last.clone(memory_format=candelabra.contiguous_format).stride() == (60, 20, 5, 1)
    assert last.contiguous().stride() == (60, 20, 5, 1)
    assert last.contiguous(memory_format=candelabra.channels_last) is last
    assert x.contiguous() is x
    assert x.transpose(1, 3).clone().stride() == x.transpose(1, 3).stride()
    assert x[:, ::2].clone().stride() == (40, 20, 5, 1)
    assert candelabra.ones(1, 3).expand(2, 3).clone().stride() == (3, 1)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        candelabra.ones(3).clone(memory_format=candelabra.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        x.transpose(0, 1).contiguous(memory_format=candelabra.preserve_format)
    assert x.contiguous(memory_format=candelabra.preserve_format) is x


def test_clones_are_apart() -> None:
    x = candelabra.zeros(3)
    y = x.clone()
    before = x._version
    y += 1
    assert x.tolist() == [0, 0, 0]
    assert y._version == 1
    assert x._version == before
    assert not y._is_view()


def test_to() -> None:
    x = candelabra.ones(2)
    assert x.to(candelabra.float32) is x
    assert x.to("cpu") is x
    assert x.to(candelabra.float32, copy=True) is not x
    assert x.to(candelabra.tensor(1, dtype=candelabra.int8)).dtype == candelabra.int8


def test_a_copy_counts_as_a_change() -> None:
    x = candelabra.empty(3)
    x.copy_(candelabra.ones(3))
    assert x._version == 1
    x.fill_(4)
    assert x._version == 2
    assert x.tolist() == [4, 4, 4]


@pytest.mark.parametrize("name", [*DTYPES, "bfloat16"])
def test_fill_and_item(name: str) -> None:
    value: Any = {"bool": True, "complex64": 1 - 2j, "complex128": 1 - 2j}.get(name, 3)
    for sizes in ((), (1,), (2, 3), (0,)):
        x = candelabra.zeros(sizes, dtype=getattr(candelabra, name)).fill_(value)
        assert all(v == value for v in x.reshape(-1).tolist())
        if x.numel() == 1:
            assert x.item() == value
            assert type(x.item()) is type(value) if name not in ("float16", "bfloat16", "float32", "float64") else float


# ---- to another device: one of the core's own host memory, with two kernels in Python


@pytest.fixture(scope="module")
def elsewhere() -> str:
    from candelabra import _C

    name = "elsewhere"
    _C.register_backend(name, "tests 0", None)

    def copy(out: candelabra.Tensor, _self: candelabra.Tensor, source: candelabra.Tensor, _non_blocking: bool) -> None:
        out.numpy()[...] = source.numpy()

    def fill(out: candelabra.Tensor, _self: candelabra.Tensor, value: float) -> None:
        out.numpy()[...] = value

    assert _C.register_kernel(name, "copy_", copy)
    assert _C.register_kernel(name, "fill_", fill)
    return name


def test_to_another_device_and_back(elsewhere: str) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = candelabra.tensor(array)
    for view, reference in (
        (x, array),
        (x.permute(2, 0, 1), array.transpose(2, 0, 1)),
        (x[:, ::2, 1:], array[:, ::2, 1:]),
    ):
        there = view.to(elsewhere)
        assert str(there.device) == f"{elsewhere}:0" or str(there.device) == elsewhere
        np.testing.assert_array_equal(np.array(there.tolist()), reference)
        np.testing.assert_array_equal(there.cpu().numpy(), reference)
        assert there.cpu().device == x.device
    assert x.permute(2, 0, 1).to(elsewhere).stride() == x.permute(2, 0, 1).stride()
    assert candelabra.empty(0, 3).to(elsewhere).shape == (0, 3)
    assert x.to(elsewhere, candelabra.int64).dtype == candelabra.int64


def test_copy_between_devices(elsewhere: str) -> None:
    there = candelabra.zeros(2, 3, device=elsewhere)
    there.copy_(candelabra.tensor([[1], [2]], dtype=candelabra.int32))
    assert there.tolist() == [[1] * 3, [2] * 3]
    there.t().copy_(candelabra.arange(6).reshape(3, 2))
    assert there.tolist() == [[0, 2, 4], [1, 3, 5]]
    here = candelabra.zeros(3, 2, dtype=candelabra.float64).t()
    here.copy_(there)
    assert here.tolist() == there.tolist()
    there[0] = candelabra.tensor([7.0, 8.0, 9.0])
    there[1, 1:] = -1
    assert there.tolist() == [[7, 8, 9], [1, -1, -1]]
    assert there[0, 1].item() == 8
    assert candelabra.tensor([there[0, 0], 2.5]).tolist() == [7, 2.5]
    assert candelabra.tensor([[1, 2], [3, 4]], device=elsewhere).tolist() == [[1, 2], [3, 4]]


def test_filling_what_overlaps_itself():
    x = candelabra.zeros(2, 1)
    assert x.expand(2, 3).fill_(4).tolist() == [[4.0] * 3] * 2
    assert x.tolist() == [[4.0], [4.0]]
    assert x.expand(2, 3).zero_().tolist() == [[0.0] * 3] * 2
