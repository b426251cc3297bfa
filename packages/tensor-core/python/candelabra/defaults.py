"""Defaults of the process: dtype, device, number of threads, seeds."""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Generator, Tensor, device, dtype
    from candelabra.types import Device

__all__ = [
    "get_default_device", "get_default_dtype", "get_num_threads", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_default_device", "set_default_dtype", "set_num_threads", "set_rng_state",
]  # fmt: skip


def set_default_dtype(d: dtype) -> None:
    """Set the dtype of floating-point tensors created without a dtype.

    Parameters
    ----------
    d
        A floating-point dtype. It also determines the default complex dtype.

    Raises
    ------
    TypeError
        If `d` is not a floating-point dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_default_dtype(candelabra.float64)
    >>> candelabra.tensor([1.5])
    tensor([1.5000])
    >>> candelabra.set_default_dtype(candelabra.float32)
    """
    _C.set_default_dtype(d)


def get_default_dtype() -> dtype:
    """Return the dtype of floating-point tensors created without a dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_default_dtype()
    candelabra.float32
    """
    return _C.get_default_dtype()


def set_default_device(device: Device) -> None:
    """Set the device of tensors created without a device.

    Parameters
    ----------
    device
        None sets the CPU.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_default_device("cpu")
    """
    _C.set_default_device(device)


def get_default_device() -> device:
    """Return the device of tensors created without a device.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_default_device()
    device(type='cpu')
    """
    return _C.get_default_device()


def get_num_threads(device: Device = "cpu") -> int:
    """Return the number of threads of a backend.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_num_threads() >= 1
    True
    """
    return _C.get_num_threads(device)


def set_num_threads(number: int, device: Device = "cpu") -> None:
    """Set the number of threads of a backend. Results do not depend on it.

    Parameters
    ----------
    number
        At least 1.
    device
        Of the backend.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_num_threads(candelabra.get_num_threads())
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    _C.set_num_threads(device, number)


def manual_seed(seed: int) -> Generator:
    """Seed the generators of all devices. The same seed gives the same numbers on every device.

    Parameters
    ----------
    seed
        A 64-bit integer; negative numbers wrap around.

    Returns
    -------
    Generator
        The generator of the default device.

    Examples
    --------
    >>> import candelabra
    >>> _ = candelabra.manual_seed(1)
    >>> a = candelabra.rand(2)
    >>> _ = candelabra.manual_seed(1)
    >>> bool((candelabra.rand(2) == a).all())
    True
    """
    _C.manual_seed(seed)
    return _C.default_generator(_C.get_default_device())


def seed() -> int:
    """Seed the generators of all devices with a number from the system, and return it."""
    picked = _C.default_generator(_C.get_default_device()).seed()
    _C.manual_seed(picked)
    return picked


def initial_seed() -> int:
    """Return the seed of the default device's generator.

    Examples
    --------
    >>> import candelabra
    >>> _ = candelabra.manual_seed(7)
    >>> candelabra.initial_seed()
    7
    """
    return _C.default_generator(_C.get_default_device()).initial_seed()


def get_rng_state(device: Device = None) -> Tensor:
    """Return the state of a device's generator, by default that of the default device.

    Examples
    --------
    >>> import candelabra
    >>> state = candelabra.get_rng_state()
    >>> a = candelabra.rand(1)
    >>> candelabra.set_rng_state(state)
    >>> bool(candelabra.rand(1) == a)
    True
    """
    return _C.default_generator(_C.get_default_device() if device is None else device).get_state()


def set_rng_state(new_state: Tensor, device: Device = None) -> None:
    """Set the state of a device's generator to a result of :func:`candelabra.get_rng_state`."""
    _C.default_generator(_C.get_default_device() if device is None else device).set_state(new_state)
