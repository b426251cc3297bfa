"""Random number generators of a training run: Python's, NumPy's, and one per device."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import candelabra
from candelabra import _C


def _devices() -> list[Any]:
    """Return all devices of the loaded backends, whose generators may have been used."""
    places = {str(_C.get_default_device()): _C.get_default_device()}
    for kind in _C.loaded_device_types():
        for number in range(_C.backend_info(kind)["device_count"]):
            place = _C.device(kind, number) if kind != "cpu" else _C.device("cpu")
            places.setdefault(str(place), place)
    return list(places.values())


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, NumPy (if it is imported) and all devices.

    Parameters
    ----------
    seed : int
        The seed, from 0 to 2**32 - 1, which is NumPy's range.

    Raises
    ------
    ValueError
        If the seed is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.trainer import seed_everything
    >>> seed_everything(3)
    >>> first = candelabra.rand(2)
    >>> seed_everything(3)
    >>> bool((candelabra.rand(2) == first).all())
    True
    """
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed_everything(): a seed is from 0 to 2**32 - 1, but got {seed}")
    random.seed(seed)
    candelabra.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def random_states() -> dict[str, Any]:
    """Return the states of the generators of Python, NumPy (if it is imported) and all devices.

    The result consists of data that `candelabra.save` accepts.

    Examples
    --------
    >>> import random
    >>> from candelabra.utils.trainer import random_states, set_random_states
    >>> states = random_states()
    >>> drawn = random.random()
    >>> set_random_states(states)
    >>> random.random() == drawn
    True
    """
    version, numbers, spare = random.getstate()
    states: dict[str, Any] = {"python": [version, candelabra.tensor(numbers, dtype=candelabra.int64), spare]}
    if "numpy" in sys.modules:
        name, words, place, has_spare, spare = sys.modules["numpy"].random.get_state()
        states["numpy"] = [
            name,
            candelabra.tensor(words.tolist(), dtype=candelabra.int64),
            int(place),
            int(has_spare),
            float(spare),
        ]
    states["devices"] = {str(device): _C.default_generator(device).get_state() for device in _devices()}
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Restore the generator states that :func:`random_states` returned.

    Parameters
    ----------
    states : dict
        The result of :func:`random_states`. Missing devices are skipped, so a run can resume on
        another machine.
    """
    version, numbers, spare = states["python"]
    random.setstate((version, tuple(numbers.tolist()), spare))
    if "numpy" in states:
        import numpy

        name, words, *rest = states["numpy"]
        numpy.random.set_state((name, numpy.asarray(words.tolist(), dtype=numpy.uint32), *rest))
    there = {str(device): device for device in _devices()}
    for name, state in states["devices"].items():
        if name in there:
            _C.default_generator(there[name]).set_state(state)


@contextmanager
def kept_generators() -> Iterator[None]:
    """Restore all generator states at the end of the block.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.trainer import kept_generators
    >>> with kept_generators():
    ...     drawn = candelabra.rand(1)
    >>> bool(candelabra.rand(1) == drawn)
    True
    """
    states = random_states()
    try:
        yield
    finally:
        set_random_states(states)
