"""``torch.save``, which writes PyTorch's file format."""

from __future__ import annotations

import pickle
from typing import Any

import candelabra

__all__ = ["save"]


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Save tensors and plain data in PyTorch's format with `candelabra.save`.

    Parameters
    ----------
    obj, f, pickle_module, pickle_protocol, _use_new_zipfile_serialization,
    _disable_byteorder_record
        As in `candelabra.save`.

    Examples
    --------
    >>> import io, candelabra
    >>> from candelabra.torch.stand_ins.files import save
    >>> file = io.BytesIO()
    >>> save({"x": candelabra.ones(2)}, file)
    >>> candelabra.load(file)
    {'x': tensor([1., 1.])}
    """
    candelabra.save(
        obj,
        f,
        pickle_module,
        pickle_protocol,
        _use_new_zipfile_serialization,
        _disable_byteorder_record,
        format="pytorch",
    )
