"""The state of a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra

from ..sharded import Sharded
from .names import plain_name
from .options import StateDictOptions
from .tensors import received, set_in_place, taken


def get_model_state_dict(
    model: Any, *, submodules: Iterable[Any] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the state of a model under names without those of wrappers.

    Parameters
    ----------
    model : nn.Module
        The model, as it is or wrapped by `DistributedDataParallel` or `compile`.
    submodules : set of nn.Module, optional
        Return the state of these only.
    options : StateDictOptions, optional
        What kind of state.

    Examples
    --------
    >>> from candelabra import nn
    >>> from candelabra.distributed.checkpoint.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(nn.Linear(2, 3)))
    ['weight', 'bias']
    """
    options = options or StateDictOptions()
    with candelabra.no_grad():
        state = {plain_name(model, key): value for key, value in model.state_dict().items()}
        if submodules is not None:
            state = _of_submodules(model, state, submodules, options)
        if options.ignore_frozen_params:
            for name, parameter in model.named_parameters():
                if not parameter.requires_grad:
                    state.pop(plain_name(model, name), None)
        return taken(state, options)


def _of_submodules(
    model: Any, state: dict[str, Any], submodules: Iterable[Any], options: StateDictOptions
) -> dict[str, Any]:
    wanted = {id(module) for module in submodules}
    prefixes = [f"{plain_name(model, name)}." for name, module in model.named_modules() if id(module) in wanted]
    found = {}
    for name, value in state.items():
        for prefix in prefixes:
            if name.startswith(prefix):
                found[name if options.keep_submodule_prefixes else name[len(prefix) :]] = value
    return found


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Set the state of a model from one of `get_model_state_dict`.

    Parameters
    ----------
    model : nn.Module
        The model. If its parameters are sharded, whole tensors and sharded ones are taken.
    model_state_dict : dict
        The state; with ``broadcast_from_rank0``, that of rank 0 counts.
    options : StateDictOptions, optional
        What kind of state.

    Returns
    -------
    NamedTuple
        ``missing_keys`` and ``unexpected_keys``.

    Raises
    ------
    RuntimeError
        With ``strict``, names are missing or unknown; or a shape is another.

    Examples
    --------
    >>> from candelabra import nn
    >>> from candelabra.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    >>> set_model_state_dict(nn.Linear(2, 3), get_model_state_dict(nn.Linear(2, 3)))
    <All keys matched successfully>
    """
    options = options or StateDictOptions()
    with candelabra.no_grad():
        own = model.state_dict()
        names = {plain_name(model, key): key for key in own}
        filled = set()

        def consume(name: str, value: Any) -> Any:
            target = own.get(names.get(name, ""))
            if isinstance(target, Sharded):
                set_in_place(target, value, name)
                filled.add(name)
                return None
            return value

        if options.broadcast_from_rank0:
            # The values of a model's state are on one level, its extra states apart.
            state = received(model_state_dict, lambda path, value: consume(path[0], value) if len(path) == 1 else value)
        else:
            state = {name: consume(name, value) for name, value in model_state_dict.items()}
        rest = {names.get(name, name): value for name, value in state.items() if name not in filled}
        if not filled:
            return model.load_state_dict(rest, strict=options.strict)
        result = model.load_state_dict(rest, strict=False)
        missing = [key for key in result.missing_keys if plain_name(model, key) not in filled]
        result = type(result)(missing, result.unexpected_keys)
        if options.strict and (missing or result.unexpected_keys):
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(model).__name__}:\n\tMissing key(s) in state_dict: {missing}. "
                f"\n\tUnexpected key(s) in state_dict: {result.unexpected_keys}."
            )
        return result
