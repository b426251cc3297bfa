"""Call a module with other parameters and buffers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from candelabra import _C, Tensor

from ..modules.module import Module
from ..parallel.data_parallel import DataParallel
from .named_members import NamedMemberAccessor


def _with_tied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Add the given tensors under all paths of the tensors that they replace."""
    paths: dict[int, list[str]] = {}
    for name, tensor in NamedMemberAccessor(module).named_tensors(remove_duplicate=False):
        paths.setdefault(id(tensor), []).append(name)
    result = dict(given)
    for tied in paths.values():
        values = {id(given[name]): given[name] for name in tied if name in given}
        if len(tied) == 1 or not values:
            continue
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using tie_weights=False"
            )
        (value,) = values.values()
        result.update(dict.fromkeys(tied, value))
    return result


@contextlib.contextmanager
def _reparametrize_module(
    module: Module, parameters_and_buffers: dict[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Replace tensors of the module while the context is active.

    If the module reassigns a replaced tensor, the new one is stored in the dict.
    """
    tensors = _with_tied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    accessor = NamedMemberAccessor(module)
    if strict:
        missing, unexpected = accessor.check_keys(tensors)
        problems = [
            f"{what} key(s): {', '.join(map(repr, keys))}."
            for what, keys in (("Unexpected", unexpected), ("Missing", missing))
            if keys
        ]
        if problems:
            raise RuntimeError(
                "Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(problems))
            )
    before, _ = accessor.swap_tensors_dict(tensors, allow_missing=True)
    try:
        yield
    finally:
        # Restore in reverse order, because a path may have been replaced twice.
        after, _ = accessor.swap_tensors_dict(dict(reversed(before.items())), allow_missing=True)
        parameters_and_buffers.update({name: after[name] for name in parameters_and_buffers if name in after})


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers.

    Deprecated as in PyTorch: use `candelabra.func.functional_call`.

    Parameters
    ----------
    parameters_and_buffers
        Tensors by path. Unnamed paths keep the module's own tensors.
    args, kwargs
        Arguments of the call. An `args` that is not a tuple is passed as the only argument.
    tie_weights
        Whether to replace a tensor under all its paths if the module has it under several.
    strict
        Whether exactly the paths of the module must be given.

    Examples
    --------
    >>> import candelabra, warnings
    >>> from candelabra import nn
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     nn.utils.stateless.functional_call(layer, {"weight": candelabra.ones(1, 2)}, candelabra.ones(2))
    tensor([2.])
    """
    _C.warn(
        "This API is deprecated and will be removed. Please use `torch.func.functional_call` instead, or `candelabra.func.functional_call`: "
        "they are drop-in replacements.",
        FutureWarning,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    if isinstance(module, DataParallel):
        raise RuntimeError("The stateless API can't be used with nn.DataParallel module")
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*args, **(kwargs or {}))


__all__ = ["functional_call"]
