"""Switches of matrix products on NVIDIA GPUs, under PyTorch's names: ``candelabra.backends.cuda``.

They hold for the whole process, and can be set before the backend is loaded or where there is none.
"""

from __future__ import annotations

from contextlib import contextmanager

from candelabra.settings import settings as _process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

__all__ = [
    "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled",
    "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "sdp_kernel",
]  # fmt: skip

# What the backend is told, by the names in its settings.hpp.
_switches: dict[str, bool] = {
    "matmul_tf32": False,
    "matmul_reduced_precision": True,
    "cudnn_tf32": True,
    "cudnn_benchmark": False,
    "cudnn_enabled": True,
}
_tell: list[Callable[[str, bool], None]] = []


def connect(tell: Callable[[str, bool], None]) -> None:
    """Have a function told every switch, now and when it changes; the backend calls this when it is loaded.

    Parameters
    ----------
    tell : callable
        Takes the name of a switch and its value.
    """
    _tell[:] = [tell]
    for name, value in _switches.items():
        tell(name, value)


def switch(name: str) -> bool:
    """Return how a switch of the backend stands.

    Examples
    --------
    >>> from candelabra.backends import cuda
    >>> cuda.switch("cudnn_enabled")
    True
    """
    return _switches[name]


def set_switch(name: str, value: Any) -> None:
    """Set a switch of the backend.

    Raises
    ------
    RuntimeError
        When the value is no bool.
    """
    if not isinstance(value, bool):
        raise RuntimeError(f"{name} must be a bool, but got {type(value).__name__}")
    _switches[name] = value
    for tell in _tell:
        tell(name, value)


class _Products:
    """How matrix products are computed on NVIDIA GPUs: ``candelabra.backends.cuda.matmul``.

    Attributes
    ----------
    allow_tf32 : bool
        Whether products of float32 are computed in TF32 (10 bits of mantissa, several times as fast); False at the start. The same as
        ``candelabra.set_float32_matmul_precision("high")``.
    fp32_precision : str
        The same in words: ``"ieee"`` or ``"tf32"``.
    allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction : bool
        Whether partial sums of float16 and of bfloat16 may be added in that precision; one switch for both.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cuda.matmul.allow_tf32
    False
    """

    __slots__ = ()

    @property
    def allow_tf32(self) -> bool:
        return _process.matmul_precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        _process.matmul_precision = "high" if value else "highest"
        set_switch("matmul_tf32", value)

    @property
    def fp32_precision(self) -> str:
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("ieee", "tf32", "none"):
            raise RuntimeError(f"Invalid precision: {value}; it is one of 'ieee', 'tf32' and 'none'")
        self.allow_tf32 = value == "tf32"

    @property
    def allow_fp16_reduced_precision_reduction(self) -> bool:
        return _switches["matmul_reduced_precision"]

    @allow_fp16_reduced_precision_reduction.setter
    def allow_fp16_reduced_precision_reduction(self, value: bool) -> None:
        set_switch("matmul_reduced_precision", value)

    allow_bf16_reduced_precision_reduction = allow_fp16_reduced_precision_reduction

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


matmul = _Products()


def is_built() -> bool:
    """Tell whether the backend for NVIDIA GPUs is installed; `candelabra.cuda.is_available` tells whether it finds a GPU.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cuda.is_built() in (True, False)
    True
    """
    from candelabra import backends

    return "cuda" in backends.installed()


def is_flash_attention_available() -> bool:
    """Tell whether attention is computed without the whole matrix of weights: with every backend that has the kernel, always."""
    return True


def _enabled() -> bool:
    """Tell whether a way to compute attention may be taken: which one is taken is the backend's choice."""
    return True


def _enable(enabled: bool) -> None:
    """Allow or forbid a way to compute attention: which one is taken is the backend's choice, so nothing changes."""


cudnn_sdp_enabled = flash_sdp_enabled = math_sdp_enabled = mem_efficient_sdp_enabled = _enabled
enable_cudnn_sdp = enable_flash_sdp = enable_math_sdp = enable_mem_efficient_sdp = _enable


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Choose among the ways to compute attention for a block: which one is taken is the backend's choice, so nothing changes."""
    yield
