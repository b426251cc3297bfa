"""The parameter of distributions with two outcomes."""

from __future__ import annotations

from candelabra import Tensor

from ..utils import lazy_property, logits_to_probs, probs_to_logits


class BinaryParameter:
    """The probability of 1 or its log odds: one is given, the other is computed on first use."""

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]  # type: ignore[no-any-return]

    @lazy_property
    def logits(self) -> Tensor:
        """Log odds of 1, or of success."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of 1, or of success."""
        return logits_to_probs(self.logits, is_binary=True)
