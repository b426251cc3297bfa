"""`ExponentialFamily`, for distributions with density ``exp(<t(x), eta> - F(eta) + k(x))``."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from .distribution import Distribution


class ExponentialFamily(Distribution):
    """Base class of exponential families.

    A subclass defines `_natural_params` (eta), `_log_normalizer` (F) and `_mean_carrier_measure`
    (the mean of k). Entropies and divergences follow from these, because the gradient of F is the
    mean of t. Source: Nielsen and Nock, "Entropies and cross-entropies of exponential families",
    2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} defines no _natural_params")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no _log_normalizer()")

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} defines no _mean_carrier_measure")

    def entropy(self) -> Tensor:
        """Return the entropy ``F(eta) - <eta, grad F(eta)> - mean of k``."""
        natural, normalizer, means = self._normalizer_and_means()
        result = normalizer - self._mean_carrier_measure
        for parameter, mean in zip(natural, means, strict=True):
            result = result - (parameter * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return result

    def _normalizer_and_means(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """Return the natural parameters, the log normalizer, and the means of the statistics.

        The means are the gradient of the log normalizer.
        """
        from candelabra import autograd

        natural = [parameter.detach().requires_grad_() for parameter in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        means: Any = autograd.grad(normalizer.sum(), natural, create_graph=True)
        return natural, normalizer, tuple(means)


__all__ = ["ExponentialFamily"]
