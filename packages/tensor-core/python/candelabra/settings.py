"""Settings of the process: determinism, precision of matrix products, denormal numbers, warnings,
the default tensor type.
"""

from __future__ import annotations

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from candelabra._C import Tensor

__all__ = [
    "are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled", "set_deterministic_debug_mode", "set_float32_matmul_precision",
    "set_flush_denormal", "set_num_interop_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip


class _Settings:
    deterministic: bool = False
    warn_only: bool = False
    matmul_precision: str = "highest"
    interop_threads: int = 1
    warn_always: bool = False


settings = _Settings()
# Functions of backends that are told whether deterministic algorithms are required.
_followers: list[Callable[[bool], None]] = []
# The same for the precision of matrix products.
_precision_followers: list[Callable[[str], None]] = []
# Functions of backends that make their compilers ready.
_compilers: list[Callable[[], None]] = []

# ---- determinism


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Require deterministic algorithms, which give bitwise the same results at every run.

    On the CPU, results are the same at every run with as many threads. For any number of threads
    they are the same, too, but for what MKL and oneDNN share among threads: products and
    factorizations of large matrices, eigenvalues, singular values and least squares, convolutions
    that are not 3x3, products of bfloat16 and float16. If this is True, products, LU and Cholesky
    factorizations are divided into parts by their sizes alone, and the others run on one thread,
    which takes up to twice the time on two threads, and more on more. candelabra-backend-cuda then
    only uses deterministic algorithms of cuDNN, and other backends ask
    :func:`candelabra.are_deterministic_algorithms_enabled`.

    On every backend, uninitialized memory (of ``empty`` and its relatives, and the new elements of
    ``resize_``) is filled with NaN, or the maximum of integer dtypes. A program that reads it by
    mistake then reads the same every time.

    Parameters
    ----------
    mode : bool
        Whether to require deterministic algorithms. Default: False.
    warn_only : bool
        Whether operators without a deterministic algorithm warn instead of raising RuntimeError.

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
    for name, value in (("mode' (position 1)", mode), ("warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name} must be bool, not {type(value).__name__}"
            )
    settings.deterministic = mode
    settings.warn_only = warn_only
    _C.set_fill_uninitialized_memory(mode)
    for tell in _followers:
        tell(mode)


def follow_deterministic(tell: Callable[[bool], None]) -> None:
    """Register a callback that is told whether deterministic algorithms are required, now and when
    it changes.

    A backend calls this when it is loaded.

    Parameters
    ----------
    tell : callable
        Takes a bool. Not called immediately if they are not required.

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


def before_compiling(prepare: Callable[[], None]) -> None:
    """Register a callback that runs once, before the first operators of a program are compiled.

    A backend whose ``cb_compile`` compiles graphs loads its compiler then, and not when it is
    imported.

    Parameters
    ----------
    prepare : callable
        Takes nothing.

    Examples
    --------
    >>> from candelabra import settings
    >>> settings.before_compiling(lambda: None)
    """
    _compilers.append(prepare)


def prepare_compilers() -> None:
    """Run what :func:`before_compiling` has registered. The core calls this once.

    Examples
    --------
    >>> from candelabra import settings
    >>> settings.prepare_compilers()
    """
    for prepare in _compilers:
        prepare()


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether deterministic algorithms are required.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.are_deterministic_algorithms_enabled()
    False
    """
    return settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether operators without a deterministic algorithm warn instead of raising.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return settings.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the modes of :func:`candelabra.use_deterministic_algorithms` by a single argument.

    Parameters
    ----------
    debug_mode : int or str
        0 or ``"default"``: deterministic algorithms are not required; 1 or ``"warn"``: operators
        without one warn; 2 or ``"error"``: they raise.

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
    """Fill uninitialized memory if deterministic algorithms are required."""
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


# ---- numerics


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products.

    Parameters
    ----------
    precision : str
        ``"highest"``: float32. ``"high"`` and ``"medium"`` allow a backend to use TensorFloat32 or
        bfloat16 if that is faster; candelabra-backend-cpu computes in float32 with every setting.
        Other words are ignored with a warning.

    Raises
    ------
    RuntimeError
        If it is not a str.

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
    for tell in _precision_followers:
        tell(precision)


def follow_matmul_precision(tell: Callable[[str], None]) -> None:
    """Have a function told the precision of matrix products, now and when it changes.

    Parameters
    ----------
    tell : callable
        Takes the precision; it is not called at once where that is ``"highest"``.

    Examples
    --------
    >>> from candelabra import settings
    >>> told = []
    >>> settings.follow_matmul_precision(told.append)
    >>> settings.set_float32_matmul_precision("high")
    >>> settings.set_float32_matmul_precision("highest")
    >>> told
    ['high', 'highest']
    """
    _precision_followers.append(tell)
    if settings.matmul_precision != "highest":
        tell(settings.matmul_precision)


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
    """Set whether denormal numbers are flushed to zero, as operands and as results.

    Applies to the calling thread and to all threads of candelabra-backend-cpu.

    Parameters
    ----------
    mode : bool
        Whether to flush, which is much faster on some processors.

    Returns
    -------
    bool
        Whether the CPU backend supports it; on x86-64 it does.

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
    """Return the number set by :func:`candelabra.set_num_interop_threads`; 1 by default.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.get_num_interop_threads()
    1
    """
    return settings.interop_threads


def set_num_interop_threads(number: int) -> None:
    """Set the number of inter-op threads, which has no effect.

    Operators of one Python thread run one after the other, each on the threads of
    :func:`candelabra.set_num_threads`; so nothing depends on this number. It is kept for programs
    that set and read it.

    Parameters
    ----------
    number : int
        At least 1.

    Raises
    ------
    RuntimeError
        If it is not a positive int.

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

#: The filter that shows all warnings. Last, so that the user's own filters take precedence.
_ALWAYS: tuple[str, None, type[Warning], None, int] = ("always", None, UserWarning, None, 0)


def set_warn_always(b: bool) -> None:
    """Set whether warnings are shown each time, instead of once per location.

    Parameters
    ----------
    b : bool
        If True, show warnings each time, unless a filter of the module `warnings` matches. If
        False, use Python's rules.

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
        # Python's default filter. Set explicitly, so that the module notices that its filters
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
