"""Gradients by finite differences, through Torch 7's methods alone."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor
from candelabra.legacy.nn.tape import map_tensors, tensors_of

STEP = 1e-5


def inner(left: Any, right: Any) -> float:
    return sum(float((a * b).sum()) for a, b in zip(tensors_of(left), tensors_of(right), strict=True))


def direction_of(value: Any) -> Any:
    """Return a random direction in which a value can move: tensors of whole numbers stay."""
    return map_tensors(
        lambda tensor: candelabra.randn_like(tensor) if tensor.is_floating_point() else candelabra.zeros_like(tensor),
        value,
    )


def moved(value: Any, direction: Any, step: float) -> Any:
    steps = iter(tensors_of(direction))
    return map_tensors(
        lambda tensor: tensor + step * along if (along := next(steps)).is_floating_point() else tensor, value
    )


def check_module(module: Any, value: Any, moves: Any = None) -> None:
    """Compare `backward`, `updateGradInput` and `accGradParameters` with finite differences."""
    module.double()
    output = module.forward(value)
    seed = direction_of(output)
    module.zeroGradParameters()
    gradient = map_tensors(lambda tensor: tensor.clone(), module.backward(value, seed))
    assert [t.shape for t in tensors_of(gradient)] == [t.shape for t in tensors_of(value)]
    direction = direction_of(value) if moves is None else moves
    expected = inner(gradient, direction)
    values = [inner(module.forward(moved(value, direction, step)), seed) for step in (STEP, -STEP)]
    found = (values[0] - values[1]) / (2 * STEP)
    assert abs(found - expected) < 1e-5 * max(1, abs(found)), (found, expected)
    parameters, gradients = module.parameters() or ([], [])
    for parameter, own in zip(parameters, gradients):
        check_parameter(module, value, seed, parameter, own)
    check_halves(module, value, seed, gradient, [own.clone() for own in gradients])


def check_parameter(module: Any, value: Any, seed: Any, parameter: Tensor, gradient: Tensor) -> None:
    direction, start = candelabra.randn_like(parameter), parameter.clone()
    values = []
    for step in (STEP, -STEP):
        parameter.copy_(start + step * direction)
        values.append(inner(module.forward(value), seed))
    parameter.copy_(start)
    found = (values[0] - values[1]) / (2 * STEP)
    expected = inner(gradient, direction)
    assert abs(found - expected) < 1e-5 * max(1, abs(found)), (found, expected)


def check_halves(module: Any, value: Any, seed: Any, gradient: Any, gradients: list[Tensor]) -> None:
    """Check that both halves of `backward` do what it does, and that gradients add up, scaled."""
    module.forward(value)
    halves = module.updateGradInput(value, seed)
    for own, expected in zip(tensors_of(halves), tensors_of(gradient), strict=True):
        candelabra.testing.assert_close(own, expected)
    module.accGradParameters(value, seed, 0.5)
    for own, expected in zip((module.parameters() or ([], []))[1], gradients):
        candelabra.testing.assert_close(own, expected * 1.5)
