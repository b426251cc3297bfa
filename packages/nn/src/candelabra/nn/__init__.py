"""Provide layers, losses, containers and initializers, as in ``torch.nn``."""

from candelabra.version import register

__version__ = "0.1.0"
register("candelabra-nn", __version__, "candelabra-tensor-core>=0.1,<0.2", "candelabra-autograd>=0.1,<0.2")

from typing import TYPE_CHECKING, Any

from . import attention as attention
from . import functional as functional
from . import grad as grad
from . import init as init
from . import modules as modules
from . import parallel as parallel
from . import parameter as parameter
from . import utils as utils
from .modules import *  # noqa: F403
from .modules.base.hooks import RemovableHandle as RemovableHandle
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Merge and check the keyword arguments that a module passes to tensor factories.

    Parameters
    ----------
    kwargs
        Any of ``device``, ``dtype``, ``memory_format``, and ``factory_kwargs``, a dict with the
        same keys.

    Returns
    -------
    dict
        All keyword arguments in one dict.

    Raises
    ------
    TypeError
        If a key is unknown or is given twice.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.factory_kwargs({"factory_kwargs": {"device": "cpu"}})
    {'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - names - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in names & kwargs.keys():
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    unexpected = result.keys() - names
    if unexpected:
        raise TypeError(f"unexpected factory_kwargs {unexpected}")
    return result


# Type checkers do not follow a computed __all__. Without one, they see what is imported by stars.
if not TYPE_CHECKING:
    __all__ = [
        "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "factory_kwargs", "functional", "grad", "init",
        "modules", "parallel", "parameter", "utils", *modules.__all__,
    ]  # fmt: skip
