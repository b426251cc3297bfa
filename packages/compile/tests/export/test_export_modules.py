"""Exported layers compute what the layers compute, also after a round trip through a file."""

import io

import pytest
from export_cases import cases

import candelabra
from candelabra import nn, pytree
from candelabra.export import Dim, export, load, save

CASES = cases()


def same(a, b):
    """Whether two results are equal, NaN and all."""
    a, b = pytree.tree_leaves(a), pytree.tree_leaves(b)
    return len(a) == len(b) and all(
        one.dtype == other.dtype and one.shape == other.shape and candelabra.allclose(one, other, 0, 0, equal_nan=True)
        if isinstance(one, candelabra.Tensor)
        else one == other
        for one, other in zip(a, b, strict=True)
    )


def copies(args):
    return pytree.tree_map(lambda leaf: leaf.clone(), args)


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize(
    ("layer", "args"), CASES, ids=[f"{type(layer).__name__}{k}" for k, (layer, _) in enumerate(CASES)]
)
def test_layers(layer, args, mode):
    layer.train(mode == "train")
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    given = copies(args)
    program = export(layer, given)
    assert same(given, args)
    assert same(dict(layer.state_dict()), before)
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    loaded = load(file)
    candelabra.manual_seed(5)
    expected = layer(*copies(args))
    after = {name: value.clone() for name, value in layer.state_dict().items()}
    candelabra.manual_seed(5)
    assert same(loaded.module()(*copies(args)), expected)
    assert same(dict(loaded.state_dict), after)
    layer.load_state_dict(before)
    candelabra.manual_seed(5)
    assert same(program.module()(*copies(args)), expected)


class Block(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, channels * stride, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(channels * stride)
        self.second = nn.Conv2d(channels * stride, channels * stride, 3, 1, 1)
        self.shortcut = nn.Conv2d(channels, channels * stride, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return (self.second(self.norm(self.first(x)).relu_()) + self.shortcut(x)).relu()


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        self.blocks = nn.Sequential(Block(8, 1), Block(8, 2), nn.Dropout(0.2))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5)

    def forward(self, x):
        return self.head(candelabra.flatten(self.pool(self.blocks(self.stem(x))), 1))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.norm, self.attend, self.project = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        batch, length = ids.shape
        x = self.tokens(ids) + self.positions(candelabra.arange(length, device=ids.device))
        q, k, v = self.attend(self.norm(x)).view(batch, length, 3, 4, 4).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) / 2
        mask = candelabra.ones(length, length, dtype=candelabra.bool).tril()
        mixed = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
        return self.head(x + self.project(mixed.transpose(1, 2).reshape(batch, length, -1)))


def test_a_convolutional_network_of_any_batch_and_image():
    model = ResNet().eval()
    batch, height, width = Dim("batch"), Dim("height", min=16), Dim("width", min=16)
    program = export(model, (candelabra.randn(2, 3, 32, 32),), dynamic_shapes={"x": {0: batch, 2: height, 3: width}})
    module = program.module()
    for shape in ((1, 3, 32, 32), (5, 3, 40, 24), (2, 3, 17, 33)):
        x = candelabra.randn(shape)
        assert module(x).equal(model(x))


@pytest.mark.parametrize("form", ["tuple", "auto"])
def test_a_transformer_of_any_batch_and_length(form):
    model = GPT()
    ids = candelabra.randint(0, 50, (2, 7))
    shapes = ((Dim("batch"), Dim("length", max=32)),) if form == "tuple" else {"ids": (Dim.AUTO, Dim.AUTO)}
    program = export(model, (ids,), dynamic_shapes=shapes)
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    module = load(file).module()
    for shape in ((1, 1), (3, 32), (2, 7), (7, 2)):
        x = candelabra.randint(0, 50, shape)
        assert module(x).equal(model(x))
    # The tied weight is one tensor.
    assert len(list(module.parameters())) == len(list(model.parameters()))
