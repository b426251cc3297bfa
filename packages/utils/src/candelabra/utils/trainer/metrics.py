"""Metrics of model quality."""

from __future__ import annotations

from typing import Any


class Mean:
    """Running weighted mean, accumulated in double precision.

    Examples
    --------
    >>> from candelabra.utils.trainer import Mean
    >>> mean = Mean()
    >>> mean.add(1.0)
    >>> mean.add(4.0, weight=2)
    >>> mean.value
    3.0
    """

    def __init__(self) -> None:
        self.total = 0.0
        self.weight = 0.0

    def add(self, number: Any, weight: float = 1) -> None:
        """Add a number or a one-element tensor."""
        self.total += float(number) * weight
        self.weight += weight

    @property
    def value(self) -> float:
        """The mean of the added numbers; NaN if there are none."""
        return self.total / self.weight if self.weight else float("nan")

    def state_dict(self) -> dict[str, float]:
        """Return the sum and the weight."""
        return {"total": self.total, "weight": self.weight}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore the sum and the weight."""
        self.total, self.weight = state["total"], state["weight"]


def accuracy(output: Any, target: Any) -> float:
    """Return the fraction of correctly classified samples in a batch.

    Parameters
    ----------
    output : Tensor
        Class scores (N, C, ...); or the logits of a binary classifier, (N,) or (N, 1).
    target : Tensor
        Class indices (N, ...).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.trainer import accuracy
    >>> accuracy(candelabra.tensor([[0.1, 0.9], [0.8, 0.2]]), candelabra.tensor([1, 1]))
    0.5
    """
    if output.dim() == target.dim() + 1 and output.size(1) > 1:
        guessed = output.argmax(1)
    else:
        guessed = output.reshape(target.shape) > 0
        target = target > 0
    return float((guessed == target).double().mean().item()) if target.numel() else float("nan")


def size_of(batch: Any) -> int:
    """Return the first size of the first tensor in a batch, or 1 if there is no tensor."""
    found = _first_size(batch)
    return 1 if found is None else found


def _first_size(batch: Any) -> int | None:
    if hasattr(batch, "dim") and hasattr(batch, "shape"):
        return int(batch.shape[0]) if batch.dim() else None
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, list | tuple):
        for part in batch:
            found = _first_size(part)
            if found is not None:
                return found
    return None


class Metrics:
    """Metrics by name, averaged over samples.

    A metric is a function ``f(output, target)`` that returns the mean over a batch, or an object
    with ``update(output, target)``, ``compute()`` and ``reset()``.
    """

    def __init__(self, metrics: Any) -> None:
        if metrics is None:
            metrics = {}
        elif not isinstance(metrics, dict):
            metrics = {getattr(metric, "__name__", type(metric).__name__): metric for metric in metrics}
        for name, metric in metrics.items():
            if not callable(metric) and not hasattr(metric, "update"):
                raise TypeError(
                    f"metric {name!r} is a function of output and target, or has update(), compute() and reset(), but got {metric!r}"
                )
        self._metrics: dict[str, Any] = dict(metrics)
        self._means: dict[str, Mean] = {}
        self.reset()

    def reset(self) -> None:
        """Reset all metrics."""
        self._means = {name: Mean() for name, metric in self._metrics.items() if not hasattr(metric, "update")}
        for name, metric in self._metrics.items():
            if name not in self._means:
                metric.reset()

    def add(self, output: Any, target: Any) -> None:
        """Add a batch."""
        for name, metric in self._metrics.items():
            if name in self._means:
                self._means[name].add(metric(output, target), size_of(target))
            else:
                metric.update(output, target)

    def values(self) -> dict[str, float]:
        """Return the value of each metric."""
        return {
            name: self._means[name].value if name in self._means else float(metric.compute())
            for name, metric in self._metrics.items()
        }

    def __bool__(self) -> bool:
        return bool(self._metrics)
