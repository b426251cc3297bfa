"""The tiers of kernels that a backend may reach, in the order in which an author writes them.

- ``required``: with these kernels every primitive that has a decomposition runs, and with the CPU
  fallback every operator.
- ``fast``: operators whose decomposition costs the most in training.
- ``complete``: the primitives without a decomposition. With them, no operator needs the CPU
  fallback.

The tier of an operator is a fact of its catalogue row; ``complete`` follows from the
decompositions.
"""

from __future__ import annotations

from typing import NamedTuple

from candelabra import _C
from candelabra.catalogue import FACTS, OPERATORS
from candelabra.catalogue.declaration import COMPOSITE, CORE, VIEW

__all__ = ["TIERS", "Tiers", "operators_of", "primitives", "tier_of"]

#: From the first that a backend reaches to the last.
TIERS = ("required", "fast", "complete")


class Tiers(NamedTuple):
    """What a device type has reached."""

    reached: str | None  #: the last tier of `TIERS` that it has with all before it; None without the first
    missing: dict[str, list[str]]  #: for each tier the operators without a kernel, in catalogue order


def primitives() -> list[str]:
    """Return the operators that are neither composites nor run by the core."""
    return [name for name, operator in OPERATORS.items() if not operator.tags & (COMPOSITE | CORE | VIEW)]


def is_decomposed(name: str) -> bool:
    """Return whether an operator runs without a kernel of its own, given those of the tier
    ``required``.
    """
    import candelabra.decompositions  # noqa: F401 (registers the decompositions)

    operator = OPERATORS[name]
    return bool(operator.tags & COMPOSITE) or operator.decomposition is not None


def operators_of(tier: str) -> list[str]:
    """Return the operators of a tier, in catalogue order.

    Parameters
    ----------
    tier : str
        One of `TIERS`.

    Raises
    ------
    ValueError
        There is no such tier.

    Examples
    --------
    >>> from candelabra.backends import tiers
    >>> tiers.operators_of("required")[:3]
    ['fill_', 'arange', 'copy_']
    """
    if tier not in TIERS:
        raise ValueError(f"there is no tier '{tier}': the tiers are {', '.join(TIERS)}")
    if tier == "complete":
        return [name for name in primitives() if FACTS[name].tier != "required" and not is_decomposed(name)]
    return [name for name, facts in FACTS.items() if facts.tier == tier]


def tier_of(device_type: str) -> Tiers:
    """Return which tier a device type has reached, and what is missing for the next ones.

    Parameters
    ----------
    device_type : str
        For instance ``"cpu"``. Its backend is loaded.

    Returns
    -------
    Tiers
        ``reached``, a name of `TIERS` or None, and ``missing``, the operators without a kernel by
        tier.

    Examples
    --------
    >>> from candelabra.backends import tiers
    >>> tiers.tier_of("cpu").reached
    'complete'
    """
    from . import load

    load(device_type)
    kernels = set(_C.backend_info(device_type)["kernels"])
    missing = {tier: [name for name in operators_of(tier) if name not in kernels] for tier in TIERS}
    reached = None
    for tier in TIERS:
        if missing[tier]:
            break
        reached = tier
    return Tiers(reached, missing)
