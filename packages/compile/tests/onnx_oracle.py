"""ONNX Runtime as the oracle of exported programs."""

import candelabra
from candelabra import nn, onnx, pytree


class Of(nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def exported(model, args, **options):
    """Return the ONNX program of a module or a function."""
    module = model if isinstance(model, nn.Module) else Of(model)
    return onnx.export(module.eval(), args, **options)


def assert_same(program, model, args, tolerance=None):
    """Check that ONNX Runtime computes what the module computes."""
    with candelabra.no_grad():
        expected = [one for one in pytree.tree_leaves(model(*args)) if isinstance(one, candelabra.Tensor)]
    found = program(*args)
    assert len(found) == len(expected)
    for one, wanted in zip(found, expected, strict=True):
        assert one.dtype is wanted.dtype and one.shape == wanted.shape
        limits = {} if tolerance is None else {"rtol": tolerance, "atol": tolerance}
        candelabra.testing.assert_close(one, wanted.detach(), equal_nan=True, **limits)


def check(model, *args, tolerance=None, **options):
    """Export a module or a function, and check it with its arguments."""
    program = exported(model, args, **options)
    assert_same(program, model, args, tolerance)
    return program
