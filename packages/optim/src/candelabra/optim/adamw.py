"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from .adam import Adam


class AdamW(Adam):
    """Adam with decoupled weight decay ``p = p * (1 - lr * weight_decay)``.

    The options are those of `Adam`. `weight_decay` defaults to 0.01. Source: Loshchilov and Hutter,
    2017.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import optim
    >>> weight = candelabra.tensor([1.0])
    >>> weight.grad = candelabra.tensor([0.0])
    >>> optim.AdamW([weight], lr=0.1, weight_decay=0.5).step()
    >>> weight
    tensor([0.9500])
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:  # older pickles do not have this option
            group["decoupled_weight_decay"] = True


__all__ = ["AdamW"]
