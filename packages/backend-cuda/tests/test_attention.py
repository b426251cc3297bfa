"""Test attention on a device against the full matrix of weights in NumPy: tiles and remainders,
masks, shared heads.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.testing.reference import attention as reference

FLOATS = {"float32": 1e-4, "float64": 1e-11, "float16": 1e-2, "bfloat16": 6e-2}

#: N, H, G, L, S, E, V
SIZES = [
    (2, 2, 2, 3, 5, 4, 3),
    (1, 4, 2, 64, 64, 32, 64),
    (2, 2, 1, 65, 129, 33, 65),
    (1, 1, 1, 130, 70, 65, 129),
    (1, 2, 2, 1, 200, 128, 128),
    (1, 2, 2, 33, 31, 130, 260),
    (1, 1, 1, 5, 5, 1, 1),
]


def made(shape, dtype, seed):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    tensor = candelabra.tensor(values).to(getattr(candelabra, dtype))
    return tensor.to(candelabra.float64).numpy(), tensor


def masks(kind, n, h, rows, columns, dtype):
    rng = np.random.default_rng(7)
    if kind == "none":
        return None, None
    if kind == "bool":
        values = rng.random((n, 1, rows, columns)) < 0.5
        values[:, :, rows // 2] = False  # a query whose keys are all masked
        return values, candelabra.tensor(values)
    return made((h, 1, columns), dtype, 8)


def assert_right(got, want, dtype):
    np.testing.assert_allclose(got.cpu().to(candelabra.float64).numpy(), want, rtol=FLOATS[dtype], atol=FLOATS[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("kind", "causal"), [("none", False), ("none", True), ("bool", False), ("numbers", True)])
def test_forward_and_backward(cuda, sizes, kind, causal, dtype):
    with candelabra.backends.cudnn.flags(enabled=False):
        check(cuda, sizes, kind, causal, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "sizes", [(2, 2, 2, 16, 24, 8, 8), (1, 4, 2, 33, 70, 64, 32), (1, 6, 1, 40, 17, 128, 128)], ids=str
)
@pytest.mark.parametrize("causal", [False, True])
def test_by_cudnn(cuda, sizes, causal, dtype):
    with candelabra.backends.cudnn.flags(enabled=True):
        check(cuda, sizes, "none", causal, dtype)
        candelabra.use_deterministic_algorithms(True)
        try:
            check(cuda, sizes, "none", causal, dtype)
        finally:
            candelabra.use_deterministic_algorithms(False)


def check(cuda, sizes, kind, causal, dtype):
    n, h, g, rows, columns, width, values = sizes
    (q, query), (k, key), (v, value) = (
        made(shape, dtype, seed)
        for seed, shape in enumerate([(n, h, rows, width), (n, g, columns, width), (n, g, columns, values)])
    )
    m, mask = masks(kind, n, h, rows, columns, dtype)
    on = [tensor.to(cuda) for tensor in (query, key, value)]
    mask = None if mask is None else mask.to(cuda)
    with np.errstate(invalid="ignore"):
        want, logarithms = reference.forward(q, k, v, m, causal, 0.3)
    got = candelabra.ops._scaled_dot_product_attention(*on, mask, causal, 0.3)
    assert_right(got.output, want, dtype)
    assert_right(got.logsumexp, logarithms, dtype)
    d, grad = made(want.shape, dtype, 9)
    back = candelabra.ops._scaled_dot_product_attention_backward(
        grad.to(cuda), *on, mask, got.output, got.logsumexp, causal, 0.3
    )
    with np.errstate(invalid="ignore"):
        gradients = reference.backward(d, q, k, v, m, want, logarithms, causal, 0.3)
    for made_gradient, wanted in zip(back, gradients, strict=True):
        assert_right(made_gradient, wanted, dtype)


def test_layouts_and_what_is_empty(cuda):
    """Heads within rows, as a layer lays them out; no queries, keys or columns."""
    x, tensor = made((2, 7, 3, 8), "float32", 1)
    seen = tensor.to(cuda).transpose(1, 2)
    got = candelabra.ops._scaled_dot_product_attention(seen, seen, seen.flip(3), None, True, 0.5)
    turned = x.swapaxes(1, 2)
    assert_right(got.output, reference.forward(turned, turned, turned[..., ::-1], None, True, 0.5)[0], "float32")
    zeros = candelabra.zeros(1, 1, 3, 2, device=cuda)
    nothing = candelabra.ops._scaled_dot_product_attention(zeros, zeros[:, :, :0], zeros[:, :, :0], None, False, 1.0)
    assert nothing.output.tolist() == zeros.tolist() and np.isinf(nothing.logsumexp.cpu().numpy()).all()
    back = candelabra.ops._scaled_dot_product_attention_backward(
        zeros, zeros, zeros[:, :, :0], zeros[:, :, :0], None, *nothing, False, 1.0
    )
    assert back.grad_query.tolist() == zeros.tolist() and back.grad_key.shape == (1, 1, 0, 2)
    none = candelabra.ops._scaled_dot_product_attention(zeros[:, :, :0], zeros, zeros, None, False, 1.0)
    assert none.output.shape == (1, 1, 0, 2)
    back = candelabra.ops._scaled_dot_product_attention_backward(
        none.output, zeros[:, :, :0], zeros, zeros, None, *none, False, 1.0
    )
    assert back.grad_value.tolist() == zeros.tolist()
    flat = candelabra.ops._scaled_dot_product_attention(zeros, zeros, zeros[..., :0], None, False, 1.0)
    assert flat.output.shape == (1, 1, 3, 0)
    np.testing.assert_allclose(flat.logsumexp.cpu().numpy(), np.log(3), rtol=1e-6)


def test_nan_and_infinity(cuda):
    x = candelabra.tensor([[[[1.0], [float("nan")], [2.0]]]]).to(cuda)
    ones = candelabra.ones(1, 1, 3, 1, device=cuda)
    out = candelabra.ops._scaled_dot_product_attention(ones, ones, x, None, True, 1.0).output.cpu().numpy().ravel()
    assert out[0] == 1.0 or np.isnan(out[0])  # masked values of the tile have weight zero
    assert np.isnan(out[1:]).all()
    scores = candelabra.ops._scaled_dot_product_attention(x, ones, ones, None, False, 1.0).output.cpu().numpy().ravel()
    assert scores[0] == scores[2] == 1.0 and np.isnan(scores[1])
