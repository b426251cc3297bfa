"""Collation: turns samples into a batch, in shared memory if a worker runs it."""

from __future__ import annotations

import collections.abc
import copy
import sys
from collections.abc import Callable
from typing import Any

import candelabra
from candelabra import Tensor

from .buffers import shared_empty
from .worker_info import get_worker_info

CollateMap = dict[Any, Callable[..., Any]]


def destination(shape: tuple[int, ...], like: Tensor) -> Tensor | None:
    """Return a shared-memory output for a batch of tensors like `like`, or None.

    None means that the batch has to be a new tensor, as in the main process.
    """
    if get_worker_info() is None or like.requires_grad or like.device.type != "cpu" or 0 in shape:
        return None
    return shared_empty(shape, like.dtype)


def _numbers(made: Tensor) -> Tensor:
    out = destination(tuple(made.shape), made)
    return made if out is None else out.copy_(made)


def collate_tensor_fn(batch: list[Tensor], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Stack tensors of equal shape."""
    first = batch[0]
    out = None
    if type(first) is Tensor and all(one.dtype == first.dtype and one.shape == first.shape for one in batch):
        out = destination((len(batch), *first.shape), first)
    return candelabra.stack(batch) if out is None else candelabra.stack(batch, out=out)


def collate_numpy_array_fn(batch: list[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Stack NumPy arrays into a tensor."""
    if batch[0].dtype.kind not in "biufc":
        raise TypeError(_CANNOT.format(batch[0].dtype))
    return collate([candelabra.as_tensor(one) for one in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: list[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Convert NumPy scalars to a tensor."""
    return candelabra.as_tensor(_numpy().asarray(batch))


def collate_float_fn(batch: list[float], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Convert floats to a float64 tensor."""
    return _numbers(candelabra.tensor(batch, dtype=candelabra.float64))


def collate_int_fn(batch: list[int], *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Convert integers or booleans to a tensor."""
    return _numbers(candelabra.tensor(batch))


def collate_str_fn(batch: list[Any], *, collate_fn_map: CollateMap | None = None) -> list[Any]:
    """Return strings and bytes as a list."""
    return batch


#: Collate functions by sample type. Entries can be added.
default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}

_CANNOT = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _numpy() -> Any:
    return sys.modules.get("numpy")


def _function_for(element: Any, functions: CollateMap | None) -> Callable[..., Any] | None:
    if functions is not None:
        if type(element) in functions:
            return functions[type(element)]
        for kind, function in functions.items():
            if isinstance(element, kind):
                return function
    # NumPy is optional. If a sample is an array, NumPy is already imported.
    if functions is default_collate_fn_map and (numpy := _numpy()) is not None:
        if isinstance(element, numpy.ndarray):
            return collate_numpy_array_fn
        if isinstance(element, numpy.bool_ | numpy.number):
            return collate_numpy_scalar_fn
    return None


def collate(batch: list[Any], *, collate_fn_map: CollateMap | None = None) -> Any:
    """Collate samples into a batch with functions selected by type.

    Parameters
    ----------
    batch : list
        Samples of equal structure: tensors, arrays, numbers, strings, and dictionaries, sequences
        and named tuples of these.
    collate_fn_map : dict, optional
        Maps types, or tuples of types, to functions ``fn(batch, *, collate_fn_map)``.

    Raises
    ------
    TypeError
        If no function matches a sample.
    RuntimeError
        If sequences differ in length.

    Examples
    --------
    >>> from candelabra.utils.data.collate import collate
    >>> collate([{"a": "x"}, {"a": "y"}], collate_fn_map={str: lambda batch, *, collate_fn_map: "".join(batch)})
    {'a': 'xy'}
    """
    element = batch[0]
    kind = type(element)
    function = _function_for(element, collate_fn_map)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(element, collections.abc.Mapping):
        columns = {key: collate([one[key] for one in batch], collate_fn_map=collate_fn_map) for key in element}
        return _same_mapping(element, columns)
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return kind(*(collate(list(column), collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)))
    if isinstance(element, collections.abc.Sequence) and not isinstance(element, str | bytes):
        if any(len(one) != len(element) for one in batch):
            raise RuntimeError(
                f"each element in list of batch should be of equal size, but got {sorted({len(one) for one in batch})}"
            )
        made = [collate(list(column), collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return made if isinstance(element, tuple) else _same_sequence(element, made)
    raise TypeError(_CANNOT.format(kind))


def _same_mapping(element: Any, columns: dict[Any, Any]) -> Any:
    if type(element) is dict:
        return columns
    try:
        if isinstance(element, collections.abc.MutableMapping):
            made = copy.copy(element)
            made.update(columns)
            return made
        return type(element)(columns)  # type: ignore[call-arg]
    except TypeError:
        # The type cannot be copied or constructed from a dictionary.
        return columns


def _same_sequence(element: Any, made: list[Any]) -> Any:
    if type(element) is list:
        return made
    try:
        if isinstance(element, collections.abc.MutableSequence):
            result = copy.copy(element)
            result[:] = made
            return result
        return type(element)(made)
    except TypeError:
        # The type cannot be copied or constructed from a list, for example range.
        return made


def default_collate(batch: list[Any]) -> Any:
    """Collate samples into a batch; the default `collate_fn` of `DataLoader`.

    Parameters
    ----------
    batch : list
        Tensors and arrays of equal shape are stacked, numbers become a tensor, and strings stay a
        list. Dictionaries, lists, tuples and named tuples are collated entry by entry; a tuple
        becomes a list.

    Raises
    ------
    TypeError
        If a sample has an unsupported type.
    RuntimeError
        If shapes or lengths differ.

    Examples
    --------
    >>> from candelabra.utils.data import default_collate
    >>> default_collate([(1, 2.0, "a"), (3, 4.0, "b")])
    [tensor([1, 3]), tensor([2., 4.], dtype=candelabra.float64), ['a', 'b']]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Convert the arrays in a sample to tensors; the default without batches (``batch_size=None``).

    Parameters
    ----------
    data : Any
        Arrays, and dictionaries, sequences and named tuples that contain some. Everything else is
        returned unchanged.

    Examples
    --------
    >>> import numpy
    >>> from candelabra.utils.data import default_convert
    >>> default_convert({"a": numpy.array([0, 1]), "b": "word"})
    {'a': tensor([0, 1]), 'b': 'word'}
    """
    numpy = _numpy()
    if isinstance(data, Tensor | str | bytes):
        return data
    if numpy is not None and isinstance(data, numpy.ndarray | numpy.bool_ | numpy.number):
        return (
            data if isinstance(data, numpy.ndarray) and data.dtype.kind not in "biufc" else candelabra.as_tensor(data)
        )
    if isinstance(data, collections.abc.Mapping):
        return _same_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(one) for one in data))
    if isinstance(data, tuple):
        return [default_convert(one) for one in data]
    if isinstance(data, collections.abc.Sequence):
        return _same_sequence(data, [default_convert(one) for one in data])
    return data
