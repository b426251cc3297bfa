"""The states of a model and its optimizers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .model_state import get_model_state_dict, set_model_state_dict
from .optimizer_state import get_optimizer_state_dict, set_optimizer_state_dict
from .options import StateDictOptions


def get_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Iterable[Any] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and of its optimizers; see `get_model_state_dict` and
    `get_optimizer_state_dict`.

    Examples
    --------
    >>> from candelabra import nn, optim
    >>> from candelabra.distributed.checkpoint.state_dict import get_state_dict
    >>> model = nn.Linear(2, 3)
    >>> of_model, of_optimizer = get_state_dict(model, optim.SGD(model.parameters(), lr=0.1))
    >>> of_optimizer["param_groups"][0]["params"]
    ['weight', 'bias']
    """
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Set the states of a model and of its optimizers; see `set_model_state_dict` and
    `set_optimizer_state_dict`.

    Returns
    -------
    NamedTuple
        ``missing_keys`` and ``unexpected_keys`` of the model.
    """
    result = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return result
