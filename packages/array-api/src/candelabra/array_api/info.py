"""What the namespace can do, as the array API standard 2024.12 lets it be asked:
``__array_namespace_info__``.
"""

from __future__ import annotations

import candelabra
from candelabra.types import Device

from .data_types import KINDS, Dtype

#: As many as the core has room for (``max_dims`` in dims.hpp).
MAX_DIMENSIONS = 64

#: The data types of the standard, by name.
DTYPES: dict[str, Dtype] = {str(dtype).rpartition(".")[2]: dtype for dtype in (*KINDS["bool"], *KINDS["numeric"])}


class NamespaceInfo:
    """Capabilities, devices and data types.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    candelabra.int64
    """

    def capabilities(self) -> dict[str, bool | int | None]:
        """What of the optional parts of the standard is there, and how many dimensions an array may
        have.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_DIMENSIONS}

    def default_device(self) -> candelabra.device:
        """The device on which arrays are made, if none is given."""
        return candelabra.get_default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, Dtype]:
        """The data types that are taken for numbers of each kind, if none is given."""
        real = candelabra.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": candelabra.promote_types(real, candelabra.complex64),
            "integral": candelabra.int64,
            "indexing": candelabra.int64,
        }

    def devices(self) -> list[candelabra.device]:
        """All devices of the backends that are installed."""
        found = []
        for name in candelabra.backends.installed():
            if candelabra.backends.is_available(name):
                found += [candelabra.device(name, index) for index in range(candelabra.backends.device_count(name))]
        return [candelabra.device("cpu") if one.type == "cpu" else one for one in found]

    def dtypes(self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Dtype]:
        """The data types of a kind, or of several, or all, by name.

        Raises
        ------
        ValueError
            If a kind is not one of the standard's.
        """
        if kind is None:
            return dict(DTYPES)
        wanted: set[Dtype] = set()
        for one in (kind,) if isinstance(kind, str) else kind:
            if one not in KINDS:
                raise ValueError(f"dtypes(): unknown kind {one!r}; known are {', '.join(map(repr, KINDS))}")
            wanted |= {*KINDS[one]}
        return {name: dtype for name, dtype in DTYPES.items() if dtype in wanted}


def __array_namespace_info__() -> NamespaceInfo:
    """Ask the namespace for its capabilities, devices and data types.

    Examples
    --------
    >>> import candelabra.array_api as xp
    >>> sorted(xp.__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return NamespaceInfo()
