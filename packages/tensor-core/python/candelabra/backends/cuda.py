"""Settings of matrix products and attention on NVIDIA GPUs, under PyTorch's names:
``candelabra.backends.cuda``. They hold for the whole process, and can be set before the backend is
loaded, or without it.

They hold for the whole process, and can be set before the backend is loaded or where there is none.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import NamedTuple

from candelabra import _C
from candelabra.settings import follow_matmul_precision, get_float32_matmul_precision, set_float32_matmul_precision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from candelabra._C import Tensor

__all__ = [
    "SDPAParams", "can_use_cudnn_attention", "can_use_efficient_attention", "can_use_flash_attention", "cudnn_sdp_enabled",
    "cufft_plan_cache", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled",
    "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "sdp_kernel",
]  # fmt: skip

# Settings by their names in the backend's settings.hpp. A setting is a bool or an int and keeps its
# type.
_switches: dict[str, int] = {
    "matmul_tf32": False,
    "float16_reduced": True,
    "bfloat16_reduced": True,
    "cudnn_enabled": True,
    "cudnn_tf32": True,
    "cudnn_benchmark": False,
    "cudnn_benchmark_limit": 10,
    "cudnn_deterministic": False,
    "cudnn_attention": True,
    "cufft_plans": 4096,
    "sync_debug_mode": 0,
}
_tell: list[Callable[[str, int], None]] = []
_ask: list[Callable[[str], int]] = []
# The allowed implementations of attention on NVIDIA GPUs.
_attention: dict[str, bool] = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}


def connect(tell: Callable[[str, int], None], ask: Callable[[str], int]) -> None:
    """Register a callback that gets every setting, now and when it changes. The backend calls this
    when it is loaded.

    Parameters
    ----------
    tell : callable
        Takes the name of a setting and its value.
    ask : callable
        Takes a name and returns a number: ``"cudnn_version"``, ``"cufft_plans"`` (the number of
        cached plans).
    """
    _tell[:], _ask[:] = [tell], [ask]
    for name, value in _switches.items():
        tell(name, value)


def ask(name: str) -> int:
    """Return a number from the backend, see :func:`connect`; 0 if it is not loaded.

    Examples
    --------
    >>> from candelabra.backends import cuda
    >>> cuda.ask("cufft_plans")
    0
    """
    return _ask[0](name) if _ask else 0


def switch(name: str) -> Any:
    """Return the value of a setting.

    Examples
    --------
    >>> from candelabra.backends import cuda
    >>> cuda.switch("cudnn_enabled")
    True
    """
    return _switches[name]


def set_switch(name: str, value: Any) -> None:
    """Change a setting of the backend.

    Raises
    ------
    RuntimeError
        If the value is not a bool, or not an int for an integer setting.
    """
    wanted = type(_switches[name])
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise RuntimeError(f"{name} must be {'a bool' if wanted is bool else 'an int'}, but got {type(value).__name__}")
    _switches[name] = value
    for tell in _tell:
        tell(name, value)


def _follow_precision(precision: str) -> None:
    set_switch("matmul_tf32", precision != "highest")


follow_matmul_precision(_follow_precision)


class _Products:
    """Settings of matrix products on NVIDIA GPUs: ``candelabra.backends.cuda.matmul``.

    Attributes
    ----------
    allow_tf32 : bool
        Whether products of float32 may use TF32 (10 bits of mantissa, several times as fast).
        Default: False. The same as ``candelabra.set_float32_matmul_precision("high")``.
    fp32_precision : str
        The same setting as a string: ``"ieee"`` or ``"tf32"``.
    allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction : bool
        Whether partial sums of products may be accumulated in float16, or in bfloat16. Default:
        True.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cuda.matmul.allow_tf32
    False
    """

    __slots__ = ()

    @property
    def allow_tf32(self) -> bool:
        return get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        set_float32_matmul_precision("high" if value else "highest")

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
        return bool(_switches["float16_reduced"])

    @allow_fp16_reduced_precision_reduction.setter
    def allow_fp16_reduced_precision_reduction(self, value: bool) -> None:
        set_switch("float16_reduced", value)

    @property
    def allow_bf16_reduced_precision_reduction(self) -> bool:
        return bool(_switches["bfloat16_reduced"])

    @allow_bf16_reduced_precision_reduction.setter
    def allow_bf16_reduced_precision_reduction(self, value: bool) -> None:
        set_switch("bfloat16_reduced", value)

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


matmul = _Products()


def is_built() -> bool:
    """Return whether the backend for NVIDIA GPUs is installed. `candelabra.cuda.is_available`
    returns whether it finds a GPU.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cuda.is_built() in (True, False)
    True
    """
    from candelabra import backends

    return "cuda" in backends.installed()


def is_flash_attention_available() -> bool:
    """Return whether attention can be computed without the full matrix of weights: always, with
    every backend that has the kernel.
    """
    return True


class _FftPlans:
    """The cache of Fourier transform plans: ``candelabra.backends.cuda.cufft_plan_cache``. All
    devices share one limit, so that indexing with a device, as in PyTorch, returns the same object.

    All devices share one limit; indexing with a device, as in PyTorch, gives this same object.

    Attributes
    ----------
    max_size : int
        The capacity of each thread's cache. Default: 4096.
    size : int
        The number of cached plans; 0 if the backend is not loaded.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.cuda.cufft_plan_cache.max_size
    4096
    """

    __slots__ = ()

    @property
    def size(self) -> int:
        return ask("cufft_plans")

    @property
    def max_size(self) -> int:
        return _switches["cufft_plans"]

    @max_size.setter
    def max_size(self, value: int) -> None:
        if isinstance(value, int) and value < 0:
            raise RuntimeError(f"cuFFT plan cache size must be non-negative, but got {value}")
        set_switch("cufft_plans", value)

    def clear(self) -> None:
        """Clear the cache. Each thread frees its plans before its next transform."""
        for tell in _tell:
            tell("cufft_clear", 1)

    def __getitem__(self, device: Any) -> _FftPlans:
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "max_size":
            raise RuntimeError(f"{name} of the cuFFT plan cache cannot be set: max_size can")
        object.__setattr__(self, name, value)


cufft_plan_cache = _FftPlans()


def flash_sdp_enabled() -> bool:
    """Return whether attention may use the backend's own fused kernel."""
    return _attention["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """Return whether attention may use the backend's own fused kernel, under its other name in
    PyTorch.
    """
    return _attention["mem_efficient"]


def math_sdp_enabled() -> bool:
    """Return whether attention may compute the full matrix of weights."""
    return _attention["math"]


def cudnn_sdp_enabled() -> bool:
    """Return whether attention may use cuDNN, which supports half precision without a mask."""
    return _attention["cudnn"]


def enable_flash_sdp(enabled: bool) -> None:
    """Allow or forbid the backend's own fused kernel. It may be used if this or
    `enable_mem_efficient_sdp` allows it.
    """
    _attention["flash"] = bool(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow or forbid the backend's own fused kernel. It may be used if this or `enable_flash_sdp`
    allows it.
    """
    _attention["mem_efficient"] = bool(enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Allow or forbid attention by the full matrix of weights, which is used if no fused kernel can
    be.

    Examples
    --------
    >>> from candelabra.backends import cuda
    >>> cuda.enable_math_sdp(False)
    >>> cuda.attention_ways()
    (False, True)
    >>> cuda.enable_math_sdp(True)
    """
    _attention["math"] = bool(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow or forbid attention by cuDNN, which is preferred to the backend's own kernel."""
    _attention["cudnn"] = bool(enabled)
    set_switch("cudnn_attention", bool(enabled))


def attention_ways() -> tuple[bool, bool]:
    """Return whether attention may use the full matrix of weights, and whether it may use a fused
    kernel.
    """
    return _attention["math"], _attention["flash"] or _attention["mem_efficient"] or _attention["cudnn"]


class SDPAParams(NamedTuple):
    """The arguments of a call of scaled_dot_product_attention, for queries about its
    implementation.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    attn_mask: Tensor | None
    dropout: float
    is_causal: bool
    enable_gqa: bool


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Return whether the backend's own fused kernel supports this call: on a GPU, without dropout
    and without a gradient of the mask.

    Parameters
    ----------
    params : SDPAParams
        The call.
    debug : bool
        Whether to warn with the reason where it does not.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.backends import cuda
    >>> x = candelabra.ones(1, 1, 2, 8)
    >>> cuda.can_use_flash_attention(cuda.SDPAParams(x, x, x, None, 0.0, False, False))
    False
    """
    mask = params.attn_mask
    reasons = (
        *_of_every_kernel(params, flash_sdp_enabled() or mem_efficient_sdp_enabled()),
        (params.query.is_floating_point(), f"{params.query.dtype} is no floating-point dtype"),
        (mask is None or not mask.requires_grad, "the mask needs a gradient"),
    )
    return _none_against(reasons, debug)


can_use_efficient_attention = can_use_flash_attention


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Return whether cuDNN supports this call: half precision on a GPU without a mask, with rows of
    a multiple of 8 elements.

    Parameters
    ----------
    params : SDPAParams
        The call.
    debug : bool
        Whether to warn with the reason where it does not.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.backends import cuda
    >>> x = candelabra.ones(1, 1, 2, 8)
    >>> cuda.can_use_cudnn_attention(cuda.SDPAParams(x, x, x, None, 0.0, False, False))
    False
    """
    widths = params.query.shape[-1:] + params.value.shape[-1:]
    reasons = (
        *_of_every_kernel(params, cudnn_sdp_enabled() and bool(_switches["cudnn_enabled"])),
        (params.query.dtype in (_C.float16, _C.bfloat16), f"{params.query.dtype} is no half precision"),
        (params.attn_mask is None, "there is a mask"),
        (all(width % 8 == 0 and width <= 256 for width in widths), f"rows have {list(widths)} elements"),
    )
    return _none_against(reasons, debug)


def _of_every_kernel(params: SDPAParams, allowed: bool) -> tuple[tuple[bool, str], ...]:
    """Return the requirements of all fused kernels, each with the warning for a call that does not
    meet it.
    """
    return (
        (allowed, "it is forbidden"),
        (params.query.is_cuda, "query is on no GPU"),
        (params.dropout == 0.0, "weights are dropped"),
    )


def _none_against(reasons: tuple[tuple[bool, str], ...], debug: bool) -> bool:
    against = [text for fine, text in reasons if not fine]
    if against and debug:
        _C.warn(f"this way to compute attention is not taken, since {against[0]}")
    return not against


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Select implementations of attention on NVIDIA GPUs for a block.
    `candelabra.nn.attention.sdpa_kernel` does so for all devices.

    Examples
    --------
    >>> from candelabra.backends import cuda
    >>> with cuda.sdp_kernel(enable_math=False):
    ...     cuda.math_sdp_enabled()
    False
    """
    before = dict(_attention)
    choices = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn}
    _attention.update({name: bool(value) for name, value in choices.items()})
    set_switch("cudnn_attention", _attention["cudnn"])
    try:
        yield
    finally:
        _attention.update(before)
        set_switch("cudnn_attention", _attention["cudnn"])
