"""``torch.backends.cuda``: switches of matrix products and of attention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

__all__ = [
    "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled",
    "is_built", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "sdp_kernel",
]  # fmt: skip

#: Set by programs; products in float32 are in float32.
matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    fp32_precision="ieee",
)


def is_built() -> bool:
    """Whether CUDA is compiled in: it is a wheel of its own."""
    from ..cuda import is_available

    return is_available()


def _enabled() -> bool:
    """Whether this way of attention may be taken: there is one way, which is always taken."""
    return True


def _enable(enabled: bool) -> None:
    """Allow or forbid a way of attention: there is one way, which is always taken."""


cudnn_sdp_enabled = flash_sdp_enabled = math_sdp_enabled = mem_efficient_sdp_enabled = _enabled
enable_cudnn_sdp = enable_flash_sdp = enable_math_sdp = enable_mem_efficient_sdp = _enable


@contextmanager
def sdp_kernel(*arguments: Any, **options: Any) -> Iterator[None]:
    """Choose a way of attention for a block: there is one way."""
    yield
