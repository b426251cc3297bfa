"""Names of ``torch`` itself: the version, and ``compile``, which does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.version import __version__ as _candelabra_version

from .files import load, save

__all__ = ["__version__", "compile", "compiled_with_cxx11_abi", "load", "save"]

#: The PyTorch version whose API this follows, with Candelabra's version as the local part.
__version__ = f"2.13.0+candelabra.{_candelabra_version}"


def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function or module unchanged, because there is no compiler yet.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.package import compile
    >>> compile(lambda x: x + 1)(1)
    2
    """
    if model is None:
        return lambda decorated: decorated
    return model


def compiled_with_cxx11_abi() -> bool:
    """Return True: the C++ library uses the C++11 ABI."""
    return True
