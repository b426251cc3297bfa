"""Methods of Tensor that candelabra.autograd implements. Until it is imported, these import it, or
say what to install.
"""

from __future__ import annotations

import sys

from candelabra import _C

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, ModuleType
    from typing import Any

    from candelabra._C import Tensor

_Tensor = _C.Tensor
_DISTRIBUTION = "candelabra-autograd"


def load_autograd() -> bool:
    """Import candelabra.autograd; return whether it is installed."""
    import importlib

    try:
        importlib.import_module("candelabra.autograd")
    except ModuleNotFoundError as error:
        if getattr(error, "subpackage", None) != "autograd":
            raise
        return False
    return True


def _make_ready() -> bool:
    """Import candelabra.autograd before a tensor requires grad; the core calls this until it
    returns True.

    Threads may call it at once: they wait in Python's import lock. A thread that would deadlock
    there is given a partial package by Python, which has no tape yet.
    """
    if not load_autograd():
        return True
    package = sys.modules["candelabra.autograd"]
    if not getattr(package.__spec__, "_initializing", False):
        return True
    if _is_imported_here(package):
        return False
    raise RuntimeError(
        "requires_grad: candelabra.autograd is being imported by another thread, which waits for a module that this thread imports. "
        "Import candelabra.autograd before both"
    )


def _is_imported_here(package: ModuleType) -> bool:
    """Return whether this thread runs the body of a package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is package.__dict__ and frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def _tape_method(name: str, summary: str) -> None:
    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Any:
        if not load_autograd():
            raise ModuleNotFoundError(
                f"Tensor.{name}() needs the tape, and {_DISTRIBUTION} is not installed: pip install {_DISTRIBUTION}",
                name="candelabra.autograd",
            )
        real = getattr(_Tensor, name)
        if real is method:
            raise RuntimeError(
                f"Tensor.{name}(): the installed {_DISTRIBUTION} does not have it: pip install --upgrade {_DISTRIBUTION}"
            )
        return real(self, *arguments, **keywords)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{summary} Done by candelabra.autograd, which is imported at the first call."
    function(package=False)(method)


_tape_method("backward", "Compute the gradients of this tensor with regard to the leaves it was made from.")
_tape_method("register_hook", "Call a function with the gradient of this tensor when it is computed.")
_tape_method("register_post_accumulate_grad_hook", "Call a function after the gradient of this leaf was accumulated.")
_tape_method("retain_grad", "Keep the gradient of this tensor though it is no leaf.")

_C.set_autograd_loader(_make_ready)
