"""How far the batches of an epoch are, and how to come back there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .randomness import random_states, set_random_states


class Place:
    """Goes through a loader's batches and knows how to take them up again in the middle, in the
    same order.

    Iterating yields the batches of one epoch. Within it, :meth:`state_dict` is what another place
    needs to go on with the next batch.

    Parameters
    ----------
    loader : iterable
        A `DataLoader`, something else with ``state_dict()`` and ``load_state_dict()``, or whatever
        yields the batches of an epoch each time it is iterated over. A `DataLoader` whose samples
        have numbers does not read those again that were seen; other batches are drawn again, with
        all generators as they were, and dropped.

    Notes
    -----
    All generators (see :func:`random_states`) are noted where an epoch begins, so that an order
    drawn from any of them can be drawn again. Generators of one's own are out of sight, but for
    those of a `DataLoader` and its sampler.

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
        #: How many batches of this epoch were yielded.
        self.batches = 0
        #: Whether all of them were.
        self.exhausted = False
        self._at_start: dict[str, Any] | None = None
        self._resumed: dict[str, Any] | None = None
        # Held, for a loader's state is that of an iterator that is alive.
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
            now = random_states()
            set_random_states(state["random"])
            self._iterator = self._again(state)
            set_random_states(now)
        for batch in self._iterator:
            self.batches += 1
            yield batch
        self.exhausted = True

    def _again(self, state: dict[str, Any]) -> Iterator[Any]:
        """The batches from where the state was taken."""
        saved, count = state["loader"], state["batches"]
        if saved is not None and not (self._is_stream() and saved.get("in_epoch")):
            self.loader.load_state_dict(saved)
            return iter(self.loader)
        if saved is not None:
            # What a stream draws by chance is to be drawn before the generators are set to where
            # training was.
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
        """Return how far the epoch is: plain data and tensors that `candelabra.save` takes."""
        if self._resumed is not None:
            return dict(self._resumed)
        return {
            "batches": self.batches,
            "exhausted": self.exhausted,
            "random": self._at_start,
            "loader": self.loader.state_dict() if self._has_state() else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Have the next iteration go on where the state was taken.

        Raises
        ------
        ValueError
            Where the state is of another kind of loader.
        """
        missing = {"batches", "exhausted", "random", "loader"} - set(state)
        if missing:
            raise ValueError(f"load_state_dict: this is no state of a Place: {sorted(missing)} are missing")
        if state["loader"] is not None and not self._has_state():
            raise ValueError(
                f"load_state_dict: the state is of a loader that has a state, but {type(self.loader).__name__} has none"
            )
        self._resumed = dict(state)

    def next_epoch(self) -> None:
        """Forget the place: the next iteration begins an epoch."""
        self._resumed, self._at_start, self._iterator = None, None, None
        self.batches, self.exhausted = 0, False
