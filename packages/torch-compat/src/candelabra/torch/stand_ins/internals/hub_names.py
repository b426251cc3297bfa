"""``torch.hub`` and ``torch.utils.model_zoo``: private names, and what they import."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

import candelabra.hub as _hub  # noqa: F401
from candelabra.hub.folders import torch_home as _get_torch_home

try:
    from tqdm import tqdm
except ImportError:  # PyTorch's own stands in for it too

    class tqdm:  # type: ignore[no-redef]
        """Counts, and shows nothing: tqdm is not installed."""

        def __init__(self, iterable: Any = None, total: int | None = None, **options: Any) -> None:
            self.iterable, self.total, self.n = iterable, total, 0

        def __iter__(self) -> Any:
            for entry in self.iterable:
                yield entry
                self.n += 1

        def update(self, n: int = 1) -> None:
            """Count further."""
            self.n += n

        def set_description(self, *arguments: Any, **options: Any) -> None:
            """Do nothing, as nothing is shown."""

        def close(self) -> None:
            """Do nothing, as nothing is shown."""

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            self.close()


__all__ = ["_get_torch_home", "tqdm", "urlparse"]
