"""Test that real floating-point functions reject other dtypes before they compute or write."""

import pytest

import candelabra
from candelabra.nn import functional as F

X = candelabra.tensor([[1, 2], [0, 3]])
TARGET = candelabra.tensor([0, 1])
FLOATING = {
    "hardswish": lambda x: F.hardswish(x),
    "hardswish in place": lambda x: F.hardswish(x, inplace=True),
    "hardsigmoid": lambda x: F.hardsigmoid(x),
    "hardsigmoid in place": lambda x: F.hardsigmoid(x, inplace=True),
    "hardshrink": lambda x: F.hardshrink(x),
    "softshrink": lambda x: F.softshrink(x),
    "glu": lambda x: F.glu(x),
    "prelu": lambda x: F.prelu(x, candelabra.ones(1, dtype=x.dtype)),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "smooth_l1_loss": lambda x: F.smooth_l1_loss(x, x),
    "huber_loss": lambda x: F.huber_loss(x, x),
    "multi_margin_loss": lambda x: F.multi_margin_loss(x, TARGET),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(x, candelabra.tensor([[0, -1], [1, -1]])),
}


@pytest.mark.parametrize("dtype", [candelabra.int64, candelabra.uint8, candelabra.bool])
@pytest.mark.parametrize("name", FLOATING)
def test_whole_numbers(name, dtype):
    x = X.to(dtype)
    before = x.tolist()
    with pytest.raises(NotImplementedError, match="not implemented for candelabra"):
        FLOATING[name](x)
    assert x.tolist() == before


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: F.rms_norm(X, (2,)), NotImplementedError, "rms_norm"),
        (lambda: F.kl_div(X, X.float(), reduction="sum"), RuntimeError, "Integral inputs not supported"),
        (lambda: F.kl_div(X.float(), X, reduction="sum"), RuntimeError, "Integral inputs not supported"),
        (lambda: F.hardtanh(X.to(candelabra.uint8)), RuntimeError, "unsigned type with negative limits"),
        (lambda: F.relu6(X > 0), RuntimeError, "Bool inputs not supported"),
        (lambda: F.threshold(X > 0, 0, 0), NotImplementedError, "threshold_cpu"),
        (
            lambda: F.threshold(X.to(candelabra.uint8), 0, -1),
            RuntimeError,
            "cannot be converted to type candelabra.uint8",
        ),
        (
            lambda: F.prelu(X.float(), candelabra.ones(1, dtype=candelabra.float64)),
            RuntimeError,
            "Type promoting not supported",
        ),
    ],
)
def test_others(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_what_is_computed_of_whole_numbers():
    made = F.threshold(X, 1.5, 0.25)
    assert (made.tolist(), made.dtype) == ([[0, 2], [0, 3]], candelabra.int64)
    assert F.hardtanh(X, 0, 2).tolist() == [[1, 2], [0, 2]]
    assert F.mse_loss(X, X.float() + 2).item() == 4
    assert F.margin_ranking_loss(X, X, candelabra.ones(2, 2, dtype=candelabra.int64)).item() == 0
