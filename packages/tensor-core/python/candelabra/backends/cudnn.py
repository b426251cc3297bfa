"""Settings of convolutions and recurrent layers on NVIDIA GPUs, under PyTorch's names:
``candelabra.backends.cudnn``.

Attributes
----------
enabled : bool
    Whether to use NVIDIA's library cuDNN where it can be used. Default: True.
benchmark : bool
    Whether to choose algorithms by timing them, once per shape. Default: False.
benchmark_limit : int
    The maximum number of algorithms to time; 0 for all. Default: 10.
deterministic : bool
    Whether to use only deterministic algorithms of cuDNN. Default: False. The backend's own kernels
    are always deterministic.
allow_tf32 : bool
    Whether convolutions and recurrent layers of float32 may use TF32. Default: True, as in PyTorch.
conv : object
    The same setting as a string: ``conv.fp32_precision`` is ``"tf32"`` or ``"ieee"``.

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
    """Settings of convolutions of float32."""

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
    """Return whether cuDNN can be used: the backend requires it, so whether there is a GPU.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cudnn.is_available() == candelabra.cuda.is_available()
    True
    """
    from candelabra import backends

    return backends.is_available("cuda")


def version() -> int | None:
    """Return the version of cuDNN, for instance 91000; None if it is not loaded."""
    return ask("cudnn_version") or None


def is_acceptable(tensor: Any) -> bool:
    """Return whether cuDNN supports a tensor: on a GPU, of a floating-point dtype."""
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
    """Change the settings that are not None, and return the previous values of all."""
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
    """Context manager that changes settings. As in PyTorch, settings that are not given get the
    default of the signature.
    """
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)


class _Module(ModuleType):
    """A module whose attributes are settings of the backend."""

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
