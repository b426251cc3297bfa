"""Data loading, training and tools for Candelabra.

Contains `data`, `Trainer`, `summary`, `benchmark`, `tensorboard`, `collect_env`, `checkpoint`,
`cpp_extension`, `dlpack`, `file_baton`, `flop_counter`, `frames`, `model_zoo`, `module_tracker`
and `weak`. Access to any other attribute raises an error which says that this
version does not have it.
"""

from __future__ import annotations

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-utils", __version__, "candelabra-tensor-core>=0.1,<0.2", "candelabra-multiprocessing>=0.1,<0.2")

from typing import Any

__all__: list[str] = []

#: Imported when they are asked for.
_MODULES = (
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
    "data",
    "dlpack",
    "file_baton",
    "flop_counter",
    "frames",
    "model_zoo",
    "module_tracker",
    "summaries",
    "tensorboard",
    "trainer",
    "weak",
)


def set_module(obj: Any, mod: str) -> None:
    """Set the module that an object says it is from.

    Raises
    ------
    TypeError
        If `mod` is no string.
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange what two tensors are: memory, geometry, place on the tape, attributes and class.

    Who has one of the objects sees the other tensor. A graph that was recorded before must not be
    walked back: it knows a leaf by its object.

    Raises
    ------
    RuntimeError
        If one of the two has a weak reference, or their classes have different slots.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils import swap_tensors
    >>> a, b = candelabra.ones(1), candelabra.zeros(2)
    >>> swap_tensors(a, b)
    >>> a
    tensor([0., 0.])
    """
    t1._swap(t2)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name == "Trainer":
        from .trainer import Trainer

        return Trainer
    if name == "summary":
        from .summaries import summary

        return summary
    raise AttributeError(
        f"candelabra.utils.{name} is not there yet: version {__version__} of candelabra-utils does not have it. "
        "pip install --upgrade candelabra-utils brings it once it is released"
    )
