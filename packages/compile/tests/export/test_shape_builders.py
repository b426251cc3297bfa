"""``dynamic_shapes`` by tensor and from further examples."""

import pytest

import candelabra
from candelabra import nn
from candelabra.export import AdditionalInputs, Dim, ShapesCollection, default_decompositions, export


class Pair(nn.Module):
    def forward(self, x, others, *, scale):
        return x.sum(1) * scale + others["a"][0]


def arguments(batch, width=3):
    return (candelabra.randn(batch, width), {"a": [candelabra.randn(batch)]}), {"scale": candelabra.ones(())}


def test_shapes_of_tensors():
    args, kwargs = arguments(4)
    shapes, batch = ShapesCollection(), Dim("batch")
    shapes[args[0]] = {0: batch}
    shapes[args[1]["a"][0]] = (batch,)
    assert len(shapes) == 2
    assert shapes[args[0]] == {0: batch}
    program = export(Pair(), args, kwargs, dynamic_shapes=shapes)
    more, named = arguments(9)
    assert program.module()(*more, **named).equal(Pair()(*more, **named))
    with pytest.raises(ValueError, match="do not match"):
        shapes[args[0]] = {1: batch}
    with pytest.raises(TypeError, match="assigned to tensors"):
        shapes[3] = {0: batch}
    with pytest.raises(ValueError, match="were not found in args"):
        export(Pair(), *arguments(4), dynamic_shapes=shapes)


def test_shapes_of_further_examples():
    args, kwargs = arguments(4)
    inputs = AdditionalInputs()
    inputs.add(*arguments(5))
    inputs.add(*arguments(7))
    program = export(Pair(), args, kwargs, dynamic_shapes=inputs)
    program.validate()
    inputs.verify(program)
    more, named = arguments(9)
    assert program.module()(*more, **named).equal(Pair()(*more, **named))
    with pytest.raises(Exception, match="size|shape|dimension"):
        program.module(check_guards=False)(*arguments(9, 4)[0], **named)
    assert program.run_decompositions(default_decompositions()) is program


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((candelabra.ones(4), 2.0), "differing values"),
        ((candelabra.ones(4), 1), "differing types"),
        ((candelabra.ones(4, 1), 1.0), "numbers of dimensions"),
    ],
)
def test_examples_that_differ_otherwise(args, reason):
    class Scaled(nn.Module):
        def forward(self, x, scale):
            return x * scale

    inputs = AdditionalInputs()
    inputs.add(args)
    with pytest.raises(ValueError, match=reason):
        export(Scaled(), (candelabra.ones(4), 1.0), dynamic_shapes=inputs)
    with pytest.raises(TypeError, match="must be a tuple"):
        inputs.add([1])
