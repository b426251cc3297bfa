"""The states of optimizers under the names of the parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import candelabra
from candelabra import Tensor

from ..sharded import Sharded
from .names import parameter_names
from .options import StateDictOptions
from .tensors import mapped, received, set_in_place, taken


def _optimizers(given: Any) -> list[Any]:
    return [given] if hasattr(given, "param_groups") else list(given)


def _initialize(optimizer: Any) -> None:
    """Make the state of an optimizer that has not stepped, by a step without gradients."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if optimizer.state or any(parameter.grad is not None for parameter in parameters):
        return
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = candelabra.zeros_like(parameter)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = candelabra.zeros_like(rate) if isinstance(rate, Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def get_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    *,
    submodules: Iterable[Any] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Return the joined states of optimizers, under the names of the model's parameters.

    Parameters
    ----------
    model : nn.Module
        The model whose parameters they optimize.
    optimizers : Optimizer or iterable of them
        One that has not stepped gets a state of zeros, so that a checkpoint can be loaded into it.
    submodules
        Must be None.
    options : StateDictOptions, optional
        What kind of state.

    Examples
    --------
    >>> from candelabra import nn, optim
    >>> from candelabra.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = nn.Linear(2, 3)
    >>> state = get_optimizer_state_dict(model, optim.Adam(model.parameters()))
    >>> sorted(state["state"]), sorted(state["state"]["bias"])
    (['bias', 'weight'], ['exp_avg', 'exp_avg_sq', 'step'])
    """
    if submodules is not None:
        raise ValueError("get_optimizer_state_dict(): submodules is not supported; select from the state by its names")
    options = options or StateDictOptions()
    names = parameter_names(model)
    joined: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        _initialize(optimizer)
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        by_number = {number: _name(names, parameter) for number, parameter in enumerate(parameters)}
        state = optimizer.state_dict()
        joined["state"].update({by_number[number]: value for number, value in state["state"].items()})
        for group in state["param_groups"]:
            joined["param_groups"].append({**group, "params": [by_number[number] for number in group["params"]]})
    if options.flatten_optimizer_state_dict:
        joined = _flat(joined)
    return taken(joined, options)


def _name(names: dict[int, list[str]], parameter: Any) -> str:
    if id(parameter) not in names:
        raise RuntimeError("an optimizer has a parameter that is not one of the model's")
    return names[id(parameter)][0]


def _flat(joined: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def visit(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                visit(f"{prefix}.{key}", item)
        elif isinstance(value, (Tensor, Sharded, int, float)):
            found[prefix] = value
        else:
            raise NotImplementedError(
                "Flattening optimizer state_dict only supports tensor, int, float, dict states now. "
                f"Type is {type(value)}."
            )

    for name, state in joined["state"].items():
        visit(f"state.{name}", state)
    for group in joined["param_groups"]:
        for name in group["params"]:
            found.update({f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"})
    return found


def _unflattened(optimizer: Any, state: dict[str, Any], names: dict[int, list[str]]) -> dict[str, Any]:
    """Return the nested state of one optimizer out of a flat one."""
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        keys = [key for key in group if key != "params"]
        described: dict[str, Any] = {"params": []}
        for parameter in group["params"]:
            known = names.get(id(parameter), [])
            name = next((name for name in known if any(f"param_groups.{name}.{key}" in state for key in keys)), None)
            if name is None:
                raise RuntimeError(f"the state has no parameter group for {known[:1] or 'a parameter'}")
            described["params"].append(name)
            prefix = f"state.{name}."
            for key, value in state.items():
                if key.startswith(prefix):
                    found["state"].setdefault(name, {})
                    place = found["state"][name]
                    *outer, last = key[len(prefix) :].split(".")
                    for part in outer:
                        place = place.setdefault(part, {})
                    place[last] = value
            for key in keys:
                value = state.get(f"param_groups.{name}.{key}", group[key])
                if described.setdefault(key, value) != value:
                    raise RuntimeError(
                        "All the parameters in the same parameter group should have the same saved param_group value. "
                        f"But {name}.{key} is {value} while other(s) is {described[key]}."
                    )
        found["param_groups"].append(described)
    return found


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Set the states of optimizers from one of `get_optimizer_state_dict`.

    Parameters
    ----------
    model : nn.Module
        The model whose parameters they optimize.
    optimizers : Optimizer or iterable of them
        Each takes what concerns its parameters.
    optim_state_dict : dict
        The joined state, nested or flat. If the optimizers' states are sharded, whole tensors and
        sharded ones are taken.
    options : StateDictOptions, optional
        What kind of state.

    Raises
    ------
    RuntimeError
        With ``strict``, the state of a parameter is missing.

    Examples
    --------
    >>> from candelabra import nn, optim
    >>> from candelabra.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
    >>> model = nn.Linear(2, 3)
    >>> state = get_optimizer_state_dict(model, optim.Adam(model.parameters(), lr=0.5))
    >>> other = optim.Adam(model.parameters())
    >>> set_optimizer_state_dict(model, other, state)
    >>> other.param_groups[0]["lr"]
    0.5
    """
    options = options or StateDictOptions()
    names = parameter_names(model)
    every = _optimizers(optimizers)
    for optimizer in every:
        _initialize(optimizer)
    own = {
        name: optimizer.state.get(parameter, {})
        for optimizer in every
        for group in optimizer.param_groups
        for parameter in group["params"]
        for name in names.get(id(parameter), [])
    }

    def consume(path: tuple[Any, ...], value: Any) -> Any:
        target = _target(own, path)
        if isinstance(target, Sharded) and isinstance(value, (Tensor, Sharded)):
            with candelabra.no_grad():
                set_in_place(target, value, ".".join(map(str, path)))
            return target
        return value

    state = received(optim_state_dict, consume) if options.broadcast_from_rank0 else mapped(optim_state_dict, consume)
    for optimizer in every:
        part = _split(optimizer, state, names, options) if "state" in state else _unflattened(optimizer, state, names)
        optimizer.load_state_dict(part)


def _target(own: dict[str, Any], path: tuple[Any, ...]) -> Any:
    """Return what an optimizer has now under a path of a joined state."""
    if path[0] == "state" and len(path) > 2:
        found = own.get(path[1], {})
        for key in path[2:]:
            found = found.get(key) if isinstance(found, dict) else None
        return found
    if len(path) == 1 and str(path[0]).startswith("state."):
        name, _, key = path[0].removeprefix("state.").rpartition(".")
        return own.get(name, {}).get(key)
    return None


def _split(
    optimizer: Any, state: dict[str, Any], names: dict[int, list[str]], options: StateDictOptions
) -> dict[str, Any]:
    """Return what a joined state has for one optimizer, in the order of its parameters."""
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    saved = {name: group for group in state["param_groups"] for name in group["params"]}
    for group in optimizer.param_groups:
        described: dict[str, Any] = {key: value for key, value in group.items() if key != "params"}
        params = []
        for parameter in group["params"]:
            known = names.get(id(parameter), [])
            name = next((name for name in known if name in saved), None)
            if name is None:
                if options.strict:
                    raise RuntimeError(
                        f"Missing key: the state has no parameter group for {known[:1] or 'a parameter'}"
                    )
                params.append(known[0] if known else id(parameter))
                continue
            params.append(name)
            described.update({key: value for key, value in saved[name].items() if key != "params"})
            if name in state["state"]:
                found["state"][name] = state["state"][name]
            elif parameter.requires_grad and state["state"] and options.strict:
                raise RuntimeError(
                    f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires gradients but "
                    "has no saved optimizer state. To load anyway, use StateDictOptions(strict=False)."
                )
        found["param_groups"].append({**described, "params": params})
    return found
