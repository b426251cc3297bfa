"""The decomposition of attention against the same references as its kernels, and what the shape
rules refuse.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra import ops
from candelabra.catalogue import OPERATORS
from candelabra.testing.reference.attention import REFERENCES
from candelabra.testing.sampling import Input


def _arrays(sample):
    return [value.values if isinstance(value, Input) else value for value in sample.arguments]


def _tensors(sample):
    return [value.tensor("cpu") if isinstance(value, Input) else value for value in sample.arguments]


@pytest.mark.parametrize("name", ["_scaled_dot_product_attention", "_scaled_dot_product_attention_backward"])
def test_decomposition(name):
    reference = REFERENCES[name]
    count = 0
    for sample in reference.samples(np.random.default_rng(0), "float64"):
        made = OPERATORS[name].composite(*_tensors(sample))
        for one, expected in zip(made, reference.expected(*_arrays(sample)), strict=True):
            np.testing.assert_allclose(one.numpy(), expected, rtol=1e-9, atol=1e-11)
        count += 1
    assert count == 12


def test_decomposition_in_half_precision():
    x = candelabra.ones(1, 2, 3, 4, dtype=candelabra.bfloat16)
    output, logarithms = OPERATORS["_scaled_dot_product_attention"].composite(x, x, x * 3, None, True, 0.5)
    assert output.dtype == candelabra.bfloat16
    assert logarithms.dtype == candelabra.float32
    assert output.tolist() == (x * 3).tolist()


@pytest.mark.parametrize("length", [0, 3])
def test_empty(length):
    query, key = candelabra.ones(1, 2, length, 4), candelabra.ones(1, 2, 3 - length, 4)
    output, logarithms = ops._scaled_dot_product_attention(query, key, key, None, False, 1.0)
    assert output.shape == (1, 2, length, 4)
    assert output.tolist() == candelabra.zeros(1, 2, length, 4).tolist()
    assert logarithms.shape == (1, 2, length)
    slopes = ops._scaled_dot_product_attention_backward(output, query, key, key, None, output, logarithms, False, 1.0)
    assert [slope.shape for slope in slopes] == [query.shape, key.shape, key.shape]
    assert all(bool((slope == 0).all()) for slope in slopes)
    none = candelabra.ones(1, 2, length, 0)
    assert ops._scaled_dot_product_attention(query, query, none, None, False, 1.0).output.shape == none.shape


def test_arguments_of_the_gradient_are_checked():
    x = candelabra.ones(1, 1, 2, 3)
    output, logarithms = ops._scaled_dot_product_attention(x, x, x, None, False, 1.0)
    with pytest.raises(RuntimeError, match="expected grad and output"):
        ops._scaled_dot_product_attention_backward(x[..., :2], x, x, x, None, output, logarithms, False, 1.0)
    with pytest.raises(RuntimeError, match="expected logsumexp"):
        ops._scaled_dot_product_attention_backward(x, x, x, x, None, output, logarithms[..., :1], False, 1.0)
    with pytest.raises(RuntimeError, match="4 dimensions"):
        ops._scaled_dot_product_attention(x[0], x[0], x[0], None, False, 1.0)


def test_arguments_of_the_ctc_gradient_are_checked():
    scores, targets = candelabra.zeros(3, 1, 2), candelabra.tensor([[1]])
    loss, alpha = ops._ctc_loss(scores, targets, [3], [1], 0, False)
    common = (scores, targets, [3], [1])
    with pytest.raises(RuntimeError, match="log_alpha"):
        ops._ctc_loss_backward(loss, *common, loss, alpha[:, :2], 0, False)
    with pytest.raises(RuntimeError, match="one value a sample"):
        ops._ctc_loss_backward(scores, *common, loss, alpha, 0, False)
    assert ops._ctc_loss_backward(loss, *common, loss, alpha, 0, False).shape == (3, 1, 2)
