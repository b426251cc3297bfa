"""``torch.utils.data._utils.fetch``: the classes that load the samples of a batch."""

from __future__ import annotations

from candelabra.utils import data as _data  # noqa: F401  (a package is imported before its modules)
from candelabra.utils.data.fetching import IterableFetcher as _IterableDatasetFetcher
from candelabra.utils.data.fetching import MapFetcher as _MapDatasetFetcher

__all__ = ["_IterableDatasetFetcher", "_MapDatasetFetcher"]
