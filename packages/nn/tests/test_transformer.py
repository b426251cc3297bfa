"""Test multi-head attention and transformers against formulas in NumPy."""

import numpy as np
import pytest
from nn_numerics import array, assert_close, tensor

import candelabra
from candelabra import nn

F64 = {"dtype": candelabra.float64}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(layer, q, k, v, mask=0.0):
    """Attend with (L, E) queries and (S, E) keys and values. The mask is added to the scores.
    Return the output and each head's weights.
    """
    state = {name: array(value) for name, value in layer.state_dict().items()}
    heads, width = layer.num_heads, layer.embed_dim
    if "in_proj_weight" in state:
        ws = np.split(state["in_proj_weight"], 3)
    else:
        ws = [state[f"{name}_proj_weight"] for name in "qkv"]
    bs = np.split(state.get("in_proj_bias", np.zeros(3 * width)), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), ws, bs, strict=True))
    if "bias_k" in state:
        k, v = np.concatenate([k, state["bias_k"][0]]), np.concatenate([v, state["bias_v"][0]])
    if layer.add_zero_attn:
        k, v = (np.concatenate([x, np.zeros((1, width))]) for x in (k, v))
    size = width // heads
    outputs, weights = [], []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        weights.append(softmax(q[:, part] @ k[:, part].T / np.sqrt(size) + mask))
        outputs.append(weights[-1] @ v[:, part])
    joined = np.concatenate(outputs, -1)
    return joined @ state["out_proj.weight"].T + state.get("out_proj.bias", 0), np.array(weights)


def normalized(layer, x):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + layer.eps) * array(layer.weight) + (
        0 if layer.bias is None else array(layer.bias)
    )


def affine(layer, x):
    return x @ array(layer.weight).T + (0 if layer.bias is None else array(layer.bias))


def shake(module):
    """Set nonzero biases and scales other than one."""
    with candelabra.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * candelabra.randn(parameter.shape, dtype=parameter.dtype))
    return module


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"kdim": 3, "vdim": 5}, {"add_bias_kv": True}, {"add_zero_attn": True}]
)
def test_multihead_attention(rng, options, batch_first):
    layer = shake(nn.MultiheadAttention(6, 2, batch_first=batch_first, **options, **F64))
    q, k, v = (
        rng.standard_normal((2, 4, 6)),
        rng.standard_normal((2, 3, layer.kdim)),
        rng.standard_normal((2, 3, layer.vdim)),
    )
    given = [tensor(x if batch_first else x.swapaxes(0, 1)) for x in (q, k, v)]
    output, weights = layer(*given)
    fused, none = layer(*given, need_weights=False)
    each = layer(*given, average_attn_weights=False)[1]
    assert none is None
    for n in range(2):
        expected, by_head = attention(layer, q[n], k[n], v[n])
        assert_close(output[n] if batch_first else output[:, n], expected)
        assert_close(fused[n] if batch_first else fused[:, n], expected)
        assert_close(weights[n], by_head.mean(0))
        assert_close(each[n], by_head)
        alone, one = layer(tensor(q[n]), tensor(k[n]), tensor(v[n]))
        assert_close(alone, expected)
        assert_close(one, by_head.mean(0))


def test_masks(rng):
    layer = shake(nn.MultiheadAttention(4, 2, batch_first=True, **F64))
    x = rng.standard_normal((2, 3, 4))
    hidden = np.array([[False, False, True], [False, True, False]])
    causal = np.triu(np.full((3, 3), -np.inf), 1)
    both = layer(*[tensor(x)] * 3, key_padding_mask=tensor(np.where(hidden, -np.inf, 0.0)), attn_mask=tensor(causal))[0]
    padded = layer(*[tensor(x)] * 3, key_padding_mask=tensor(hidden), need_weights=False)[0]
    hinted = layer(*[tensor(x)] * 3, attn_mask=tensor(causal), is_causal=True, need_weights=False)[0]
    for n in range(2):
        padding = np.where(hidden[n], -np.inf, 0.0)
        assert_close(both[n], attention(layer, x[n], x[n], x[n], causal + padding)[0])
        assert_close(padded[n], attention(layer, x[n], x[n], x[n], padding)[0])
        assert_close(hinted[n], attention(layer, x[n], x[n], x[n], causal)[0])
    merged, kind = layer.merge_masks(tensor(causal), tensor(np.zeros((2, 3))), tensor(x))
    assert merged.shape == (2, 2, 3, 3) and kind == 2
    assert layer.merge_masks(None, tensor(hidden), tensor(x))[1] == 1 and layer.merge_masks(None, None, tensor(x)) == (
        None,
        None,
    )


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_encoder_layer(rng, norm_first, bias):
    layer = shake(
        nn.TransformerEncoderLayer(4, 2, 7, 0.0, "gelu", norm_first=norm_first, bias=bias, batch_first=True, **F64)
    )
    x = rng.standard_normal((2, 3, 4))
    mask = np.triu(np.full((3, 3), -np.inf), 1)
    output = layer(tensor(x), src_mask=tensor(mask))
    from scipy.special import ndtr

    def network(x):
        hidden = affine(layer.linear1, x)
        return affine(layer.linear2, hidden * ndtr(hidden))

    for n in range(2):
        a = x[n]
        if norm_first:
            b = normalized(layer.norm1, a)
            a = a + attention(layer.self_attn, b, b, b, mask)[0]
            a = a + network(normalized(layer.norm2, a))
        else:
            a = normalized(layer.norm1, a + attention(layer.self_attn, a, a, a, mask)[0])
            a = normalized(layer.norm2, a + network(a))
        assert_close(output[n], a)


@pytest.mark.parametrize("norm_first", [True, False])
def test_decoder_layer(rng, norm_first):
    layer = shake(nn.TransformerDecoderLayer(4, 2, 7, 0.0, norm_first=norm_first, batch_first=True, **F64))
    x, memory = rng.standard_normal((1, 3, 4)), rng.standard_normal((1, 5, 4))
    hidden = np.array([[False, True, False, False, True]])
    output = layer(tensor(x), tensor(memory), memory_key_padding_mask=tensor(hidden))
    mask = np.where(hidden[0], -np.inf, 0.0)

    def network(x):
        return affine(layer.linear2, np.maximum(affine(layer.linear1, x), 0))

    a, m = x[0], memory[0]
    if norm_first:
        b = normalized(layer.norm1, a)
        a = a + attention(layer.self_attn, b, b, b)[0]
        a = a + attention(layer.multihead_attn, normalized(layer.norm2, a), m, m, mask)[0]
        a = a + network(normalized(layer.norm3, a))
    else:
        a = normalized(layer.norm1, a + attention(layer.self_attn, a, a, a)[0])
        a = normalized(layer.norm2, a + attention(layer.multihead_attn, a, m, m, mask)[0])
        a = normalized(layer.norm3, a + network(a))
    assert_close(output[0], a)


def test_stacks_are_copies_one_after_another(rng):
    layer = nn.TransformerEncoderLayer(4, 2, 7, 0.0, **F64)
    stack = shake(nn.TransformerEncoder(layer, 2, nn.LayerNorm(4, **F64)))
    assert not any(p is q for p in layer.parameters() for q in stack.parameters())
    x = tensor(rng.standard_normal((3, 2, 4)))
    assert_close(stack(x), array(stack.norm(stack.layers[1](stack.layers[0](x)))))
    decoder = shake(nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 7, 0.0, **F64), 2))
    memory = tensor(rng.standard_normal((5, 2, 4)))
    assert_close(decoder(x, memory), array(decoder.layers[1](decoder.layers[0](x, memory), memory)))


def test_transformer(rng):
    model = shake(nn.Transformer(4, 2, 1, 1, 7, 0.0, **F64))
    src, tgt = tensor(rng.standard_normal((5, 2, 4))), tensor(rng.standard_normal((3, 2, 4)))
    mask = model.generate_square_subsequent_mask(3, dtype=candelabra.float64)
    assert_close(mask, np.triu(np.full((3, 3), -np.inf), 1))
    output = model(src, tgt, tgt_mask=mask)
    assert_close(output, array(model.decoder(tgt, model.encoder(src), tgt_mask=mask)))
    # With a causal mask, later positions have no effect. Test it declared, detected, and boolean.
    changed = tgt.clone()
    changed[2] = 9.0
    assert_close(model(src, changed, tgt_mask=mask)[:2], array(output[:2]))
    assert_close(model(src, tgt, tgt_mask=mask, tgt_is_causal=True), array(output))
    assert_close(model(src, tgt, tgt_mask=mask == -np.inf), array(output))
    custom = nn.Transformer(4, 2, custom_encoder=nn.Identity(), num_decoder_layers=1, dim_feedforward=7)
    assert isinstance(custom.encoder, nn.Identity)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: nn.MultiheadAttention(4, 3), AssertionError, "embed_dim must be divisible by num_heads"),
        (
            lambda: nn.MultiheadAttention(0, 3),
            ValueError,
            "embed_dim and num_heads must be greater than 0, got embed_dim=0",
        ),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="x"),
            RuntimeError,
            "activation should be relu/gelu, not x",
        ),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 8)(candelabra.ones(3, 2, 4), candelabra.ones(3, 1, 4)),
            RuntimeError,
            "the batch number of src and tgt must be equal",
        ),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 8)(candelabra.ones(3, 2, 5), candelabra.ones(3, 2, 4)),
            RuntimeError,
            "the feature number of src and tgt must be equal to d_model",
        ),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


@pytest.mark.parametrize("activation", ["relu", "gelu", nn.ReLU(), nn.GELU(), nn.GELU("tanh"), candelabra.tanh])
@pytest.mark.parametrize("bias", [True, False])
def test_product_and_activation_without_a_record(rng, activation, bias):
    layer = shake(nn.TransformerEncoderLayer(8, 2, 12, 0.0, activation, bias=bias, batch_first=True, **F64)).eval()
    decoder = shake(nn.TransformerDecoderLayer(8, 2, 12, 0.0, activation, bias=bias, batch_first=True, **F64)).eval()
    x, memory = tensor(rng.standard_normal((2, 5, 8))), tensor(rng.standard_normal((2, 3, 8)))
    recorded, decoded = layer(x), decoder(x, memory)  # recorded if autograd is installed
    assert layer.linear1.weight.requires_grad
    function = layer.activation
    for given, single in ((x, False), (x.transpose(0, 1).contiguous().transpose(0, 1), False), (x[0], True)):
        with candelabra.no_grad():
            assert_close(layer(given), array(recorded[0] if single else recorded))
            hidden = layer.linear1(given)
            assert_close(layer._network(given), array(layer.linear2(function(hidden))))
    with candelabra.no_grad():
        assert_close(decoder(x, memory), array(decoded))
    # Frozen parameters are not recorded either.
    for parameter in layer.parameters():
        parameter.requires_grad_(False)
    assert_close(layer(x), array(recorded))


def test_hooks_and_changes_of_the_first_layer_are_seen(rng):
    layer = nn.TransformerEncoderLayer(4, 2, 6, 0.0, nn.ReLU(), batch_first=True, **F64).eval()
    x, seen = tensor(rng.standard_normal((2, 3, 4))), []
    with candelabra.no_grad():
        plain = layer(x)
        handles = [
            module.register_forward_hook(lambda *_: seen.append(1)) for module in (layer.linear1, layer.activation)
        ]
        assert_close(layer(x), array(plain))
        assert len(seen) == 2
        for handle in handles:
            handle.remove()
        layer.linear1.forward = lambda given: candelabra.zeros(*given.shape[:-1], 6, **F64)
        assert_close(layer._network(x), array(layer.linear2.bias.expand(2, 3, 4)))
        del layer.linear1.forward
        assert_close(layer(x), array(plain))
