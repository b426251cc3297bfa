"""References of the losses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

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
        return losses, None  # the total weight is unused without a reduction
    return np.asarray(losses.sum() / total if reduction == 1 else losses.sum()), np.asarray(total)


def backward(
    grad: Array, a: Array, target: Array, weight: Array | None, reduction: int, ignore: int, total: Array
) -> Array:
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


# ---- cross entropy of scores and classes


_REDUCTIONS = ("none", "mean", "sum")


def _row_statistics(a: Array) -> Array:
    largest = a.max(1)
    return np.stack((largest, np.log(np.exp(a - largest[:, None]).sum(1))))


def cross_entropy(
    a: Array, target: Array, weight: Array | None, *, ignore_index: int, reduction: str
) -> tuple[Array, Array | None, Array]:
    statistics = _row_statistics(a)
    logarithms = (a - statistics[0][:, None]) - statistics[1][:, None]
    return *forward(logarithms, target, weight, _REDUCTIONS.index(reduction), ignore_index), statistics


def cross_entropy_backward(
    grad: Array,
    a: Array,
    target: Array,
    weight: Array | None,
    ignore: int,
    reduction: str,
    total: Array,
    statistics: Array,
) -> Array:
    powers = np.exp(a - statistics[0][:, None] - statistics[1][:, None])
    share = _weights(target, weight, a.shape[1], ignore) * grad / (total if reduction == "mean" else 1)
    return share[:, None] * (powers - (np.arange(a.shape[1]) == target[:, None]))


def _entropy_calls(rng: np.random.Generator, dtype: str) -> Iterator[tuple[Input, Input, Input | None, int, str]]:
    for rows, classes in ((6, 4), (3, 40)):
        target = rng.integers(0, classes, rows)
        target[0] = 1
        for weight in (None, Input(rng.uniform(0.5, 2, classes), dtype)):
            for reduction in _REDUCTIONS:
                for ignore in (-100, 1):
                    yield (
                        Input(numbers(rng, dtype, (rows, classes)), dtype),
                        Input(target, "int64"),
                        weight,
                        ignore,
                        reduction,
                    )


def _entropies(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a, target, weight, ignore, reduction in _entropy_calls(rng, dtype):
        yield Sample((a, target, weight), {"ignore_index": ignore, "reduction": reduction})


def _entropy_backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for a, target, weight, ignore, reduction in _entropy_calls(rng, dtype):
        weights = None if weight is None else weight.values
        total = _weights(target.values, weights, a.values.shape[1], ignore).sum()
        grad = Input(numbers(rng, dtype, target.values.shape if reduction == "none" else ()), dtype)
        kept = (Input(np.asarray(total), dtype), Input(_row_statistics(np.asarray(a.values, "float64")), dtype))
        yield Sample((grad, a, target, weight, ignore, reduction, *kept))


# ---- CTC by definition: the sum over all paths of symbols that collapse to the labels


def _said(path: tuple[int, ...], blank: int) -> list[int]:
    return [symbol for t, symbol in enumerate(path) if symbol != blank and (t == 0 or path[t - 1] != symbol)]


def _paths(scores: Array, labels: list[int], blank: int) -> tuple[float, Array]:
    """Return the probability of all paths that collapse to `labels`, and the part of it that passes
    each symbol at each time.
    """
    total, through = 0.0, np.zeros(scores.shape)
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        if _said(path, blank) == labels:
            probability = np.exp(sum(scores[t, symbol] for t, symbol in enumerate(path)))
            total += probability
            for t, symbol in enumerate(path):
                through[t, symbol] += probability
    return total, through


def _labels(targets: Array, lengths: list[int]) -> list[list[int]]:
    if targets.ndim == 2:
        return [[int(label) for label in row[:length]] for row, length in zip(targets, lengths, strict=True)]
    ends = np.cumsum(lengths)
    return [[int(label) for label in targets[end - length : end]] for end, length in zip(ends, lengths, strict=True)]


def ctc(
    scores: Array, targets: Array, input_lengths: list[int], target_lengths: list[int], blank: int, zero_infinity: bool
) -> tuple[Array, None]:
    losses = [
        _paths(scores[:length, n], labels, blank)[0]
        for n, (length, labels) in enumerate(zip(input_lengths, _labels(targets, target_lengths), strict=True))
    ]
    with np.errstate(divide="ignore"):
        return -np.log(np.array(losses)), None


def ctc_backward(
    grad: Array,
    scores: Array,
    targets: Array,
    input_lengths: list[int],
    target_lengths: list[int],
    loss: Array,
    log_alpha: Array,
    blank: int,
    zero_infinity: bool,
) -> Array:
    result = np.zeros(scores.shape)
    for n, (length, labels) in enumerate(zip(input_lengths, _labels(targets, target_lengths), strict=True)):
        total, through = _paths(scores[:length, n], labels, blank)
        if total > 0 or not zero_infinity:
            result[:length, n] = grad[n] * (np.exp(scores[:length, n]) - through / total)
    return result


def _ctc_calls(rng: np.random.Generator, dtype: str) -> Iterator[tuple[Any, ...]]:
    raw = numbers(rng, dtype, (5, 3, 3), -1, 1)
    scores = Input(raw - np.log(np.exp(raw).sum(-1, keepdims=True)), dtype)
    for blank in (0, 2):
        others = [symbol for symbol in range(3) if symbol != blank]
        matrix = Input(np.array([[others[0], others[0], others[1]], [others[1]] * 3, [others[0]] * 3]), "int64")
        yield scores, matrix, [5, 4, 3], [3, 1, 0], blank, False
        yield scores, Input(np.array([others[1], others[0], others[0]]), "int64"), [5, 5, 2], [1, 1, 1], blank, False
        # Two equal labels need a blank between them: there is no path in two steps.
        yield scores, matrix, [5, 4, 2], [3, 1, 2], blank, True


def _ctc_forwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for call in _ctc_calls(rng, dtype):
        yield Sample(call)


def _ctc_backwards(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for scores, targets, input_lengths, target_lengths, blank, zero_infinity in _ctc_calls(rng, dtype):
        grad = Input(numbers(rng, dtype, (3,)), dtype)
        losses = ctc(scores.values, targets.values, input_lengths, target_lengths, blank, zero_infinity)[0]
        alphas = _alphas(scores.values, _labels(targets.values, target_lengths), input_lengths, blank)
        lengths = (input_lengths, target_lengths)
        yield Sample(
            (grad, scores, targets, *lengths, Input(losses, dtype), Input(alphas, dtype), blank, zero_infinity)
        )


def _alphas(scores: Array, labels: list[list[int]], input_lengths: list[int], blank: int) -> Array:
    """Return the log probabilities of all paths to each state at each time: Graves et al. 2006,
    equations 6 and 7.
    """
    result = np.zeros((scores.shape[1], scores.shape[0], 2 * max(map(len, labels)) + 1))
    for n, said in enumerate(labels):
        states = [blank] + [symbol for label in said for symbol in (label, blank)]
        for t in range(input_lengths[n]):
            for s, symbol in enumerate(states):
                ways = float(s < 2) if t == 0 else result[n, t - 1, max(s - 1, 0) : s + 1].sum()
                if t > 0 and s > 1 and symbol not in (blank, states[s - 2]):
                    ways += result[n, t - 1, s - 2]
                result[n, t, s] = ways * np.exp(scores[t, n, symbol])
    with np.errstate(divide="ignore"):
        return np.log(result)


REFERENCES: dict[str, Reference] = {
    "nll_loss_forward": Reference(forward, _forwards, _DTYPES, 10),
    "nll_loss_backward": Reference(backward, _backwards, _DTYPES, 10),
    "cross_entropy_forward": Reference(cross_entropy, _entropies, _DTYPES, 20),
    "cross_entropy_backward": Reference(cross_entropy_backward, _entropy_backwards, _DTYPES, 20),
    "_ctc_loss": Reference(ctc, _ctc_forwards, _DTYPES, 10),
    "_ctc_loss_backward": Reference(ctc_backward, _ctc_backwards, _DTYPES, 20),
}


# ---- elementwise losses


def _huber(a: Array, t: Array, delta: float, scale: float) -> Array:
    size = np.abs(a - t)
    return scale * np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))


def _entropy(p: Array, t: Array) -> Array:
    with np.errstate(divide="ignore"):
        return -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100))


def _logistic(a: Array) -> Array:
    return 1 / (1 + np.exp(-a))


def _errors(low: float, high: float, gradients: int, *numbers_: float) -> Any:
    """Yield calls with and without a gradient, inputs between `low` and `high`, targets between 0
    and 1, also broadcast, and numbers.
    """

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for shape, other in (((3, 5), (3, 5)), ((40, 31), (31,)), ((4, 1), (1, 6)), ((), ())):
            whole = np.broadcast_shapes(shape, other)
            grads = [Input(numbers(rng, dtype, whole), dtype)] * gradients
            a, t = Input(numbers(rng, dtype, shape, low, high), dtype), Input(numbers(rng, dtype, other, 0, 1), dtype)
            yield Sample((*grads, a, t, *numbers_))

    return samples


REFERENCES |= {
    "squared_error": Reference(lambda a, t: (a - t) ** 2, _errors(-4, 4, 0), _DTYPES, 5),
    "squared_error_backward": Reference(lambda g, a, t: 2 * g * (a - t), _errors(-4, 4, 1), _DTYPES, 5),
    "huber_error": Reference(_huber, _errors(-4, 4, 0, 1.5, 0.5), _DTYPES, 10),
    "huber_error_backward": Reference(
        lambda g, a, t, delta, scale: g * scale * np.clip(a - t, -delta, delta),
        _errors(-4, 4, 1, 1.5, 0.5),
        _DTYPES,
        10,
    ),
    "logits_cross_entropy": Reference(lambda a, t: _entropy(_logistic(a), t), _errors(-4, 4, 0), _DTYPES, 20),
    "logits_cross_entropy_backward": Reference(lambda g, a, t: g * (_logistic(a) - t), _errors(-4, 4, 1), _DTYPES, 20),
    "probability_cross_entropy": Reference(_entropy, _errors(0, 1, 0), _DTYPES, 20),
    "probability_cross_entropy_backward": Reference(
        lambda g, p, t: g * (p - t) / np.maximum((1 - p) * p, 1e-12), _errors(0.1, 0.9, 1), _DTYPES, 20
    ),
}
