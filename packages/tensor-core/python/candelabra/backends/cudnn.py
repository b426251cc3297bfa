"""Switches of convolutions and recurrent nets on NVIDIA GPUs, under PyTorch's names:
``candelabra.backends.cudnn``.

Attributes
----------
enabled : bool
    Whether NVIDIA's library cuDNN is used where it can be; True at the start.
benchmark : bool
    Whether algorithms are chosen by timing them, once a shape; False at the start.
benchmark_limit : int
    How many algorithms are timed at most; 10 at the start, 0 for all.
deterministic : bool
    Whether only algorithms are taken that give the same bits at every run; False at the start. All
    kernels of the backend itself do.
allow_tf32 : bool
    Whether convolutions and recurrent layers of float32 are computed in TF32; True at the start, as
    in PyTorch.
conv : object
    The same in words: ``conv.fp32_precision`` is ``"tf32"`` or ``"ieee"``.

Examples
--------
>>> import candelabra
>>> candelabra.backends.cudnn.benchmark = True
>>> with candelabra.backends.cudnn.flags(benchmark=False):
...     candelabra.backends.cudnn.benchmark
False
>>> candelabra.backends.cudnn.benchmark
True
>>> candelabra.backends.cudnn.benchmark = False
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType

from .cuda import ask, set_switch, switch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

_SWITCHES = {
    "enabled": "cudnn_enabled",
    "benchmark": "cudnn_benchmark",
    "benchmark_limit": "cudnn_benchmark_limit",
    "deterministic": "cudnn_deterministic",
    "allow_tf32": "cudnn_tf32",
}


class _Convolutions:
    """How convolutions of float32 are computed."""

    __slots__ = ()

    @property
    def fp32_precision(self) -> str:
        return "tf32" if switch("cudnn_tf32") else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("ieee", "tf32", "none"):
            raise RuntimeError(f"Invalid precision: {value}; it is one of 'ieee', 'tf32' and 'none'")
        set_switch("cudnn_tf32", value != "ieee")


conv = _Convolutions()


def is_available() -> bool:
    """Return whether cuDNN can be used: where there is a GPU, since the backend needs it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cudnn.is_available() == candelabra.cuda.is_available()
    True
    """
    from candelabra import cuda

    return cuda.is_available()


def version() -> int | None:
    """Return the version of cuDNN as NVIDIA counts, for instance 91000; None where it is not
    loaded.
    """
    return ask("cudnn_version") or None


def is_acceptable(tensor: Any) -> bool:
    """Return whether cuDNN can compute with a tensor: on a GPU, of a floating-point dtype."""
    return bool(_get("enabled") and tensor.is_cuda and tensor.is_floating_point())


def _get(name: str) -> Any:
    return switch(_SWITCHES[name])


def _set(name: str, value: Any) -> None:
    set_switch(_SWITCHES[name], value)


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Set several switches, those that are not None, and return what all of them were before."""
    given = {
        "enabled": _enabled, "benchmark": _benchmark, "benchmark_limit": _benchmark_limit, "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
    }  # fmt: skip
    before = tuple(_get(name) for name in given)
    for name, value in given.items():
        if value is not None:
            _set(name, value)
    return before


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Set the switches inside of a ``with``; what is not given gets the value of the signature, as
    in PyTorch.
    """
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)


class _Module(ModuleType):
    """A module whose switches are what the backend is told."""

    def __getattr__(self, name: str) -> Any:
        if name in _SWITCHES:
            return _get(name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SWITCHES:
            _set(name, value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_SWITCHES})


sys.modules[__name__].__class__ = _Module
