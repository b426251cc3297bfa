"""Test kernels on a GPU against NumPy, with strides, sizes, broadcasts and dtypes that reach every
path of the launchers.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

SIZES = [(0,), (1,), (3,), (255,), (1024,), (65537,), (7, 33), (64, 256), (3, 1, 5, 2), (2, 3, 2, 3, 2, 3, 2, 3, 2, 3)]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "int8", "int16"]


def made(sizes: tuple[int, ...], dtype: str, seed: int = 0) -> candelabra.Tensor:
    values = np.random.default_rng(seed).integers(0, 20, size=sizes)
    return candelabra.tensor(values).to(getattr(candelabra, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_add_and_compare(cuda, sizes, dtype):
    a, b = made(sizes, dtype, 1), made(sizes, dtype, 2)
    got = (a.to(cuda) + b.to(cuda)).cpu()
    assert got.tolist() == (a + b).tolist() and got.dtype == (a + b).dtype
    assert (a.to(cuda) < b.to(cuda)).cpu().tolist() == (a < b).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool", "complex64"])
def test_strides_and_broadcasts(cuda, dtype):
    a = made((6, 1, 34), "float32", 1).to(getattr(candelabra, dtype))
    b = made((34, 8), "float32", 2).to(getattr(candelabra, dtype))
    for left, right in ((a, b.t()), (a[::2], b.t()[:1]), (a[:, :, 1:33], b.t()[:, 1:33]), (b[::3, 1::2], b[::3, ::2])):
        want = left * right
        got = left.to(cuda) * right.to(cuda)
        assert got.cpu().tolist() == want.tolist()
    moved = a.to(cuda)
    assert (moved[:, 0, ::3] * 2).cpu().tolist() == (a[:, 0, ::3] * 2).tolist()
    out = candelabra.zeros(34, 8, dtype=getattr(candelabra, dtype), device=cuda).t()
    out.copy_(b.to(cuda).t())
    assert out.cpu().tolist() == b.t().tolist()


@pytest.mark.parametrize("source", [*DTYPES, "bool", "complex64", "complex128"])
def test_conversions(cuda, source):
    x = made((5, 67), "float32").to(getattr(candelabra, source))
    for target in [*DTYPES, "bool"]:
        if source.startswith("complex"):
            continue
        got = x.to(cuda).to(getattr(candelabra, target))
        assert got.cpu().tolist() == x.to(getattr(candelabra, target)).tolist(), target


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int8", "bool", "complex64"])
@pytest.mark.parametrize(
    "sizes", [(5,), (1000,), (300000,), (64, 1000), (1000, 64), (7, 5, 33), (3, 100000), (100000, 3)], ids=str
)
def test_sums(cuda, sizes, dtype):
    x = made(sizes, "int64").to(getattr(candelabra, dtype))
    moved = x.to(cuda)
    for dim in [None, *range(len(sizes))]:
        want = x.sum() if dim is None else x.sum(dim)
        got = moved.sum() if dim is None else moved.sum(dim)
        np.testing.assert_allclose(np.array(got.cpu().tolist()), np.array(want.tolist()), rtol=2e-3)
        assert (moved.any() if dim is None else moved.any(dim)).cpu().tolist() == (
            x.any() if dim is None else x.any(dim)
        ).tolist()


@pytest.mark.same_as_cpu
@pytest.mark.parametrize(
    "name",
    "exp log sqrt sin cos tan tanh sigmoid erf erfc lgamma digamma asin acos atan sinh cosh expm1 log1p rsqrt floor round abs".split(),  # noqa: SIM905
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_formulas_are_those_of_the_cpu(cuda, name, dtype):
    values = np.concatenate(
        [np.linspace(-0.99, 0.99, 1001), np.geomspace(1e-30, 1e30, 601), [0.0, -0.0, np.inf, -np.inf, np.nan]]
    )
    x = candelabra.tensor(values).to(getattr(candelabra, dtype))
    got = getattr(candelabra, name)(x.to(cuda)).cpu().numpy()
    want = getattr(candelabra, name)(x).numpy()
    eps = np.finfo(want.dtype).eps
    np.testing.assert_allclose(got, want, rtol=64 * eps, atol=64 * eps)


def test_ranges(cuda):
    assert candelabra.arange(3, 50, 7, device=cuda).cpu().tolist() == list(range(3, 50, 7))
    np.testing.assert_allclose(
        candelabra.linspace(0, 1, 101, device=cuda).cpu().numpy(), np.linspace(0, 1, 101), rtol=1e-6, atol=1e-7
    )
    x = candelabra.empty(10, 10, device=cuda)
    x[:, ::2].fill_(3)
    x[:, 1::2].fill_(4)
    assert x.sum().item() == 350


def test_more_elements_than_31_bits(cuda):
    if candelabra.cuda.mem_get_info()[0] < 12 * 2**30:
        pytest.skip("needs 12 GB of free memory on the GPU")
    count = 2**31 + 3
    x = candelabra.ones(count, dtype=candelabra.int8, device=cuda)
    x.add_(x)
    assert x.sum().item() == 2 * count
    assert x[-1].item() == 2
