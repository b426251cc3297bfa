"""The gradient of CTC loss in differentiable operators, for double backward.

The recursions follow Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal
Classification", 2006. They process all samples at once, one time step after another. The fused
kernel computes the same values when the gradient is not recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor, cat, stack, where

if TYPE_CHECKING:
    from collections.abc import Sequence

# Log-probability of impossible states; finite, so that no derivative becomes NaN.
_NEVER = -1e30


def _symbols(targets: Tensor, lengths: Sequence[int], blank: int) -> Tensor:
    """Return the labels of each sample, interleaved with blanks and padded: (N, 2 longest + 1)."""
    longest = max(lengths, default=0)
    device = targets.device
    symbols = candelabra.full((len(lengths), 2 * longest + 1), blank, dtype=candelabra.int64, device=device)
    if longest == 0:
        return symbols
    counts = candelabra.tensor(list(lengths), device=device).unsqueeze(1)
    places = candelabra.arange(longest, device=device)
    if targets.ndim == 2:
        labels = targets[:, :longest]
    else:
        labels = targets.take((counts.cumsum(0) - counts + places).clamp(max=targets.numel() - 1))
    symbols[:, 1::2] = where(places < counts, labels.to(candelabra.int64), blank)
    return symbols


def _shifted(values: Tensor, steps: int) -> Tensor:
    """Shift the states by `steps`, filling with impossible states."""
    outside = candelabra.full_like(values[:, : abs(steps)], _NEVER)
    return cat([outside, values[:, :-steps]], 1) if steps > 0 else cat([values[:, -steps:], outside], 1)


def ctc_gradient(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """Return the gradient of the losses (N) with respect to `log_probs` (T, N, C).

    The result is differentiable in `grad` and `log_probs`.
    """
    times, samples, classes = log_probs.shape
    device = log_probs.device
    symbols = _symbols(targets, target_lengths, blank)
    states = symbols.shape[1]
    place = candelabra.arange(states, device=device)
    count = 2 * candelabra.tensor(list(target_lengths), dtype=candelabra.int64, device=device).unsqueeze(1) + 1
    length = candelabra.tensor(list(input_lengths), dtype=candelabra.int64, device=device).unsqueeze(1)
    real = place < count
    before = cat([symbols[:, :1].expand(samples, min(2, states)), symbols[:, :-2]], 1) if states > 2 else symbols
    skips = real & (place % 2 == 1) & (place > 1) & (symbols != before)
    last = real & (place >= count - 2)
    every = symbols.expand(times, samples, states)
    scores = where(real, log_probs.gather(2, every), _NEVER)

    def joined(here: Tensor, next_to: Tensor, over: Tensor) -> Tensor:
        return stack([here, next_to, over]).logsumexp(0)

    forward = [where(place < 2, scores[0], _NEVER)]
    for t in range(1, times):
        alpha = forward[-1]
        over = where(skips, _shifted(alpha, 2), _NEVER) if states > 2 else candelabra.full_like(alpha, _NEVER)
        forward.append(scores[t] + joined(alpha, _shifted(alpha, 1), over))
    onward = cat([skips[:, 2:], candelabra.zeros_like(skips[:, :2])], 1)
    backward: list[Tensor] = []
    beta = candelabra.full_like(scores[0], _NEVER)
    for t in range(times - 1, -1, -1):
        over = where(onward, _shifted(beta, -2), _NEVER) if states > 2 else candelabra.full_like(beta, _NEVER)
        going_on = scores[t] + joined(beta, _shifted(beta, -1), over)
        beta = where(length == t + 1, where(last, scores[t], _NEVER), going_on)
        backward.append(beta)
    alphas, betas = stack(forward), stack(backward[::-1])
    ends = alphas.gather(0, (length - 1).clamp(min=0).expand(samples, states).unsqueeze(0)).squeeze(0)
    losses = -where(last, ends, _NEVER).logsumexp(1, True)
    impossible = losses > -_NEVER / 2
    inside = candelabra.arange(times, device=device).view(times, 1, 1) < length
    seen = inside & ~impossible
    # Mask inside exp, so that excluded entries have derivative 0 instead of 0 * inf.
    share = where(seen & real, alphas + betas - scores + losses, _NEVER).exp()
    expected = candelabra.zeros(times, samples, classes, dtype=log_probs.dtype, device=device).scatter_add(
        2, every, share
    )
    result = where(seen, log_probs, _NEVER).exp() - expected
    if not zero_infinity:
        result = where(inside & impossible, float("nan"), result)
    return result * grad.reshape(samples, 1)
