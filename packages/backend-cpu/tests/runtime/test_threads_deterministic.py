"""Results are bitwise the same for any number of threads: every operator, on the conformance
suite's samples and on inputs large enough for several threads. Where MKL and oneDNN split the work,
this needs ``use_deterministic_algorithms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import candelabra
from candelabra.catalogue import OPERATORS
from candelabra.testing import conformance
from candelabra.testing.reference import references
from candelabra.testing.reference.random import SEED
from candelabra.testing.sampling import Input, values_of

linalg = candelabra.linalg
THREADS = (2, 3, 4, 7)  # compared with 1; some exceed the number of processors


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    count = candelabra.get_num_threads()
    yield
    candelabra.set_num_threads(count)
    candelabra.use_deterministic_algorithms(False)


def _flat(results: Any) -> Iterator[Any]:
    if isinstance(results, (list, tuple)):
        for result in results:
            yield from _flat(result)
    elif results is not None:
        yield results


def _bits(results: Any) -> list[bytes]:
    return [np.ascontiguousarray(values_of(result)).tobytes() for result in _flat(results)]


def _same(compute: Callable[[], Any], threads: tuple[int, ...] = THREADS) -> bool:
    candelabra.set_num_threads(1)
    expected = _bits(compute())
    for count in threads:
        candelabra.set_num_threads(count)
        if _bits(compute()) != expected:
            return False
    return True


# ---- every operator, on the conformance suite's samples

# Uninitialized memory differs from call to call.
UNSET = {name for name in OPERATORS if "empty" in name}


def _made(value: Any) -> Any:
    if isinstance(value, Input):
        return value.tensor("cpu")
    return [_made(element) for element in value] if isinstance(value, list) else value


def _copied(value: Any) -> Any:
    if isinstance(value, candelabra.Tensor):
        return value.clone()
    return [_copied(element) for element in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", [name for name in conformance.applicable() if name not in UNSET])
def test_samples(name: str) -> None:
    candelabra.use_deterministic_algorithms(name.startswith("convolution"))
    operator, reference = OPERATORS[name], references()[name]
    keywords = {"device": "cpu"} if "device" in operator.parameters else {}
    for dtype in reference.dtypes:
        for sample in reference.samples(np.random.default_rng(0), dtype):
            inputs = [_made(argument) for argument in sample.arguments]

            def compute(inputs: list[Any] = inputs, sample: Any = sample) -> Any:
                arguments = [_copied(argument) for argument in inputs]
                candelabra.manual_seed(SEED)
                results = operator(*arguments, **dict(sample.keywords), **keywords)
                return (
                    [argument for argument in arguments if isinstance(argument, list)] if results is None else results
                )

            try:
                assert _same(compute, (2, 4)), f"{name}({sample})"
            except NotImplementedError:
                break  # no kernel for this dtype


# ---- on inputs large enough to be shared out


def _normal(*shape: int, dtype: str = "float32") -> candelabra.Tensor:
    rng = np.random.default_rng(sum(shape))
    values = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        return candelabra.tensor((values + 1j * rng.standard_normal(shape)).astype(dtype))
    wide = "float64" if dtype == "float64" else "float32"
    return candelabra.tensor(values.astype(wide)).to(getattr(candelabra, dtype))


PRODUCTS = [
    (8, 8192, 8), (4, 1024, 1024), (1024, 1024, 4), (1, 1024, 1024), (1024, 1024, 1), (1, 300000, 1), (64, 4096, 64),
    (100, 1000, 100), (256, 1024, 10), (200, 3000, 200), (128, 4096, 256), (300, 320, 310), (1000, 3, 1000), (2100, 70, 2100),
    (512, 512, 512), (5000, 20, 30),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("sizes", PRODUCTS)
def test_products(sizes: tuple[int, int, int], dtype: str) -> None:
    m, k, n = sizes
    if m * k * n > 2e8 and dtype != "float32":
        pytest.skip("as smaller ones, and long")
    a, b, turned, row = (
        _normal(m, k, dtype=dtype),
        _normal(k, n, dtype=dtype),
        _normal(n, k, dtype=dtype),
        _normal(n, dtype=dtype),
    )
    if min(m, n) < 512:
        assert _same(lambda: a @ b, (2,))  # a thread count that divides the parts evenly
    candelabra.use_deterministic_algorithms(True)
    assert _same(lambda: a @ b)
    assert _same(lambda: a @ turned.mT)
    assert _same(lambda: a.mT.contiguous().mT @ b)
    assert _same(lambda: candelabra.addmm(row, a, b))
    if dtype.startswith("float"):
        assert _same(lambda: candelabra._addmm_activation(row, a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "sizes", [(512, 8, 8, 8), (64, 64, 64, 64), (16, 128, 128, 128), (3, 300, 300, 300), (2, 20, 4000, 20)]
)
def test_batches_of_products(sizes: tuple[int, int, int, int], dtype: str) -> None:
    count, m, k, n = sizes
    candelabra.use_deterministic_algorithms(m * k * n > 2**20)
    a, b, c = _normal(count, m, k, dtype=dtype), _normal(count, k, n, dtype=dtype), _normal(count, m, n, dtype=dtype)
    assert _same(lambda: candelabra.bmm(a, b))
    assert _same(lambda: candelabra.baddbmm(c, a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [100, 260, 530])
def test_factorizations(n: int, dtype: str) -> None:
    candelabra.use_deterministic_algorithms(n > 100)
    a, b = _normal(n, n, dtype=dtype), _normal(n, 70, dtype=dtype)
    positive = a @ a.mH / n + candelabra.eye(n, dtype=a.dtype)
    assert _same(lambda: linalg.cholesky(positive))
    assert _same(lambda: linalg.cholesky(positive, upper=True))
    assert _same(lambda: linalg.lu_factor(a))
    assert _same(lambda: linalg.solve(a, b))
    assert _same(lambda: linalg.solve(a, b[:, 0]))
    assert _same(lambda: linalg.inv(a))
    assert _same(lambda: linalg.solve_triangular(positive, b, upper=True))
    assert _same(lambda: linalg.solve_triangular(positive, b.mT, upper=False, left=False))
    assert _same(lambda: linalg.qr(a))
    assert _same(lambda: candelabra.geqrf(_normal(2 * n, n // 2, dtype=dtype)))
    assert _same(lambda: linalg.ldl_factor(a + a.mT))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [100, 300])
def test_what_the_library_shares_on_request(n: int, dtype: str) -> None:
    # Small matrices are always deterministic, larger ones only in deterministic mode.
    candelabra.use_deterministic_algorithms(n > 256)
    a = _normal(n, n, dtype=dtype)
    tall, right = _normal(2 * n, n // 2, dtype=dtype), _normal(2 * n, 3, dtype=dtype)
    assert _same(lambda: linalg.eigh(a + a.mH))
    assert _same(lambda: linalg.eigvalsh(a + a.mH))
    assert _same(lambda: linalg.svd(a), (2, 4))
    assert _same(lambda: linalg.svdvals(a), (2, 4))
    assert _same(lambda: linalg.eigvals(a), (2,))
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        assert _same(lambda driver=driver: linalg.lstsq(tall, right, driver=driver).solution, (2, 4))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize(
    ("batch", "channels", "side", "outputs", "kernel", "stride", "padding", "dilation", "groups"),
    [
        (4, 16, 28, 32, 5, 1, 2, 1, 1), (2, 3, 64, 16, 7, 2, 3, 1, 1), (1, 64, 14, 64, 1, 1, 0, 1, 1), (8, 32, 14, 32, 3, 1, 1, 1, 32),
        (8, 64, 14, 128, 1, 2, 0, 1, 1), (2, 8, 30, 8, 3, 1, 0, 2, 1), (4, 32, 28, 64, 3, 2, 1, 1, 1), (4, 32, 28, 32, 3, 1, 1, 1, 1),
    ],
)  # fmt: skip
def test_convolutions(
    batch: int,
    channels: int,
    side: int,
    outputs: int,
    kernel: int,
    stride: int,
    padding: int,
    dilation: int,
    groups: int,
    dtype: str,
) -> None:
    candelabra.use_deterministic_algorithms(True)
    x, w = (
        _normal(batch, channels, side, side, dtype=dtype),
        _normal(outputs, channels // groups, kernel, kernel, dtype=dtype),
    )
    how = ([stride] * 2, [padding] * 2, [dilation] * 2, groups)
    forward = OPERATORS["convolution"]
    grad = forward(x, w, None, *how)
    assert _same(lambda: forward(x, w, None, *how))
    assert _same(lambda: OPERATORS["convolution_backward_input"](grad, w, list(x.shape), *how))
    assert _same(lambda: OPERATORS["convolution_backward_weight"](grad, x, list(w.shape), *how))


@pytest.mark.parametrize("sizes", [(8, 8192, 8), (4, 1024, 1024), (128, 4096, 256), (1024, 256, 1024)])
def test_products_of_bfloat16_on_request(sizes: tuple[int, int, int]) -> None:
    candelabra.use_deterministic_algorithms(True)
    m, k, n = sizes
    a, b = _normal(m, k, dtype="bfloat16"), _normal(k, n, dtype="bfloat16")
    assert _same(lambda: a @ b)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("n", [1000, 65536, 100003, 3**10])
def test_single_transforms(n: int, dtype: str) -> None:
    x = _normal(n, dtype=dtype)
    assert _same(lambda: candelabra.fft.fft(x))
    assert _same(lambda: candelabra.fft.irfft(x))
    assert _same(lambda: candelabra.fft.rfft(x.real))


LARGE: dict[str, Callable[[candelabra.Tensor], Any]] = {
    "elementwise": lambda x: candelabra.tanh(x) * x + 1,
    "sum": lambda x: (x.sum(), x.sum(0), x.sum(1), x.T.contiguous().T.sum(1)),
    "moments": lambda x: (x.var(), x.std(0), x.mean(1), linalg.norm(x)),
    "_aminmax": lambda x: (x.max(0), x.argmin(1), x.median(1)),
    "scans": lambda x: (x.cumsum(0), x.cumsum(1), x.logcumsumexp(1)),
    "sorting": lambda x: (x.sort(1), x.flatten().sort(), x.topk(5, 0)),
    "softmax": lambda x: (candelabra.softmax(x, 1), candelabra.log_softmax(x, 0)),
    "_cdist_forward": lambda x: candelabra.cdist(x[:200], x[200:400]),
    "dot": lambda x: candelabra.dot(x.flatten(), x.flatten()),
    "indices": lambda x: (x[x > 0], x.index_add(0, candelabra.arange(700) % 7, x), candelabra.nonzero(x > 1)),
    "histograms": lambda x: (candelabra.histc(x), candelabra.bincount((x.abs() * 10).long().flatten())),
    "transforms": lambda x: (candelabra.fft.fft2(x), candelabra.fft.rfft(x), candelabra.fft.fft(x, dim=0)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LARGE)
def test_other_families(name: str, dtype: str) -> None:
    x = _normal(700, 901, dtype=dtype)
    assert _same(lambda: LARGE[name](x))
