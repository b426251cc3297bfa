"""Which backends there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import communication

from .engines import registry


class Backend(str):
    """The name of a backend, in lower case.

    Examples
    --------
    >>> from candelabra.distributed import Backend
    >>> Backend("NCCL") == Backend.NCCL
    True
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    FAKE = "fake"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name!r}")
        return super().__new__(cls, name.lower())

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[[], Any], extended_api: bool = False, devices: Any = None
    ) -> None:
        """Add an engine for this process.

        Parameters
        ----------
        name : str
            The backend's name.
        func : callable
            Returns the engine: see `candelabra.distributed.engines.interface.Engine`.
        extended_api, devices
            Have no effect: the engine tells its devices.
        """
        registry.add(name.lower(), func)


def is_available() -> bool:
    """Return True: the package is installed.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.is_available()
    True
    """
    return True


def is_backend_available(backend: str) -> bool:
    """Return whether there is an engine for a backend's name.

    Examples
    --------
    >>> import candelabra.distributed as dist
    >>> dist.is_backend_available("fake"), dist.is_backend_available("ucc")
    (True, False)
    """
    name = backend.lower()
    return is_nccl_available() if name == "nccl" else registry.is_known(name)


def is_mpi_available() -> bool:
    """Return whether candelabra-collectives-mpi is installed."""
    return registry.is_known("mpi")


def is_gloo_available() -> bool:
    """Return whether the engine is installed that stands for gloo: MPI."""
    return registry.is_known("gloo")


def is_nccl_available() -> bool:
    """Return whether there is a CUDA device with NCCL."""
    return communication.is_available("cuda")


def is_ucc_available() -> bool:
    """Return False: there is no engine on UCC."""
    return registry.is_known("ucc")


def is_xccl_available() -> bool:
    """Return False: there is no engine on XCCL."""
    return registry.is_known("xccl")
