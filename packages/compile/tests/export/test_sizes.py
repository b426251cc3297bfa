"""Sizes that differ from call to call."""

import pytest

import candelabra
from candelabra import nn
from candelabra.export import Dim, ExportError, export
from candelabra.export.graph import Size


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def windows(x):
    batch, height, width = x.shape
    return x.view(batch, height // 2, 2, width // 2, 2).permute(0, 1, 3, 2, 4).reshape(-1, 4)


N, H, W = Dim("n"), Dim("h", min=2), Dim("w", min=2)

PROGRAMS = [
    (lambda x: x.reshape(x.shape[0] * 2, -1), {0: N}, (4, 6), [(1, 6), (9, 6)]),
    (lambda x: x[: x.shape[0] - 1], {0: N}, (4, 6), [(2, 6), (9, 6)]),
    (lambda x: x.flip(0)[: x.shape[0] // 2], {0: N}, (4, 6), [(1, 6), (7, 6), (8, 6)]),
    (lambda x: x[: -(-x.shape[0] // 3)], {0: N}, (4, 6), [(1, 6), (7, 6), (9, 6)]),
    (lambda x: x / x.shape[0], {0: N}, (4, 6), [(3, 6)]),
    (lambda x: x.sum(0) / float(x.shape[0] * x.shape[1]), {0: N, 1: H}, (4, 6), [(3, 5)]),
    (lambda x: x + candelabra.arange(x.shape[1]), {1: N}, (4, 6), [(4, 1), (4, 11)]),
    (lambda x: candelabra.zeros(x.shape[0], 2 * x.shape[0] + 3), {0: N}, (4, 6), [(5, 6)]),
    (lambda x: candelabra.cat([x, x, x]).unflatten(0, (3, x.shape[0])), {0: N}, (4, 6), [(5, 6)]),
    (lambda x: x.view(x.numel()), {0: N, 1: H}, (4, 6), [(5, 7)]),
    (lambda x: (x.mean(0), x.shape[0], [x.size(1)]), {0: N, 1: H}, (4, 6), [(5, 7)]),
    (windows, {0: N, 1: 2 * Dim("h2"), 2: 2 * Dim("w2")}, (2, 4, 6), [(1, 8, 2), (3, 2, 10)]),
    (nn.Sequential(nn.Conv1d(3, 4, 3, stride=2), nn.Flatten(1), nn.Unflatten(1, (4, -1))), {0: N, 2: Dim("l", min=8)}, (2, 3, 11), [
        (1, 3, 8), (3, 3, 19),
    ]),
    (nn.Sequential(nn.Unfold(2), nn.Flatten()), {2: H, 3: W}, (2, 3, 5, 6), [(2, 3, 2, 3), (2, 3, 9, 7)]),
    (lambda x: nn.functional.interpolate(x, size=(x.shape[2] * 2, x.shape[3])), {2: H, 3: W}, (1, 2, 5, 6), [(1, 2, 3, 4)]),
    (nn.AdaptiveAvgPool2d(2), {0: N, 2: H, 3: W}, (1, 2, 5, 6), [(3, 2, 4, 9)]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "dynamic", "example", "others"), PROGRAMS)
def test_other_sizes(function, dynamic, example, others):
    module = export(Of(function), (candelabra.randn(example),), dynamic_shapes=(dynamic,)).module()
    for shape in (example, *others):
        x = candelabra.randn(shape)
        expected, found = function(x), module(x)
        if isinstance(expected, tuple):
            assert found[0].equal(expected[0]) and found[1:] == expected[1:]
        else:
            assert found.equal(expected), shape


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x + 1 if x.shape[0] > 4 else x * 2, r"other operators at other sizes: mul \(.*test_sizes.py"),
        (lambda x: sum(x[k] for k in range(x.shape[0])), "at other sizes"),
        (lambda x: x.split(2)[0], "returns another number of tensors at other sizes: 2 became 4"),
        (lambda x: x * x.shape[0] ** 0.5, r"argument 'other' of mul \(.*test_sizes.py:\d+\) is 2.0 in the example"),
        (lambda x: x + candelabra.tensor([float(x.shape[0])]), "made from numbers of Python"),
        (lambda x: x.view(4, 6), r"the program does not run at other sizes: with n=8 it raises"),
    ],
)
def test_sizes_that_do_not_work(function, message):
    with pytest.raises(ExportError, match=message):
        export(Of(function), (candelabra.ones(4, 6),), dynamic_shapes=({0: N},))
    # Sizes that may be fixed are fixed then.
    module = export(Of(function), (candelabra.ones(4, 6),), dynamic_shapes=({0: Dim.AUTO},)).module()
    assert module(candelabra.ones(4, 6)).equal(function(candelabra.ones(4, 6)))
    with pytest.raises(RuntimeError, match="dimension 0 of argument x is 5, but must be 4"):
        module(candelabra.ones(5, 6))


def test_limits_of_recorded_sizes():
    sizes = []

    def function(x):
        sizes.append(x.shape[0])
        return x + 1

    export(Of(function), (candelabra.ones(4),), dynamic_shapes=({0: Dim("n", min=3, max=5)},))
    assert sizes[0] == 4 and set(sizes[1:]) <= {3, 5}
    with pytest.raises(ExportError, match="no other size"):
        export(Of(function), (candelabra.ones(4),), dynamic_shapes=({0: Dim("n", min=4, max=4)},))


def test_formulas():
    def shape_of(value):
        return {0: (7, 5), 1: (3,)}[value]

    assert Size(((0, 0),)).evaluate(shape_of) == 7
    assert Size(((0, 0), (1, 0)), 2, 5, 1).evaluate(shape_of) == 9
    assert Size(((0, 0),), 1, 2, 0, rounds_up=True).evaluate(shape_of) == 4
    assert type(Size(((0, 1),), is_float=True).evaluate(shape_of)) is float


class Variadic(nn.Module):
    def forward(self, x, *others, scale=None, **more):
        for one in (*others, *more.values()):
            x = x + one
        return x if scale is None else x * scale


@pytest.mark.parametrize("form", ["by name", "in order", "flat"])
def test_sizes_of_variadic_arguments(form):
    rows = {0: Dim("rows", max=64)}
    x = candelabra.ones(5, 4)
    entries = {"by name": {"x": rows, "others": (rows, rows)}, "in order": (rows, (rows, rows)), "flat": (rows,) * 3}
    module = export(Variadic(), (x, x, x), dynamic_shapes=entries[form]).module()
    y = candelabra.randn(7, 4)
    assert module(y, y, y).equal(y + y + y)


def test_sizes_of_variadic_keywords():
    rows = {0: Dim("rows", max=64)}
    x = candelabra.ones(5, 4)
    entries = {"x": rows, "others": (rows,), "scale": rows, "more": {"z": rows}}
    module = export(Variadic(), (x, x), {"scale": x, "z": x}, dynamic_shapes=entries).module()
    y = candelabra.randn(7, 4)
    assert module(y, y, scale=y, z=y).equal(3 * y * y)
    with pytest.raises(ExportError, match=r"dynamic_shapes has 2 entries for the 1 arguments \['others_0'\]"):
        export(Variadic(), (x, x), dynamic_shapes={"x": rows, "others": (rows, rows)})


def test_dynamic_sizes_that_have_to_be_equal_are_one():
    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    class Product(nn.Module):
        def forward(self, x, y):
            return x.sum() * y

    x = candelabra.ones(5, 4)
    sizes = {"x": {0: Dim.DYNAMIC}, "y": {0: Dim.DYNAMIC}}
    module = export(Sum(), (x, x), dynamic_shapes=sizes).module()
    y = candelabra.randn(7, 4)
    assert module(y, y).equal(y + y)
    with pytest.raises(RuntimeError, match="dimension 0 of argument y is 5, but must be d0_0, with d0_0 = 7 elsewhere"):
        module(y, x)
    assert export(Product(), (x, x), dynamic_shapes=sizes).module()(y, x).equal(y.sum() * x)
