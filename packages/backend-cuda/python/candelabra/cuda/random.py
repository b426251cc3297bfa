"""Random numbers of CUDA's devices."""

from __future__ import annotations

from candelabra import _C

from .devices import TYPE, device_count, is_available, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from candelabra._C import Tensor
    from candelabra.types import Device

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_rng_state",
    "set_rng_state_all",
]  # fmt: skip


def manual_seed(seed: int) -> None:
    """Start the random numbers of the current GPU from a seed; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.manual_seed(0)
    """
    if is_available():
        _C.default_generator(resolve()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Start the random numbers of all GPUs from a seed; nothing where there is none.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.cuda.manual_seed_all(0)
    """
    for index in range(device_count()):
        _C.default_generator(resolve(index)).manual_seed(int(seed))


def seed() -> None:
    """Start the random numbers of the current GPU from a seed that the system picks."""
    if is_available():
        _C.default_generator(resolve()).seed()


def seed_all() -> None:
    """Start the random numbers of all GPUs from one seed that the system picks."""
    if is_available():
        manual_seed_all(_C.default_generator(resolve(0)).seed())


def initial_seed() -> int:
    """Return the seed that the random numbers of the current GPU began with."""
    return _C.default_generator(resolve()).initial_seed()


def get_rng_state(device: Device | int = TYPE) -> Tensor:
    """Return the state of the random numbers of a GPU, as a uint8 tensor."""
    return _C.default_generator(resolve(device)).get_state()


def get_rng_state_all() -> list[Tensor]:
    """Return the states of the random numbers of all GPUs."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state: Tensor, device: Device | int = TYPE) -> None:
    """Go on with the random numbers of a GPU from a state."""
    _C.default_generator(resolve(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Go on with the random numbers of all GPUs from their states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
