"""``torch.__future__``: how the conversion of a module changes its parameters."""

from __future__ import annotations

import candelabra.nn as _nn  # noqa: F401
from candelabra.nn.modules.base.conversion import Conversion

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion", "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]  # fmt: skip


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether ``Module.to`` and its relatives make new parameters instead of changing those
    that there are.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.settings import future_behavior
    >>> future_behavior.set_overwrite_module_params_on_conversion(True)
    >>> layer = candelabra.nn.Linear(1, 1)
    >>> weight = layer.weight
    >>> layer.double().weight is weight, weight.dtype
    (False, candelabra.float32)
    >>> future_behavior.set_overwrite_module_params_on_conversion(False)
    """
    Conversion._overwrites = bool(value)


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether conversions make new parameters."""
    return Conversion._overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Accept False, and raise NotImplementedError for True.

    Raises
    ------
    NotImplementedError
        For True: a conversion changes the data of a parameter, which keeps its identity already.
    """
    if value:
        raise NotImplementedError(
            "torch.__future__.set_swap_module_params_on_conversion(True): tensors are not swapped here; a conversion keeps the parameters and "
            "changes their data, and load_state_dict(assign=True) takes the tensors of the state dict"
        )


def get_swap_module_params_on_conversion() -> bool:
    """Return False, because tensors are not swapped."""
    return False
