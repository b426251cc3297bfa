"""Connectionist temporal classification (Graves et al. 2006), in log probabilities, one sequence at
a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_numpy.kernels import KERNELS, array, memory

Array = Any


def _sequences(
    scores: Array, targets: Array, times: Array, lengths: Array, blank: int
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Yield for each sequence its number, the scores of states at each time, the states (labels
    with blanks around them), and which states may be reached by a skip.
    """
    ends = np.cumsum(lengths)
    for i, (time, length) in enumerate(zip(times, lengths, strict=True)):
        labels = targets[i, :length] if targets.ndim == 2 else targets[ends[i] - length : ends[i]]
        wrong = (labels < 0) | (labels >= scores.shape[2]) | (labels == blank)
        if wrong.any():
            raise RuntimeError(
                f"ctc_loss: target {labels[wrong][0]} is not a label: blank is {blank}, labels are below {scores.shape[2]}"
            )
        states = np.full(2 * length + 1, blank)
        states[1::2] = labels
        skips = np.zeros(len(states), bool)  # the blank between two different labels may be skipped
        skips[3::2] = states[3::2] != states[1:-2:2]
        yield i, scores[:time, i][:, states], states, skips


def _ways(scores: Array, skips: Array) -> Array:
    """Return for each time and state the log probability of all paths to it (equations 6 and 7)."""
    time, count = scores.shape
    ways = np.full((time, count), -np.inf, scores.dtype)
    if time:
        ways[0, :2] = scores[0, :2]
    for t in range(1, time):
        arriving = ways[t - 1].copy()
        arriving[1:] = np.logaddexp(arriving[1:], ways[t - 1, :-1])
        arriving[2:] = np.where(skips[2:], np.logaddexp(arriving[2:], ways[t - 1, :-2]), arriving[2:])
        ways[t] = arriving + scores[t]
    return ways


def _forward(
    outputs: Any, log_probs: Any, targets: Any, times: Any, lengths: Any, blank: int, zero_infinity: bool
) -> None:
    losses, alphas = map(memory, outputs)
    alphas[...] = -np.inf
    with np.errstate(all="ignore"):
        for i, scores, states, skips in _sequences(array(log_probs), array(targets), times, lengths, blank):
            ways = _ways(scores, skips)
            alphas[i, : len(ways), : len(states)] = ways
            if len(ways):
                losses[i] = -np.logaddexp.reduce(ways[-1, -2:])
            else:  # without time steps: only an empty target has a path
                losses[i] = 0 if len(states) == 1 else np.inf


def _backward(
    out: Any, grad: Any, log_probs: Any, targets: Any, times: Any, lengths: Any, losses: Any, alphas: Any, blank: int,
    zero_infinity: bool,
) -> None:  # fmt: skip
    result, all_scores, grads, known, ways_to = memory(out), array(log_probs), array(grad), array(losses), array(alphas)
    result[...] = 0
    with np.errstate(all="ignore"):
        for i, scores, states, skips in _sequences(all_scores, array(targets), times, lengths, blank):
            if zero_infinity and np.isinf(known[i]):
                continue
            # paths from a state to the end are paths to it, reversed
            skips_back = (
                np.concatenate([skips[2:], [False, False]])[::-1] if len(states) > 2 else np.zeros(len(states), bool)
            )
            ways_from = _ways(scores[::-1, ::-1], skips_back)[::-1, ::-1]
            through = np.exp(ways_to[i, : len(scores), : len(states)] + ways_from - scores + known[i])
            part = np.exp(all_scores[: len(scores), i])
            np.subtract.at(part, (slice(None), states), through)
            result[: len(scores), i] = grads[i] * part


KERNELS["_ctc_loss"] = _forward
KERNELS["_ctc_loss_backward"] = _backward
