"""Settings of the process: determinism, precision of matrix products, denormal numbers, warnings,
the default tensor type.
"""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor

__all__ = [
    "are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled", "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_flush_denormal", "set_num_interop_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip


class _Settings:
    deterministic: bool = False
    warn_only: bool = False
    matmul_precision: str = "highest"
    interop_threads: int = 1
    warn_always: bool = False


settings = _Settings()
# Backends' functions that are told whether deterministic algorithms are asked for.
_followers: list[Callable[[bool], None]] = []

# ---- determinism


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that give the same bits at every run.

    On the CPU, results are the same at every run with as many threads. For any number of threads
    they are the same, too, but for what MKL and oneDNN share among threads: products and
    factorizations of large matrices, eigenvalues, singular values and least squares, convolutions
    that are not 3x3, products of bfloat16 and float16. Where this is True, products, LU and
    Cholesky factorizations are cut into parts by their sizes alone, and the others run on one
    thread, which takes up to twice the time on two threads, and more on more.
    candelabra-backend-cuda then takes only those of cuDNN's algorithms that give the same bits, and
    other backends ask :func:`candelabra.are_deterministic_algorithms_enabled`.

    What this changes everywhere is memory that nobody has set: ``empty`` and its relatives, and
    what ``resize_`` adds, is filled with NaN (integers: the largest), so that a program that reads
    it by mistake reads the same every time.

    Parameters
    ----------
    mode : bool
        True asks for them, False (as at the start) does not.
    warn_only : bool
        Whether an operator that has no such algorithm warns; otherwise it raises RuntimeError.

    Raises
    ------
    TypeError
        If `mode` is no bool.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.use_deterministic_algorithms(True)
    >>> candelabra.empty(2)
    tensor([nan, nan])
    >>> candelabra.use_deterministic_algorithms(False)
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms(): argument '{name}' must be bool, not {type(value).__name__}"
            )
    settings.deterministic = mode
    _C.fill_unset_memory(mode)
    settings.warn_only = warn_only
    _C.set_fill_unset(mode)
    for tell in _followers:
        tell(mode)


def follow_deterministic(tell: Callable[[bool], None]) -> None:
    """Have a function told whether deterministic algorithms are asked for, now and when it changes.

    A backend calls this when it is loaded.

    Parameters
    ----------
    tell : callable
        Takes whether they are; it is not called at once where they are not.

    Examples
    --------
    >>> from candelabra import settings
    >>> told = []
    >>> settings.follow_deterministic(told.append)
    >>> settings.use_deterministic_algorithms(True)
    >>> settings.use_deterministic_algorithms(False)
    >>> told
    [True, False]
    """
    _followers.append(tell)
    if settings.deterministic:
        tell(True)


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether algorithms that give the same bits at every run are asked for.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.are_deterministic_algorithms_enabled()
    False
    """
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether an operator without a deterministic algorithm warns rather than raises.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return settings.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set what :func:`candelabra.use_deterministic_algorithms` sets, as one of three modes.

    Parameters
    ----------
    debug_mode : int or str
        0 or ``"default"``: deterministic algorithms are not asked for; 1 or ``"warn"``: an operator
        without one warns; 2 or ``"error"``: it raises.

    Raises
    ------
    TypeError
        If it is neither an int nor a str.
    RuntimeError
        If there is no such mode.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_deterministic_debug_mode("warn")
    >>> candelabra.get_deterministic_debug_mode()
    1
    >>> candelabra.set_deterministic_debug_mode(0)
    """
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    elif not isinstance(debug_mode, int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2: see :func:`candelabra.set_deterministic_debug_mode`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_deterministic_debug_mode()
    0
    """
    if not settings.deterministic:
        return 0
    return 1 if settings.warn_only else 2


def unset_memory(made: Tensor) -> Tensor:
    """Fill memory that nobody has set, where deterministic algorithms are asked for."""
    if settings.deterministic:
        dtype = made.dtype
        if dtype.is_floating_point or dtype.is_complex:
            made.detach().fill_(float("nan"))
        elif dtype is _C.bool:
            made.fill_(True)
        else:
            from .numeric_info import iinfo

            made.fill_(iinfo(dtype).max)
    return made


# ---- numbers


def set_float32_matmul_precision(precision: str) -> None:
    """Set how exactly matrix products of float32 are computed where a backend has a choice.

    Parameters
    ----------
    precision : str
        ``"highest"``: in float32. ``"high"`` and ``"medium"`` allow a backend to compute in
        TensorFloat32 or in bfloat16 where that is faster; candelabra-backend-cpu computes in
        float32 with every setting. Another word changes nothing, and warns.

    Raises
    ------
    RuntimeError
        If it is no str.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_float32_matmul_precision("high")
    >>> candelabra.get_float32_matmul_precision()
    'high'
    >>> candelabra.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        _C.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; set_float32_matmul_precision has no effect."
        )
        return
    settings.matmul_precision = precision
    from candelabra.backends.cuda import set_switch

    set_switch("matmul_tf32", precision != "highest")


def get_float32_matmul_precision() -> str:
    """Return ``"highest"``, ``"high"`` or ``"medium"``: see
    :func:`candelabra.set_float32_matmul_precision`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_float32_matmul_precision()
    'highest'
    """
    return settings.matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """Set whether floating-point numbers too small to be normal are taken for zero, as operands and
    as results.

    On the thread that calls and on all threads that candelabra-backend-cpu computes with.

    Parameters
    ----------
    mode : bool
        True flushes them, which some processors are much faster with.

    Returns
    -------
    bool
        Whether the backend of the CPU can; on x86-64 it can.

    Raises
    ------
    RuntimeError
        If `mode` is no bool.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_flush_denormal(True)
    True
    >>> candelabra.tensor([1e-310], dtype=candelabra.float64) * 1
    tensor([0.], dtype=candelabra.float64)
    >>> candelabra.set_flush_denormal(False)
    True
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return _C.set_flush_denormal("cpu", mode)


# ---- threads


def get_num_interop_threads() -> int:
    """Return the number that :func:`candelabra.set_num_interop_threads` set, 1 at first.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_num_interop_threads()
    1
    """
    return settings.interop_threads


def set_num_interop_threads(number: int) -> None:
    """Note how many operators may run at once.

    Operators of one Python thread run one after the other, each on the threads of
    :func:`candelabra.set_num_threads`; so nothing depends on this number. It is kept for programs
    that set it and ask for it.

    Parameters
    ----------
    number : int
        At least 1.

    Raises
    ------
    RuntimeError
        If it is no positive int.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_num_interop_threads(1)
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(number).__name__}")
    if number < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, but got {number}")
    settings.interop_threads = number


# ---- warnings

#: What `warnings.filters` has while warnings are always shown; last, so that the user's own filters
#: win.
_ALWAYS: tuple[str, None, type[Warning], None, int] = ("always", None, UserWarning, None, 0)


def set_warn_always(b: bool) -> None:
    """Set whether a warning is shown each time, and not only the first time at each place.

    Parameters
    ----------
    b : bool
        True: each time, unless a filter of the module `warnings` says otherwise. False: as Python
        does.

    Raises
    ------
    RuntimeError
        If it is no bool.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_warn_always(True)
    >>> candelabra.is_warn_always_enabled()
    True
    >>> candelabra.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"set_warn_always expects a bool, but got {type(b).__name__}")
    import warnings

    settings.warn_always = b
    if b:
        warnings.simplefilter("always", UserWarning, append=True)
    else:
        while _ALWAYS in warnings.filters:
            warnings.filters.remove(_ALWAYS)  # type: ignore[attr-defined]
        # Python's own rule for what no filter names; said so that the module sees that its filters
        # changed.
        warnings.simplefilter("default", UserWarning, append=True)


def is_warn_always_enabled() -> bool:
    """Return whether warnings are shown each time.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_warn_always_enabled()
    False
    """
    return settings.warn_always


# ---- the default tensor type


def set_default_tensor_type(t: Any) -> None:
    """Set default dtype and default device by a tensor type; deprecated.

    Use :func:`candelabra.set_default_dtype` and :func:`candelabra.set_default_device`.

    Parameters
    ----------
    t : type or str
        ``candelabra.DoubleTensor`` or ``"candelabra.DoubleTensor"``,
        ``"candelabra.cuda.FloatTensor"``.

    Raises
    ------
    TypeError
        If it is none, or not of a floating-point dtype.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_default_tensor_type(candelabra.DoubleTensor)
    >>> candelabra.get_default_dtype()
    candelabra.float64
    >>> candelabra.set_default_tensor_type("candelabra.FloatTensor")
    """
    from .composite.creation.legacy_types import dtype_and_device

    dtype, device = dtype_and_device(t)
    if dtype is None:
        raise TypeError(
            f"invalid type object: only floating-point tensor types are supported as the default type, but got {t!r}; "
            "use set_default_dtype() for a dtype"
        )
    if not dtype.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, but got {t!r}")
    _C.warn(
        "set_default_tensor_type() is deprecated, please use set_default_dtype() and set_default_device() as alternatives."
    )
    _C.set_default_dtype(dtype)
    _C.set_default_device(device)


def compiled_with_cxx11_abi() -> bool:
    """Return whether the core was compiled with libstdc++'s ABI of 2011: it always is.

    Backends do not depend on it: they are reached by way of C99.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.compiled_with_cxx11_abi()
    True
    """
    return True
