"""Whole models: ONNX Runtime computes what they compute, at other sizes too."""

import pytest

pytest.importorskip("onnx", reason="the export writes its files with onnx: pip install onnx")
pytest.importorskip("onnxruntime", reason="the oracle of these tests: pip install onnxruntime")

import export_cases
from onnx_oracle import assert_same, check, exported

import candelabra
import candelabra.nn.functional as F
from candelabra import nn, onnx

#: Layers of the tests of exported programs that ONNX does not have.
WITHOUT_RULE = {"FractionalMaxPool2d": "uniform_"}


def test_layers():
    for layer, args in export_cases.cases():
        name = type(layer).__name__
        if name in WITHOUT_RULE:
            with pytest.raises(onnx.UnsupportedOperatorError, match=WITHOUT_RULE[name]):
                exported(layer, args)
        else:
            check(layer, *args, tolerance=1e-4)


class Block(nn.Module):
    """A residual block, in place as those of torchvision."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += self.downsample(x)
        return self.relu(out)


def test_residual_network_of_any_batch():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1), Block(8, 16, 2), Block(16, 16, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(16, 5),
    )  # fmt: skip
    for _ in range(2):
        model.train()(candelabra.randn(4, 3, 32, 32))
    x = candelabra.randn(2, 3, 32, 32)
    program = exported(model, (x,), dynamic_shapes=({0: "batch"},), input_names=["image"], output_names=["scores"])
    graph = program.model_proto.graph
    assert [one.name for one in graph.input] == ["image"] and [one.name for one in graph.output] == ["scores"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    names = {one.name for one in graph.initializer}
    assert {"4.conv1.weight", "4.bn1.running_mean", "9.bias"} <= names
    assert "1.num_batches_tracked" not in names
    for batch in (1, 2, 7):
        assert_same(program, model, (candelabra.randn(batch, 3, 32, 32),), 1e-4)


class Attention(nn.Module):
    """A decoder layer with rotary positions."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("frequencies", 100 ** (-candelabra.arange(0, width // heads, 2) / 8), persistent=False)

    def rotated(self, x):
        angles = candelabra.outer(candelabra.arange(x.shape[2]).float(), self.frequencies)
        cos, sin = candelabra.cat([angles, angles], -1).cos(), candelabra.cat([angles, angles], -1).sin()
        a, b = x.chunk(2, -1)
        return (x * cos + candelabra.cat([-b, a], -1) * sin).type_as(x)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(width, dim=-1)
        q, k, v = (one.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for one in (q, k, v))
        y = F.scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=50, width=16, heads=2, layers=2):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(32, width)
        self.layers = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(candelabra.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, [-1], :]), x


def test_gpt_of_any_length():
    model, tokens = GPT(), candelabra.randint(0, 50, (2, 8))
    program = exported(model, (tokens,), dynamic_shapes=({0: "batch", 1: "time"},))
    for sizes in ((2, 8), (1, 1), (3, 21)):
        assert_same(program, model, (candelabra.randint(0, 50, sizes),), 1e-4)


def test_masks_of_any_length():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)

    def encoded(x, is_padding):
        mask = candelabra.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        return layer(x, mask, is_padding)

    layer.eval()
    x, is_padding = candelabra.randn(2, 5, 8), candelabra.zeros(2, 5, dtype=candelabra.bool)
    is_padding[1, 3:] = True
    sizes = {0: "batch", 1: "time"}
    program = exported(encoded, (x, is_padding), dynamic_shapes=(sizes, sizes))
    assert_same(program, encoded, (x, is_padding), 1e-4)
    assert_same(program, encoded, (candelabra.randn(3, 9, 8), candelabra.arange(9).expand(3, 9) > 6), 1e-4)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_of_any_length(kind):
    model = kind(4, 6, 2, batch_first=True, bidirectional=True)
    x = candelabra.randn(2, 5, 4)
    program = exported(model, (x,), dynamic_shapes=({0: "batch", 1: "time"},))
    assert "Loop" not in {node.op_type for node in program.model_proto.graph.node}
    for sizes in ((2, 5), (3, 9)):
        assert_same(program, model, (candelabra.randn(*sizes, 4),), 1e-4)


def test_recurrent_layers_that_were_exported_with_gradients():
    model, x = nn.LSTM(4, 6), candelabra.randn(5, 2, 4)
    states = (candelabra.randn(1, 2, 6), candelabra.randn(1, 2, 6))
    program = onnx.export(candelabra.export.export(model.eval(), (x, states)))
    found, (h, c) = program(x, states)[0], program(x, states)[1:]
    wanted = model(x, states)
    for one, other in zip((found, h, c), (wanted[0], *wanted[1]), strict=True):
        candelabra.testing.assert_close(one, other.detach(), rtol=1e-4, atol=1e-5)


def test_writes_to_parts_of_any_size():
    def shifted(x):
        y = x.clone()
        y[:, 1:] = x[:, :-1]
        y[:, 0] = 0
        y[:, :, 1].mul_(2)
        return y

    program = exported(shifted, (candelabra.randn(2, 5, 3),), dynamic_shapes=({0: "batch", 1: "time"},))
    for sizes in ((2, 5), (3, 8)):
        assert_same(program, shifted, (candelabra.randn(*sizes, 3),))


def test_images_of_any_size():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.MaxPool2d(2), nn.GroupNorm(2, 4), nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.ConvTranspose2d(4, 4, 2, 2), nn.PixelShuffle(2), nn.ReflectionPad2d(1),
    )  # fmt: skip
    program = exported(model, (candelabra.randn(2, 3, 8, 10),), dynamic_shapes=({2: "height", 3: "width"},))
    for sizes in ((8, 10), (12, 6)):
        assert_same(program, model, (candelabra.randn(2, 3, *sizes),), 1e-4)


def test_bfloat16():
    import onnx as package

    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8)).to(candelabra.bfloat16)
    x = candelabra.randn(2, 4, dtype=candelabra.bfloat16)
    program = exported(model, (x,), opset_version=18)
    proto = program.model_proto
    package.checker.check_model(proto, full_check=True)
    assert {one.data_type for one in proto.graph.initializer} == {package.TensorProto.BFLOAT16}
    bits = next(one for one in proto.graph.initializer if one.name == "0.bias").raw_data
    assert bits == model[0].bias.detach().view(candelabra.int16).numpy().tobytes()
    # ONNX Runtime has no bfloat16 kernels on the CPU.
    (found,) = program.call_reference(x)
    assert found.dtype is candelabra.bfloat16
    candelabra.testing.assert_close(found, model(x).detach(), rtol=0.05, atol=0.05)


def test_many_writes():
    def summed(x):
        total = candelabra.zeros(4) + x
        row = total[0]
        for _ in range(1500):
            total += x
        return row, total

    check(summed, candelabra.ones(2, 4))
