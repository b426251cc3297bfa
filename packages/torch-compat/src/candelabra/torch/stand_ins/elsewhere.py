"""Where Candelabra has what PyTorch has in other modules. All names are without the prefixes
``torch.`` and ``candelabra.``.
"""

from __future__ import annotations

#: Candelabra's modules by PyTorch's, where the two have other names.
COUNTERPARTS = {
    "utils._pytree": "pytree",
}

#: By PyTorch module: the names it has besides those of its counterpart, by Candelabra's module.
NAMES_ELSEWHERE: dict[str, dict[str, str]] = {}
