"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_MISSING: Any = object()


def _swap(owner: Any, name: str, value: Any) -> Any:
    """Replace a tensor of the module itself and return the previous one.

    `_MISSING` stands for an attribute that is not there.
    """
    if value is not _MISSING and value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of candelabra.Tensor")
    for table in (owner._parameters, owner._buffers):
        if name in table:
            before = table[name]
            if value is _MISSING:
                del table[name]
            else:
                table[name] = value
            return before
    before = getattr(owner, name, _MISSING)
    if before is not _MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of candelabra.Tensor")
    if value is not _MISSING:
        setattr(owner, name, value)
    elif before is not _MISSING:
        delattr(owner, name)
    return before


@contextlib.contextmanager
def _swapped(module: Any, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Replace tensors of a module within the block.

    The dictionary in the context receives the tensors that the module has at the end of the block.
    """
    replaced: list[tuple[Any, str, Any, str]] = []
    after: dict[str, Any] = {}
    try:
        for full_name, value in values.items():
            path, _, name = full_name.rpartition(".")
            owner = module.get_submodule(path)
            replaced.append((owner, name, _swap(owner, name, value), full_name))
        yield after
    finally:
        for owner, name, before, full_name in reversed(replaced):
            after[full_name] = _swap(owner, name, before)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with replacement parameters and buffers.

    Parameters
    ----------
    module
        The module to call.
    parameter_and_buffer_dicts
        Tensors by the name of a parameter, a buffer or another tensor attribute, or a sequence of
        such dictionaries. Tensors that the call assigns to these names are written back to a
        single dictionary.
    args
        The positional arguments: a tuple, or a single argument.
    kwargs
        The keyword arguments.
    tie_weights
        Whether tensors that are tied in the module stay tied in the call.
    strict
        Whether to require exactly the names of all parameters and buffers.

    Returns
    -------
    object
        The return value of the module.

    Raises
    ------
    ValueError
        If a name is given twice, or if tied tensors get different values.
    RuntimeError
        If `strict` is set and names are missing or unknown.

    Examples
    --------
    >>> import candelabra
    >>> layer = candelabra.nn.Linear(2, 1)
    >>> values = {"weight": candelabra.ones(1, 2), "bias": candelabra.zeros(1)}
    >>> candelabra.func.functional_call(layer, values, candelabra.tensor([1.0, 2.0]))
    tensor([3.])
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        values = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (tuple, list)):
        if not all(isinstance(entry, dict) for entry in parameter_and_buffer_dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for entry in parameter_and_buffer_dicts for name in entry]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        values = {name: value for entry in parameter_and_buffer_dicts for name, value in entry.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    own = {}
    if tie_weights or strict:  # without them, modules may contain each other
        own = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    tied = _tied(own, values) if tie_weights else values
    if strict:
        _check_names(module, own, tied)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    after: dict[str, Any] = {}
    try:
        with _swapped(module, tied) as after:
            return module(*positional, **(kwargs or {}))
    finally:
        values.update({name: after[name] for name in values if name in after})


def _check_names(module: Any, own: dict[str, Any], values: dict[str, Any]) -> None:
    unknown = [name for name in values if name not in own]
    missing = sorted(name for name in own if name not in values)
    if missing or unknown:
        problems = [f"Unexpected key(s): {', '.join(map(repr, unknown))}."] if unknown else []
        problems += [f"Missing key(s): {', '.join(map(repr, missing))}."] if missing else []
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems))


def _tied(own: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with that for one name of a tied tensor under all its other names."""
    result = dict(values)
    groups: dict[int, list[str]] = {}
    for name, tensor in own.items():
        if tensor is not None:
            groups.setdefault(id(tensor), []).append(name)
    for names in groups.values():
        given = [name for name in names if name in values]
        if not given:
            continue
        if any(values[name] is not values[given[0]] for name in given):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(given)}, which are tied. Consider using tie_weights=False"
            )
        result.update(dict.fromkeys(names, values[given[0]]))
    return result


def stack_module_state(models: Sequence[Any] | Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and buffers of several similar modules, for use with :func:`vmap`.

    Returns
    -------
    tuple
        The parameters and the buffers by name, each with a new first dimension for the modules.

    Raises
    ------
    RuntimeError
        If `models` is empty, or if the modules differ in class or mode.

    Examples
    --------
    >>> import candelabra
    >>> layers = [candelabra.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = candelabra.func.stack_module_state(layers)
    >>> parameters["weight"].shape
    candelabra.Size([3, 1, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(model.training for model in models) or not any(model.training for model in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(named: Callable[[Any], Any]) -> dict[str, Tensor]:
        tables = [dict(named(model)) for model in models]
        return {name: _stacked_leaf(name, [table[name] for table in tables]) for name in tables[0]}

    return stacked(lambda model: model.named_parameters()), stacked(lambda model: model.named_buffers())


def _stacked_leaf(name: str, tensors: list[Tensor]) -> Tensor:
    required = {tensor.requires_grad for tensor in tensors}
    if len(required) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    made = candelabra.stack(tensors).detach()
    return made.requires_grad_() if required == {True} else made


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Turn off running statistics of all batch normalization layers in a module.

    vmap cannot update running statistics separately for each entry of a batch.

    Parameters
    ----------
    root
        The module, which is modified in place.

    Returns
    -------
    Module
        The same module.

    Examples
    --------
    >>> import candelabra
    >>> net = candelabra.nn.Sequential(candelabra.nn.BatchNorm1d(3))
    >>> candelabra.func.replace_all_batch_norm_modules_(net)[0].running_mean is None
    True
    """
    for module in root.modules():
        if hasattr(module, "track_running_stats") and "BatchNorm" in type(module).__name__:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
