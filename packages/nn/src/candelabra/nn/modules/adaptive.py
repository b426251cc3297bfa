"""Provide an efficient softmax for many classes with unequal frequencies."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Compute the log-softmax over classes that are sorted by frequency.

    The head scores the frequent classes. Clusters of rare classes have smaller layers.

    Parameters
    ----------
    in_features, n_classes
        Size of the input, and number of classes.
    cutoffs
        First class of each cluster. The first cutoff is the number of classes in the head.
    div_value
        Cluster i has a projection with ``in_features / div_value^(i + 1)`` features.
    head_bias
        Whether the head has a bias.

    Notes
    -----
    Shapes: input (N, in_features) or (in_features), target (N) or (). The result is a named tuple:
    ``output``, the log-probabilities of the targets, and ``loss``, minus their mean. Source: Grave
    et al., Efficient softmax approximation for GPUs, 2017.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> layer(candelabra.randn(3, 8), candelabra.tensor([0, 7, 19])).output.shape
    candelabra.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        growing = all(a < b for a, b in itertools.pairwise(cutoffs))
        if not growing or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is between 1 and "
                "n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for number, (begin, end) in enumerate(itertools.pairwise(self.cutoffs)):
            width = int(in_features // (div_value ** (number + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **options), Linear(width, end - begin, bias=False, **options)
                )
            )

    def reset_parameters(self) -> None:
        """Reinitialize all weights."""
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        if target_.ndim > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if target_.ndim == 1 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.ndim != target_.ndim + 1:
            raise RuntimeError(
                f"{target_.ndim}D target tensor expects {target_.ndim + 1}D input tensors, but found inputs with size {input_.shape}"
            )
        batched = target_.ndim == 1
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{int(target.min())}, {int(target.max())}] were "
                "found. "
            )
        # The head has one score for each shortlist class and one for each cluster.
        in_head = target
        parts, places = [], []
        for number, (begin, end) in enumerate(itertools.pairwise(self.cutoffs)):
            inside = (target >= begin) & (target < end)
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            in_head = in_head.masked_fill(inside, self.shortlist_size + number)
            log_probs = self.tail[number](input.index_select(0, rows)).log_softmax(1)
            parts.append(log_probs.gather(1, (target.index_select(0, rows) - begin).unsqueeze(1)).squeeze(1))
            places.append(rows)
        output = self.head(input).log_softmax(1).gather(1, in_head.unsqueeze(1)).squeeze(1)
        if parts:
            output = output.index_add(0, candelabra.cat(places), candelabra.cat(parts))
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities (N, n_classes) of all classes.

        The input is (N, in_features).
        """
        return self._all_log_probs(input, self.head(input))

    def _all_log_probs(self, input: Tensor, scores: Tensor) -> Tensor:
        head = scores.log_softmax(1)
        parts = [head[:, : self.shortlist_size]]
        for number, projection in enumerate(self.tail):
            parts.append(projection(input).log_softmax(1) + head[:, self.shortlist_size + number].unsqueeze(1))
        return candelabra.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class (N) of each row of an input (N, in_features).

        The clusters are evaluated only for rows where the head selects one.
        """
        scores = self.head(input)
        best = scores.argmax(1)
        elsewhere = (best >= self.shortlist_size).nonzero().squeeze(1)
        if elsewhere.numel() == 0:
            return best
        full = self._all_log_probs(input.index_select(0, elsewhere), scores.index_select(0, elsewhere)).argmax(1)
        return best.index_copy(0, elsewhere, full)


__all__ = ["AdaptiveLogSoftmaxWithLoss"]
