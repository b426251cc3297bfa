"""Names of types, and the package's folder."""

from __future__ import annotations

import os

from candelabra import _C

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@function(method=False)
def typename(obj: Any) -> str:
    """Return the name of an object's type with its module, for messages.

    Parameters
    ----------
    obj
        For a tensor, the result is that of ``Tensor.type()``; for a class or a function, its own
        name.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.typename(candelabra.tensor([1]))
    'candelabra.LongTensor'
    >>> candelabra.typename(3)
    'int'
    """
    if isinstance(obj, _C.Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "builtins") else f"{module}.{named.__qualname__}"


@function(method=False)
def get_file_path(*path_components: str) -> str:
    """Return a path below the folder in which the package ``candelabra`` is installed.

    Parameters
    ----------
    *path_components : str
        Names of folders and of a file; none for that folder itself.

    Examples
    --------
    >>> import candelabra, os
    >>> os.path.exists(candelabra.get_file_path("candelabra", "version.py"))
    True
    """
    return os.path.join(os.path.dirname(os.path.dirname(_C.__file__)), *path_components)


@function(method=False)
def to_dlpack(tensor: Any) -> Any:
    """Return the memory of a tensor as a DLPack capsule, which one consumer can take over.

    ``from_dlpack(tensor)`` of most libraries needs no capsule: they ask the tensor for it.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.from_dlpack(candelabra.to_dlpack(candelabra.tensor([1, 2])))
    tensor([1, 2])
    """
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"to_dlpack() argument must be Tensor, not {type(tensor).__name__}")
    return tensor.__dlpack__()
