"""Test attention against its formula in NumPy."""

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor
from scipy.special import softmax

import candelabra
from candelabra.nn import functional as F


def attention(q, k, v, mask=None, scale=None):
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(softmax(scores, -1))
    return weights @ v


@pytest.fixture
def qkv(rng):
    return rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 6, 5)), rng.standard_normal((2, 3, 6, 2))


def test_masks_and_scale(rng, qkv):
    tensors = [tensor(x) for x in qkv]
    assert_close(F.scaled_dot_product_attention(*tensors), attention(*qkv))
    assert_close(F.scaled_dot_product_attention(*tensors, scale=0.3), attention(*qkv, scale=0.3))
    assert_close(F.scaled_dot_product_attention(*tensors, is_causal=True), attention(*qkv, np.tri(4, 6, dtype=bool)))
    for shape in ((4, 6), (1, 6), (3, 1, 6), (2, 1, 4, 6)):
        seen, added = rng.random(shape) < 0.5, rng.standard_normal(shape)
        assert_close(F.scaled_dot_product_attention(*tensors, tensor(seen)), attention(*qkv, seen))
        assert_close(F.scaled_dot_product_attention(*tensors, tensor(added)), attention(*qkv, added))
    hidden = F.scaled_dot_product_attention(*tensors, tensor(np.full((4, 6), -np.inf)))
    assert_close(hidden, np.zeros((2, 3, 4, 2)))


def test_numbers_of_dimensions(qkv):
    q, k, v = qkv
    assert_close(F.scaled_dot_product_attention(*(tensor(x[0, 0]) for x in qkv)), attention(q[0, 0], k[0, 0], v[0, 0]))
    assert_close(F.scaled_dot_product_attention(*(tensor(x[0]) for x in qkv)), attention(q[0], k[0], v[0]))
    assert_close(F.scaled_dot_product_attention(tensor(q[None]), tensor(k), tensor(v[0])), attention(q[None], k, v[0]))
    nothing = F.scaled_dot_product_attention(tensor(q), tensor(k[:, :, :0]), tensor(v[:, :, :0]))
    assert_close(nothing, np.zeros((2, 3, 4, 2)))


def test_shared_heads(rng):
    q, k, v = rng.standard_normal((2, 4, 3, 5)), rng.standard_normal((2, 2, 6, 5)), rng.standard_normal((2, 2, 6, 5))
    expected = attention(q, k.repeat(2, 1), v.repeat(2, 1))
    assert_close(F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v), enable_gqa=True), expected)
    single = F.scaled_dot_product_attention(tensor(q[0]), tensor(k[0]), tensor(v[0]), enable_gqa=True)
    assert_close(single, expected[0])
    with pytest.raises(RuntimeError, match="Number of heads"):
        F.scaled_dot_product_attention(tensor(q[:, :3]), tensor(k), tensor(v), enable_gqa=True)


def test_dropout(qkv):
    tensors = [tensor(x) for x in qkv]
    candelabra.manual_seed(0)
    value = candelabra.ones(2, 3, 6, 2, dtype=candelabra.float64)
    dropped = array(F.scaled_dot_product_attention(tensors[0], tensors[1], value, dropout_p=0.5))
    assert dropped.std() > 0.1
    assert abs(dropped.mean() - 1) < 0.5
    assert_close(F.scaled_dot_product_attention(*tensors, dropout_p=1.0), np.zeros((2, 3, 4, 2)))


def test_half_precision(qkv):
    tensors = [tensor(x).to(candelabra.bfloat16) for x in qkv]
    result = F.scaled_dot_product_attention(*tensors)
    assert result.dtype == candelabra.bfloat16
    assert_close(result.double(), attention(*(array(x.double()) for x in tensors)), rtol=2e-2, atol=2e-2)


def test_errors(qkv):
    q, k, v = (tensor(x) for x in qkv)
    for match, arguments, options in (
        ("same dtype", (q, k.float(), v), {}),
        ("at least 2 dimensional", (q[0, 0, 0], k, v), {}),
        ("attn_mask dtype", (q, k, v, candelabra.ones(4, 6, dtype=candelabra.int64)), {}),
        ("should not be set", (q, k, v, candelabra.ones(4, 6)), {"is_causal": True}),
        ("between 0 and 1", (q, k, v), {"dropout_p": 1.5}),
        ("do not fit", (q, k[..., :3], v), {}),
        ("broadcast", (q, k, v, candelabra.ones(5, 7, dtype=candelabra.bool)), {}),
    ):
        with pytest.raises(RuntimeError, match=match):
            F.scaled_dot_product_attention(*arguments, **options)


# ---- multi-head attention


def heads_of(q, k, v, count, w, b, out, mask=None):
    """Compute multi-head attention by definition, batch second. Return the weights, too."""
    width = q.shape[-1]
    size = width // count
    parts = [
        (x @ part.T + bias).reshape(x.shape[0], x.shape[1], count, size).transpose(1, 2, 0, 3)
        for x, part, bias in zip((q, k, v), np.split(w, 3), np.split(b, 3), strict=True)
    ]
    scores = parts[0] @ parts[1].swapaxes(-1, -2) / np.sqrt(size)
    weights = softmax(scores if mask is None else scores + mask, -1)
    mixed = (weights @ parts[2]).transpose(2, 0, 1, 3).reshape(q.shape)
    return mixed @ out.T, weights


def test_multi_head_attention(rng):
    q, k, v = (rng.standard_normal((n, 2, 4)) for n in (3, 5, 5))
    w, b, out = rng.standard_normal((12, 4)), rng.standard_normal(12), rng.standard_normal((4, 4))
    padding = np.array([[False] * 5, [False, False, True, True, True]])
    mask = rng.standard_normal((3, 5))
    expected, weights = heads_of(q, k, v, 2, w, b, out, mask + np.where(padding, -np.inf, 0)[:, None, None])
    common = (*map(tensor, (q, k, v)), 4, 2, tensor(w), tensor(b), None, None, False, 0.0, tensor(out), None)
    options = {"key_padding_mask": tensor(np.where(padding, -np.inf, 0)), "attn_mask": tensor(mask)}
    result, found = F.multi_head_attention_forward(*common, **options)
    assert_close(result, expected)
    assert_close(found, weights.mean(1))
    assert_close(F.multi_head_attention_forward(*common, **options, average_attn_weights=False)[1], weights)
    result, found = F.multi_head_attention_forward(*common, **options, need_weights=False)
    assert_close(result, expected)
    assert found is None
    # One sequence without a batch dimension.
    single = (*(tensor(x[:, 0]) for x in (q, k, v)), *common[3:])
    assert_close(
        F.multi_head_attention_forward(*single, attn_mask=tensor(mask))[0],
        heads_of(q, k, v, 2, w, b, out, mask)[0][:, 0],
    )
    # Separate projection weights.
    separate = dict(zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), map(tensor, np.split(w, 3)), strict=True))
    apart = (*common[:5], None, *common[6:])
    result, _ = F.multi_head_attention_forward(*apart, use_separate_proj_weight=True, **separate)
    assert_close(result, heads_of(q, k, v, 2, w, b, out)[0])


def test_further_keys(rng):
    q, k, v = (rng.standard_normal((n, 2, 4)) for n in (3, 5, 5))
    w, b, out = rng.standard_normal((12, 4)), np.zeros(12), np.eye(4)
    extra = rng.standard_normal((1, 1, 4))
    # bias_k adds a row after the projection. With an invertible projection, this equals a row
    # before it.
    more_k, more_v = (
        np.concatenate([x, np.broadcast_to(extra @ np.linalg.inv(part).T, (1, 2, 4))])
        for x, part in zip((k, v), np.split(w, 3)[1:], strict=True)
    )
    expected, _ = heads_of(q, more_k, more_v, 2, w, b, out)
    common = (*map(tensor, (q, k, v)), 4, 2, tensor(w), tensor(b))
    rest = (0.0, tensor(out), None)
    result, weights = F.multi_head_attention_forward(*common, tensor(extra), tensor(extra), False, *rest)
    assert_close(result, expected)
    assert weights.shape == (2, 3, 6)
    zero_k, zero_v = (np.concatenate([x, np.zeros((1, 2, 4))]) for x in (k, v))
    result, weights = F.multi_head_attention_forward(*common, None, None, True, *rest)
    assert_close(result, heads_of(q, zero_k, zero_v, 2, w, b, out)[0])
    assert weights.shape == (2, 3, 6)


def test_causal_heads_and_errors(rng):
    x = tensor(rng.standard_normal((3, 2, 4)))
    w, out = tensor(rng.standard_normal((12, 4))), candelabra.eye(4, dtype=candelabra.float64)
    common = (x, x, x, 4, 2, w, None, None, None, False, 0.0, out, None)
    mask = candelabra.ones(3, 3, dtype=candelabra.bool).triu(1)
    fast, _ = F.multi_head_attention_forward(*common, attn_mask=mask, is_causal=True, need_weights=False)
    assert_close(fast, array(F.multi_head_attention_forward(*common, attn_mask=mask)[0]))
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        F.multi_head_attention_forward(*common, is_causal=True)
    with pytest.raises(AssertionError, match="embedding dimension of 5"):
        F.multi_head_attention_forward(x, x, x, 5, *common[4:])
    with pytest.raises(AssertionError, match="not divisible"):
        F.multi_head_attention_forward(x, x, x, 4, 3, *common[5:])
    with pytest.raises(RuntimeError, match="2D attn_mask"):
        F.multi_head_attention_forward(*common, attn_mask=mask[:2])
    with pytest.raises(AssertionError, match="bias_k and bias_v"):
        F.multi_head_attention_forward(*common[:7], x[:1, :1], *common[8:])


def test_ways_of_attention(rng):
    from candelabra.nn.attention import SDPBackend, sdpa_kernel
    from candelabra.nn.attention.bias import causal_lower_right, causal_upper_left

    q, k, v = (tensor(rng.standard_normal(shape)) for shape in ((2, 3, 4), (2, 5, 4), (2, 5, 6)))
    plain = F.scaled_dot_product_attention(q, k, v, causal_lower_right(3, 5))
    for ways in (SDPBackend.MATH, [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], SDPBackend.EFFICIENT_ATTENTION):
        with sdpa_kernel(ways, set_priority=True):
            assert_close(F.scaled_dot_product_attention(q, k, v, causal_lower_right(3, 5)), array(plain))
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), sdpa_kernel(SDPBackend.MATH):
        assert F.scaled_dot_product_attention(q, k, v, dropout_p=0.5).shape == (2, 3, 6)
    for ways, options in ((SDPBackend.FLASH_ATTENTION, {"dropout_p": 0.5}), ([], {}), (SDPBackend.ERROR, {})):
        with sdpa_kernel(ways), pytest.raises(RuntimeError, match="No viable backend for scaled_dot_product_attention"):
            F.scaled_dot_product_attention(q, k, v, **options)
    assert F.scaled_dot_product_attention(q, k, v, dropout_p=0.5).shape == (2, 3, 6)
    assert_close(
        F.scaled_dot_product_attention(q, k, v, causal_upper_left(3, 5)),
        array(F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    )
    for ways in (3, [3]):
        with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"), sdpa_kernel(ways):
            pass
    with pytest.raises(AssertionError, match="causal_lower_right only supports 2D tensors"):
        causal_lower_right(1, 2, 3)
    assert repr(SDPBackend.MATH) == "<SDPBackend.MATH: 0>"


@pytest.mark.parametrize("fast", [candelabra.bfloat16, candelabra.float16])
@pytest.mark.parametrize("mask_dtype", [None, candelabra.bool, candelabra.float32, candelabra.float64])
def test_under_autocast_dtypes_may_differ(fast, mask_dtype):
    candelabra.manual_seed(0)
    query, key, value = candelabra.randn(3, 2, 2, 5, 8)
    mask = None if mask_dtype is None else candelabra.ones(5, 5).tril().to(mask_dtype)
    as_fast = mask if mask_dtype in (None, candelabra.bool) else mask.to(fast)
    expected = F.scaled_dot_product_attention(query.to(fast), key.to(fast), value.to(fast), attn_mask=as_fast)
    with candelabra.autocast(query.device.type, dtype=fast):
        if mask_dtype is candelabra.float64:
            with pytest.raises(RuntimeError, match="Expected attn_mask dtype to be"):
                F.scaled_dot_product_attention(query, key, value, mask)
            return
        for dtypes in [(candelabra.float32, fast, fast), (fast, candelabra.float32, fast), (candelabra.float32,) * 3]:
            given = [x.to(fast).to(dtype) for x, dtype in zip((query, key, value), dtypes, strict=True)]
            found = F.scaled_dot_product_attention(*given, mask)
            assert found.dtype == fast
            assert found.equal(expected)
            names = dict(zip(("query", "key", "value"), given, strict=True))
            assert F.scaled_dot_product_attention(**names, attn_mask=mask).equal(expected)
        # As in PyTorch, float64 is not cast.
        with pytest.raises(RuntimeError, match="to have the same dtype"):
            F.scaled_dot_product_attention(query.double(), key, value)
