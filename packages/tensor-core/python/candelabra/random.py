"""Seeds and states of the generators of all devices; PyTorch's module ``torch.random``."""

from __future__ import annotations

from contextlib import contextmanager

from candelabra import _C

from .defaults import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator as Iterates
    from collections.abc import Iterable
    from typing import Any

    from candelabra._C import Generator, device

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterates[None]:
    """Context manager that restores the states of generators at its end.

    Parameters
    ----------
    devices : iterable of int, str or device, optional
        Whose generators; besides these, that of the default device. By default those of all devices
        of the device types in use, or of `device_type` where it is given.
    enabled : bool
        If False, do nothing.
    device_type : str, optional
        The device type that integers in `devices` refer to.

    Raises
    ------
    BackendError
        If there is no such device.

    Examples
    --------
    >>> import candelabra
    >>> with candelabra.random.fork_rng():
    ...     inside = candelabra.rand(2)
    >>> bool((candelabra.rand(2) == inside).all())
    True
    """
    if not enabled:
        yield
        return
    generators = [_C.default_generator(place) for place in _forked(devices, device_type)]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states):
            generator.set_state(state)


def _forked(devices: Iterable[Any] | None, device_type: str | None) -> list[device]:
    own = _C.get_default_device()
    if devices is None:
        types = _C.loaded_device_types() if device_type is None else [device_type]
        places = [_C.device(name, i) for name in types for i in range(_C.backend_info(name)["device_count"])]
    else:
        of_numbers = "cuda" if device_type is None else device_type
        places = [_C.device(of_numbers, place) if isinstance(place, int) else _C.device(place) for place in devices]
    return [own, *(place for place in places if place != own)]


def __getattr__(name: str) -> Generator:
    if name == "default_generator":
        return _C.default_generator(_C.get_default_device())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
