"""Names of ``torch`` itself: the version, and compilation, which leaves programs as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra.version import __version__ as _candelabra_version

from .files import save

__all__ = ["__version__", "compile", "compiled_with_cxx11_abi", "save"]

#: Of the PyTorch whose API this is, with Candelabra's own after the plus sign.
__version__ = f"2.13.0+candelabra.{_candelabra_version}"


def compile(model: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function or module as it is: there is no compiler yet, and programs run as they
    are written.

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
    """Whether the C++ library's newer interface is used: it is."""
    return True
