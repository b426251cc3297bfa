"""flex_attention and its block masks, against the whole matrix of scores in NumPy.

It needs candelabra-nn, and candelabra-autograd for vmap.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.nn import functional as F
from candelabra.nn.attention.bias import CausalBias, CausalVariant, causal_lower_right
from candelabra.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() < 3


def inputs(batch=2, heads=4, queries=6, keys=6, key_heads=None):
    generator = c.Generator().manual_seed(0)
    shapes = ((batch, heads, queries, 8), *[(batch, key_heads or heads, keys, 8)] * 2)
    return [c.randn(*shape, generator=generator) for shape in shapes]


def expected(query, key, value, bias=None, mask=None):
    scores = query.numpy() @ key.numpy().swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value.numpy(), np.log(np.exp(scores).sum(-1))


def test_scores_and_masks_of_one_s_own():
    query, key, value = inputs()
    places = np.arange(6)
    slopes = 2.0 ** -np.arange(4)
    alibi = slopes[:, None, None] * (places - places[:, None])
    found = flex_attention(query, key, value, lambda s, b, h, q, kv: s + c.exp2(-h) * (kv - q))
    assert np.allclose(found.numpy(), expected(query, key, value, alibi)[0], atol=1e-5)
    table = c.randn(4, 11)
    found = flex_attention(query, key, value, lambda s, b, h, q, kv: s + table[h, q - kv + 5])
    bias = table.numpy()[:, places[:, None] - places + 5]
    assert np.allclose(found.numpy(), expected(query, key, value, bias)[0], atol=1e-5)
    mask = create_block_mask(causal, 2, None, 6, 6, "cpu", BLOCK_SIZE=2)
    found, aux = flex_attention(query, key, value, block_mask=mask, return_aux=AuxRequest(lse=True, max_scores=True))
    out, lse = expected(query, key, value, mask=np.tri(6, dtype=bool))
    assert np.allclose(found.numpy(), out, atol=1e-5) and np.allclose(aux.lse.numpy(), lse, atol=1e-5)
    assert aux.max_scores.shape == (2, 4, 6)
    with pytest.warns(FutureWarning, match="return_lse is deprecated"):
        assert np.allclose(
            flex_attention(query, key, value, block_mask=mask, return_lse=True)[1].numpy(), lse, atol=1e-5
        )


def test_documents_and_captured_tensors():
    query, key, value = inputs(queries=8, keys=8)
    documents = c.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    vectors = c.randn(8, 3)

    def same_document(b, h, q, kv):
        return documents[q] == documents[kv]

    mask = create_block_mask(and_masks(causal, same_document), 1, 1, 8, 8, "cpu", BLOCK_SIZE=(4, 2))
    bias = (vectors @ vectors.T).numpy()
    found = flex_attention(
        query,
        key,
        value,
        lambda s, b, h, q, kv: s + (vectors[q] * vectors[kv]).sum(),
        mask,
        kernel_options={"BLOCK_M": 32},
    )
    seen = np.tri(8, dtype=bool) & (documents.numpy() == documents.numpy()[:, None])
    assert np.allclose(found.numpy(), expected(query, key, value, bias, seen)[0], atol=1e-4)


def test_gradients_reach_everything():
    query, key, value = (x.requires_grad_() for x in inputs(1, 2, 4, 4))
    bias = c.zeros(2, requires_grad=True)
    flex_attention(query, key, value, lambda s, b, h, q, kv: s + bias[h] * q * kv).square().sum().backward()
    step = 1e-2
    plain = [x.detach() for x in (query, key, value)]

    def loss(shift):
        return flex_attention(*plain, lambda s, b, h, q, kv: s + shift[h] * q * kv).square().sum()

    moved = c.tensor([step, 0.0])
    assert float(bias.grad[0]) == pytest.approx(float(loss(moved) - loss(-moved)) / (2 * step), rel=2e-2, abs=1e-3)
    assert all(x.grad is not None for x in (query, key, value))


def test_fewer_heads_of_keys():
    query, key, value = inputs(key_heads=2)
    with pytest.raises(ValueError, match="Try setting enable_gqa=True for GQA"):
        flex_attention(query, key, value)
    found = flex_attention(query, key, value, enable_gqa=True)
    assert np.allclose(
        found.numpy(), F.scaled_dot_product_attention(query, key, value, enable_gqa=True).numpy(), atol=1e-5
    )
    with pytest.raises(ValueError, match="multiple of kv heads"):
        flex_attention(query[:, :3], key, value, enable_gqa=True)


def test_rows_without_a_key_are_zero():
    query, key, value = inputs(1, 1)
    mask = create_block_mask(lambda b, h, q, kv: (q > 1) & (q >= kv), 1, 1, 6, 6, "cpu", BLOCK_SIZE=2)
    out, aux = flex_attention(query, key, value, block_mask=mask, return_aux=AuxRequest(lse=True))
    assert not out[0, 0, :2].any() and aux.lse[0, 0, :2].tolist() == [-math.inf] * 2 and out[0, 0, 2:].isfinite().all()


def test_masks():
    assert create_mask(causal, None, None, 2, 3, "cpu").int().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]
    from_scores = create_mask(lambda s, b, h, q, kv: c.where(q >= kv, s, -math.inf), 1, 1, 2, 3, "cpu")
    assert from_scores.int().tolist() == [[[[1, 0, 0], [1, 1, 0]]]]
    assert bool(create_mask(noop_mask, 1, 2, 2, 2, "cpu").all())
    both = create_mask(or_masks(causal, window), 1, 1, 5, 5, "cpu")
    assert bool((both == (create_mask(causal, 1, 1, 5, 5, "cpu") | create_mask(window, 1, 1, 5, 5, "cpu"))).all())
    with pytest.raises(RuntimeError, match="callable mask_mods"):
        and_masks(causal, 3)
    with pytest.raises(AssertionError, match="requires a mask_mod function"):
        create_block_mask(lambda s, b, h, q, kv: s, 1, 1, 4, 4, "cpu")


def test_blocks_of_masks():
    mask = create_block_mask(causal, 2, 1, 6, 6, "cpu", BLOCK_SIZE=2)
    assert mask.shape == (2, 1, 6, 6) and mask.numel() == 72 and mask.sparsity() == pytest.approx(100 / 3)
    assert mask.kv_num_blocks[0, 0].tolist() == [1, 1, 1] and mask.full_kv_num_blocks[0, 0].tolist() == [0, 1, 2]
    assert mask.q_num_blocks[0, 0].tolist() == [1, 1, 1] and mask.full_q_num_blocks[0, 0].tolist() == [2, 1, 0]
    assert mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert mask[0].kv_indices.shape == (1, 1, 3, 3) and mask[:, 0, :2].kv_num_blocks.shape == (2, 1, 2)
    assert mask._adjust(4, 4).to_dense()[0, 0].tolist() == [[1, 0], [1, 1]]
    assert "██" in str(mask) and "sparsity=33.33%" in repr(mask)
    assert len(mask.as_tuple()) == 17 and len(mask.as_tuple(flatten=False)) == 15
    assert mask.to("cpu").BLOCK_SIZE == (2, 2)
    query, key, value = inputs(2, 1)
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        flex_attention(query[:1], key[:1], value[:1], block_mask=mask[0])
    for size, text in ((8, "smaller length"), (5, "larger length")):
        q, k, v = inputs(2, 1, size, size)
        with pytest.raises(ValueError, match=text):
            flex_attention(q, k, v, block_mask=mask)


def test_blocks_without_a_function():
    query, key, value = inputs(1, 1)
    counts, places = c.tensor([[[1, 2, 1]]]), c.tensor([[[[0, 1, 2], [0, 1, 2], [2, 0, 1]]]])
    blocks = BlockMask.from_kv_blocks(counts, places, BLOCK_SIZE=2)
    seen = np.kron([[1, 0, 0], [1, 1, 0], [0, 0, 1]], np.ones((2, 2))).astype(bool)
    assert np.allclose(
        flex_attention(query, key, value, block_mask=blocks).numpy(),
        expected(query, key, value, mask=seen)[0],
        atol=1e-5,
    )
    with pytest.raises(AssertionError, match="both provided or omitted"):
        BlockMask.from_kv_blocks(counts, places, counts)


def test_causal_biases():
    bias = causal_lower_right(2, 3)
    assert isinstance(bias, CausalBias) and bias.variant is CausalVariant.LOWER_RIGHT
    query, key, value = inputs(1, 1, 2, 3)
    plain = F.scaled_dot_product_attention(query, key, value, bias._materialize())
    assert c.equal(F.scaled_dot_product_attention(query, key, value, bias), plain)
    with pytest.raises(AssertionError, match="variant must be a CausalVariant"):
        CausalBias(1, 2, 3)
