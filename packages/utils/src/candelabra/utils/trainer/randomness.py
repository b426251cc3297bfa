"""The generators that a training run draws from: Python's, NumPy's and Candelabra's of each
device.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import candelabra
from candelabra import _C


def _devices() -> list[Any]:
    """All devices whose generators may have been drawn from: those of the backends that are
    loaded.
    """
    places = {str(_C.get_default_device()): _C.get_default_device()}
    for kind in _C.loaded_device_types():
        for number in range(_C.backend_info(kind)["device_count"]):
            place = _C.device(kind, number) if kind != "cpu" else _C.device("cpu")
            places.setdefault(str(place), place)
    return list(places.values())


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, NumPy (where it is imported) and all devices.

    Parameters
    ----------
    seed : int
        From 0 to 2**32 - 1, which is what NumPy takes.

    Raises
    ------
    ValueError
        If it is another number.

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
    """Return the states of the generators of Python, NumPy (where it is imported) and all devices,
    as data that `candelabra.save` takes.

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
    """Give all generators the states that :func:`random_states` returned.

    Parameters
    ----------
    states : dict
        What :func:`random_states` returned. Devices that are not there are left out: a run may go
        on on another machine.
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
    """Give all generators the states back that they had, at the end of the block.

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
