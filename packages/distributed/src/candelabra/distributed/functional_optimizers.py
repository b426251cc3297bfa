"""Optimizers that get gradients as arguments, for steps of single parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from candelabra import Tensor, optim
from candelabra.optim import Optimizer

__all__ = ["as_functional_optim", "functional_optim_map", "register_functional_optim"]


class _FunctionalOptimizer:
    """Steps parameters by gradients that are given; each has a state of its own.

    Parameters
    ----------
    params : iterable of Tensor
        What `step` steps.
    *args, **kwargs
        For the optimizer.
    """

    optimizer_class: type[Optimizer]

    def __init__(
        self, params: Iterable[Tensor], *args: Any, _allow_empty_param_list: bool = False, **kwargs: Any
    ) -> None:
        self.param_group = {"params": list(params)}
        if not self.param_group["params"] and not _allow_empty_param_list:
            raise ValueError("optimizer got an empty parameter list")
        self._args, self._kwargs = args, kwargs
        self._optimizers: dict[Tensor, Optimizer] = {}

    @property
    def state(self) -> dict[Tensor, Any]:
        """The state of each parameter that was stepped."""
        return {parameter: optimizer.state[parameter] for parameter, optimizer in self._optimizers.items()}

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Step one parameter; without a gradient it stays."""
        if grad is None:
            return
        optimizer = self._optimizers.get(param)
        if optimizer is None:
            optimizer = self._optimizers[param] = self.optimizer_class([param], *self._args, **self._kwargs)
        before, param.grad = param.grad, grad
        optimizer.step()
        param.grad = before

    def step(self, gradients: Sequence[Tensor | None]) -> None:
        """Step all parameters but those without a gradient.

        Raises
        ------
        ValueError
            There are more parameters, or fewer.
        """
        params = self.param_group["params"]
        if len(params) != len(gradients):
            raise ValueError(
                "the gradients passed in does not equal to the size of the parameters!"
                f"Params length: {len(params)}. Gradients length: {len(gradients)}"
            )
        for param, grad in zip(params, gradients, strict=True):
            self.step_param(param, grad)


#: The functional form of each optimizer that has one.
functional_optim_map: dict[Any, Any] = {
    each: type(f"_Functional{each.__name__}", (_FunctionalOptimizer,), {"optimizer_class": each})
    for each in (
        optim.Adagrad, optim.Adam, optim.AdamW, optim.SGD, optim.Adadelta, optim.RMSprop, optim.Rprop, optim.Adamax,
    )
}  # fmt: skip


def register_functional_optim(key: Any, optim: Any) -> None:
    """Add a functional optimizer, unless there is one under the key.

    Parameters
    ----------
    key
        What `as_functional_optim` is called with, such as an optimizer.
    optim : type
        Has ``step_param(param, grad)``; called with ``[]``, the arguments of `as_functional_optim`
        and ``_allow_empty_param_list=True``.
    """
    functional_optim_map.setdefault(key, optim)


def as_functional_optim(optim_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the functional form of an optimizer.

    Parameters
    ----------
    optim_cls : type
        The optimizer.
    *args, **kwargs
        Its arguments after the parameters.

    Raises
    ------
    ValueError
        It has none.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributed.optim import as_functional_optim
    >>> weight = candelabra.ones(2)
    >>> as_functional_optim(candelabra.optim.SGD, lr=0.5).step_param(weight, candelabra.ones(2))
    >>> weight
    tensor([0.5000, 0.5000])
    """
    if optim_cls not in functional_optim_map:
        raise ValueError(f"Optimizer {optim_cls} does not have a functional counterpart!")
    return functional_optim_map[optim_cls]([], *args, **kwargs, _allow_empty_param_list=True)
