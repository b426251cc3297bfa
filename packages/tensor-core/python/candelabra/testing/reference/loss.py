"""References of the losses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from candelabra.testing.sampling import Input, Reference, Sample, numbers

Array = np.ndarray
_DTYPES = ("float32", "float64")


def _calls(rng: np.random.Generator, dtype: str) -> Iterator[tuple[Input, Input, Input | None, int, int]]:
    for shape in ((6, 4), (2, 4, 3), (2, 4, 3, 2)):
        target = rng.integers(0, 4, (shape[0], *shape[2:]))
        target.flat[0] = 1
        for weight in (None, Input(rng.uniform(0.5, 2, 4), dtype)):
            for reduction in (0, 1, 2):
                for ignore in (-100, 1):
                    yield Input(numbers(rng, dtype, shape), dtype), Input(target, "int64"), weight, reduction, ignore


def _weights(target: Array, weight: Array | None, classes: int, ignore: int) -> Array:
    every = np.ones(classes) if weight is None else weight
    return np.where(target == ignore, 0, every[np.where(target == ignore, 0, target)])


def forward(a: Array, target: Array, weight: Array | None, reduction: int, ignore: int) -> tuple[Array, Array | None]:
    weights = _weights(target, weight, a.shape[1], ignore)
    chosen = np.take_along_axis(a, np.expand_dims(np.where(target == ignore, 0, target), 1), 1).squeeze(1)
    losses, total = -chosen * weights, weights.sum()
    if reduction == 0:
        return losses, None  # the total is not used without a reduction
    return np.asarray(losses.sum() / total if reduction == 1 else losses.sum()), np.asarray(total)


def backward(grad: Array, a: Array, target: Array, weight: Array | None, reduction: int, ignore: int, total: Array) -> Array:
    share = -_weights(target, weight, a.shape[1], ignore) * grad / (total if reduction == 1 else 1)
    result = np.zeros(a.shape)
    np.put_along_axis(result, np.expand_dims(np.where(target == ignore, 0, target), 1), np.expand_dims(share, 1), 1)
    return result


def _forwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for call in _calls(rng, dtype):
        yield Sample(call)


def _backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a, target, weight, reduction, ignore in _calls(rng, dtype):
        total = _weights(target.values, None if weight is None else weight.values, 4, ignore).sum()
        grad = numbers(rng, dtype, target.values.shape if reduction == 0 else ())
        yield Sample((Input(grad, dtype), a, target, weight, reduction, ignore, Input(np.asarray(total), dtype)))


REFERENCES: dict[str, Reference] = {
    "nll_loss_forward": Reference(forward, _forwards, _DTYPES, 10),
    "nll_loss_backward": Reference(backward, _backwards, _DTYPES, 10),
}
