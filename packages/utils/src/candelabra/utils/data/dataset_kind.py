"""The two kinds of datasets, and loaders that are not a `DataLoader`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import accelerator

from .fetching import make_fetcher


class DatasetKind:
    """Whether samples have indices (`Map`), or come one after the other (`Iterable`)."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> Any:
        """Return an object whose `fetch` returns a batch of a dataset."""
        return make_fetcher(dataset, auto_collation, collate_fn, drop_last, kind == DatasetKind.Iterable)


class ForeignLoader:
    """A loader of another class than `DataLoader`, which has PyTorch's attributes for iterators.

    It has what they lack, and keeps what iterators store in a loader.
    """

    in_order = True
    seed_each_batch = False
    prefetch_factor = 2
    persistent_workers = False
    _resumed: Any = None

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__") and name not in ("_loader", "_resumed", "_generators", "pins"):
            try:
                return getattr(object.__getattribute__(self, "_loader"), name)
            except AttributeError:
                pass
        return object.__getattribute__(self, name)

    def __len__(self) -> int:
        return len(self._loader)

    @property
    def pins(self) -> bool:
        """Whether batches are copied to page-locked memory."""
        return bool(self._loader.pin_memory) and accelerator.is_available()

    def _generators(self) -> list[Any]:
        generator = getattr(self._loader, "generator", None)
        return [] if generator is None else [generator]


def as_loader(loader: Any) -> Any:
    """Return a loader that has what iterators need."""
    return loader if hasattr(loader, "_generators") else ForeignLoader(loader)
