"""Position within the batches of an epoch, and resuming from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .randomness import random_states, set_random_states
from .shared_data import resume_share, share_state, sharing_sampler


class Place:
    """Iterates over a loader's batches, and can resume within an epoch in the same order.

    Iteration yields the batches of one epoch. :meth:`state_dict` within the epoch returns the state
    from which another instance resumes with the next batch.

    Parameters
    ----------
    loader : iterable
        A `DataLoader`, another object with ``state_dict()`` and ``load_state_dict()``, or any
        iterable that yields the batches of an epoch. A `DataLoader` over a map-style dataset does
        not load the consumed samples again. Otherwise the consumed batches are drawn again with the
        original generator states and dropped.

    Notes
    -----
    The states of all generators (see :func:`random_states`) are saved at the start of an epoch, so
    that its order can be reproduced. Custom generators are not covered, except those of a
    `DataLoader` and its sampler.

    If the loader has a `DistributedSampler`, the state can be loaded on another number of ranks, or
    with another batch size: they divide what is left of the epoch.

    Examples
    --------
    >>> from candelabra.utils.trainer import Place
    >>> place = Place(["a", "b", "c"])
    >>> batches = iter(place)
    >>> next(batches)
    'a'
    >>> later = Place(["a", "b", "c"])
    >>> later.load_state_dict(place.state_dict())
    >>> list(later)
    ['b', 'c']
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        #: Number of batches of this epoch that were yielded.
        self.batches = 0
        #: Whether all batches of this epoch were yielded.
        self.exhausted = False
        self._at_start: dict[str, Any] | None = None
        self._resumed: dict[str, Any] | None = None
        # Keeps the iterator alive, because the state of a loader is that of a live iterator.
        self._iterator: Any = None

    def __iter__(self) -> Iterator[Any]:
        state, self._resumed = self._resumed, None
        if state is None or state["random"] is None:
            if state is not None and state["loader"] is not None:
                self.loader.load_state_dict(state["loader"])
            self.batches, self.exhausted = 0, False
            self._at_start = random_states()
            self._iterator = iter(self.loader)
        else:
            self.batches, self.exhausted, self._at_start = state["batches"], state["exhausted"], state["random"]
            if self.exhausted:
                if state["loader"] is not None:
                    self.loader.load_state_dict(state["loader"])
                return
            if resume_share(self.loader, state["share"]):
                sampler = sharing_sampler(self.loader)
                self.exhausted = sampler.start == len(sampler.dataset)
                if self.exhausted:
                    return
                self.batches, self._at_start = 0, random_states()
                self._iterator = iter(self.loader)
                yield from self._batches()
                return
            now = random_states()
            set_random_states(state["random"])
            self._iterator = self._again(state)
            set_random_states(now)
        yield from self._batches()

    def _batches(self) -> Iterator[Any]:
        for batch in self._iterator:
            self.batches += 1
            yield batch
        self.exhausted = True

    def _again(self, state: dict[str, Any]) -> Iterator[Any]:
        """Return the batches that follow the given state."""
        saved, count = state["loader"], state["batches"]
        if saved is not None and not (self._is_stream() and saved.get("in_epoch")):
            self.loader.load_state_dict(saved)
            return iter(self.loader)
        if saved is not None:
            # Restart the loader first: a stream must draw its random numbers before the generators
            # are set to the state of training.
            self.loader.load_state_dict({**saved, "in_epoch": False, "batches": 0})
        batches = iter(self.loader)
        for number in range(count):
            try:
                next(batches)
            except StopIteration:
                raise RuntimeError(
                    f"the state is of {count} batches into an epoch, but this loader has {number}: it is not the loader the state was taken of"
                ) from None
        return batches

    def _is_stream(self) -> bool:
        from ..data import IterableDataset

        return isinstance(getattr(self.loader, "dataset", None), IterableDataset)

    def _has_state(self) -> bool:
        return hasattr(self.loader, "state_dict") and hasattr(self.loader, "load_state_dict")

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the epoch, as data that `candelabra.save` accepts."""
        if self._resumed is not None:
            return dict(self._resumed)
        return {
            "batches": self.batches,
            "exhausted": self.exhausted,
            "random": self._at_start,
            "loader": self.loader.state_dict() if self._has_state() else None,
            "share": share_state(self.loader, self.batches),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Make the next iteration resume from a state.

        Raises
        ------
        ValueError
            If the state is not that of a `Place`, or its loader had a state and this one cannot.
        """
        missing = {"batches", "exhausted", "random", "loader", "share"} - set(state)
        if missing:
            raise ValueError(f"load_state_dict: this is no state of a Place: {sorted(missing)} are missing")
        if state["loader"] is not None and not self._has_state():
            raise ValueError(
                f"load_state_dict: the state is of a loader that has a state, but {type(self.loader).__name__} has none"
            )
        self._resumed = dict(state)

    @staticmethod
    def is_within_epoch(state: dict[str, Any] | None) -> bool:
        """Return whether a state is that of an epoch that has begun."""
        return state is not None and bool(
            state["batches"] or state["exhausted"] or (state["share"] is not None and state["share"]["start"])
        )

    def next_epoch(self) -> None:
        """Reset the position, so that the next iteration starts a new epoch."""
        self._resumed, self._at_start, self._iterator = None, None, None
        self.batches, self.exhausted = 0, False
        sampler = sharing_sampler(self.loader)
        if sampler is not None:
            sampler.set_start(0)
