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
    """Set whether ``Module.to`` and its relatives, and `load_state_dict`, swap parameters with new
    ones (:func:`candelabra.utils.swap_tensors`) instead of changing their data.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.torch.stand_ins.settings import future_behavior
    >>> future_behavior.set_swap_module_params_on_conversion(True)
    >>> layer = candelabra.nn.Linear(1, 1)
    >>> weight, number = layer.weight, layer.weight._cdata
    >>> layer.double().weight is weight, weight._cdata == number
    (True, False)
    >>> future_behavior.set_swap_module_params_on_conversion(False)
    """
    Conversion._swaps = bool(value)


def get_swap_module_params_on_conversion() -> bool:
    """Return whether conversions swap parameters with new ones."""
    return Conversion._swaps
