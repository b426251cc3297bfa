"""Optimizer steps and related operations."""

from __future__ import annotations

from typing import Any

from ..inputs import normal
from ..workload import Work, Workload


def _step(
    name: str,
    optimizer: str,
    count: int,
    *shape: int,
    states: int = 0,
    group: str = "",
    limit: float = 1.0,
    **options: Any,
) -> Workload:
    """Make a workload of a step over these parameters. `states` is the number of state tensors per
    parameter.
    """

    def make(xp: Any) -> Work:
        parameters = [xp.nn.Parameter(normal(*shape, number=number % 4).make(xp)) for number in range(count)]
        for number, parameter in enumerate(parameters):
            parameter.grad = normal(*shape, number=(number + 1) % 4).make(xp)
        made = getattr(xp.optim, optimizer)(parameters, **({"lr": 1e-4} | options))

        def run() -> Any:
            made.step()
            return parameters[0].detach()

        return run

    nbytes = 4 * count
    for size in shape:
        nbytes *= size
    return Workload(
        name,
        make,
        read=nbytes * (2 + states),
        written=nbytes * (1 + states),
        group=group,
        limit=limit,
        comparable=False,
    )


def _clipping(xp: Any) -> Work:
    parameters = [xp.nn.Parameter(normal(64, 64).make(xp)) for _ in range(100)]
    for parameter in parameters:
        parameter.grad = normal(64, 64, number=1).make(xp)
    return lambda: xp.nn.utils.clip_grad_norm_(parameters, 1e9)


WORKLOADS = [
    _step("SGD, 10 of 16", "SGD", 10, 16),
    _step("SGD, 100 of 64 x 64", "SGD", 100, 64, 64),
    _step("SGD with momentum, 100 of 64 x 64", "SGD", 100, 64, 64, states=1, momentum=0.9),
    _step("SGD with momentum, 1 of 4 M", "SGD", 1, 4_000_000, states=1, momentum=0.9),
    _step("Adam, 10 of 16", "Adam", 10, 16, states=2),
    _step("Adam, 100 of 64 x 64", "Adam", 100, 64, 64, states=2, limit=0.55),
    _step("Adam, 1 of 4 M", "Adam", 1, 4_000_000, states=2),
    _step("AdamW, 100 of 64 x 64", "AdamW", 100, 64, 64, states=2),
    _step("RMSprop, 100 of 64 x 64", "RMSprop", 100, 64, 64, states=1),
    _step("Adagrad, 100 of 64 x 64", "Adagrad", 100, 64, 64, states=1),
    _step("NAdam, 100 of 64 x 64", "NAdam", 100, 64, 64, states=2),
    _step("Adamax, 1 of 1 M", "Adamax", 1, 1_000_000, states=2),
    _step("RAdam, 100 of 64 x 64", "RAdam", 100, 64, 64, states=2),
    _step("Adadelta, 1 of 1 M", "Adadelta", 1, 1_000_000, states=2),
    _step("Rprop, 100 of 64 x 64", "Rprop", 100, 64, 64, states=2),
    _step("ASGD, 1 of 1 M", "ASGD", 1, 1_000_000, states=1),
    Workload("clip_grad_norm_, 100 of 64 x 64", _clipping, read=2 * 1_638_400, written=1_638_400, recording=False),
]
