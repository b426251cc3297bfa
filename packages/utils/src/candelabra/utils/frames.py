"""Tables of pandas and polars as tensors, and back. Neither is needed to import this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import candelabra
from candelabra import Tensor

from .data.dataset import TensorDataset

__all__ = ["FrameDataset", "to_pandas", "to_polars", "to_tensor", "to_tensors"]


def _library(table: Any) -> str:
    library = type(table).__module__.partition(".")[0]
    if library not in ("pandas", "polars") or not hasattr(table, "to_numpy"):
        raise TypeError(f"expected a DataFrame or Series of pandas or polars, but got {type(table).__name__}")
    return library


def _columns(frame: Any, columns: Sequence[str] | None) -> dict[str, Any]:
    """Return the Series of a DataFrame by their names, or the only one of a Series."""
    _library(frame)
    if not hasattr(frame, "columns"):
        if columns is not None:
            raise TypeError("columns can be chosen of a DataFrame, not of a Series")
        return {str(frame.name): frame}
    names = list(frame.columns) if columns is None else list(columns)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise KeyError(f"there is no column {missing[0]!r}; there are {', '.join(map(str, frame.columns))}")
    return {name: frame[name] for name in names}


def _tensor_of(name: str, series: Any, dtype: Any) -> Tensor:
    missing = series.isna().any() if _library(series) == "pandas" else series.null_count() > 0
    wants_float = dtype is None or dtype.is_floating_point
    array = series.to_numpy()
    if missing and (array.dtype.kind not in "fO" or not wants_float):
        raise ValueError(f"column {name!r} has missing values, for which integers have no number: fill them first")
    if array.dtype.kind == "O" and missing:
        array = series.to_numpy(dtype="float64", na_value=float("nan")) if _library(series) == "pandas" else array
    if array.dtype.kind not in "biufc":
        raise TypeError(f"column {name!r} is of {series.dtype}, which is no dtype of numbers: encode it first")
    # A copy: what pandas gives may be a view of the frame that must not be written to.
    return candelabra.tensor(array.copy(), dtype=dtype)


def to_tensors(frame: Any, columns: Sequence[str] | None = None, *, dtype: Any = None) -> dict[str, Tensor]:
    """Return the columns of a DataFrame as tensors, each of its own dtype unless one is given.

    Parameters
    ----------
    frame : DataFrame or Series
        Of pandas or polars.
    columns : sequence of str, optional
        The columns to take.
    dtype : dtype, optional
        The dtype of all tensors. Missing values are NaN in those of floating point.

    Raises
    ------
    TypeError
        If `frame` is none, or a column holds no numbers.
    KeyError
        If there is no such column.
    ValueError
        If a column of integers or bools has missing values.

    Examples
    --------
    >>> import polars
    >>> from candelabra.utils.frames import to_tensors
    >>> to_tensors(polars.DataFrame({"x": [1.5, 2.0], "n": [3, 4]}))
    {'x': tensor([1.5000, 2.0000], dtype=candelabra.float64), 'n': tensor([3, 4])}
    """
    return {name: _tensor_of(name, series, dtype) for name, series in _columns(frame, columns).items()}


def to_tensor(frame: Any, columns: Sequence[str] | None = None, *, dtype: Any = None) -> Tensor:
    """Return a DataFrame as one tensor of shape (rows, columns), or a Series as a vector.

    The dtype is the one that those of the columns promote to. The parameters and the exceptions
    are those of :func:`to_tensors`.

    Examples
    --------
    >>> import candelabra, pandas
    >>> from candelabra.utils.frames import to_tensor
    >>> to_tensor(pandas.DataFrame({"x": [1.5, 2.0], "n": [3, 4]}), dtype=candelabra.float32)
    tensor([[1.5000, 3.0000],
            [2.0000, 4.0000]])
    """
    tensors = list(to_tensors(frame, columns, dtype=dtype).values())
    if not hasattr(frame, "columns"):
        return tensors[0]
    if not tensors:
        raise ValueError("to_tensor(): there are no columns")
    common = tensors[0].dtype
    for tensor in tensors:
        common = candelabra.promote_types(common, tensor.dtype)
    return candelabra.stack([tensor.to(common) for tensor in tensors], dim=1)


def _arrays(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    arrays = {}
    for name, tensor in tensors.items():
        if tensor.dim() != 1:
            raise ValueError(f"a column is a vector, but {name!r} has shape {tuple(tensor.shape)}")
        arrays[name] = tensor.detach().cpu().numpy()
    return arrays


def to_pandas(tensors: Mapping[str, Tensor]) -> Any:
    """Return vectors as a DataFrame of pandas.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.frames import to_pandas
    >>> to_pandas({"n": candelabra.tensor([3, 4])})["n"].tolist()
    [3, 4]
    """
    import pandas

    return pandas.DataFrame({name: array.copy() for name, array in _arrays(tensors).items()})


def to_polars(tensors: Mapping[str, Tensor]) -> Any:
    """Return vectors as a DataFrame of polars.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.frames import to_polars
    >>> to_polars({"n": candelabra.tensor([3, 4])})["n"].to_list()
    [3, 4]
    """
    import polars

    return polars.DataFrame({name: array.copy() for name, array in _arrays(tensors).items()})


class FrameDataset(TensorDataset):
    """Rows of a DataFrame of pandas or polars: features as a vector, and the target.

    Parameters
    ----------
    frame : DataFrame
        The table.
    target : str, optional
        The column of targets. Without it, samples are tuples of the features alone.
    features : sequence of str, optional
        The columns of features; by default all but `target`.
    dtype : dtype
        The dtype of the features. The targets keep theirs, but float64 becomes this as well.

    Examples
    --------
    >>> import polars
    >>> from candelabra.utils.frames import FrameDataset
    >>> data = FrameDataset(polars.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0], "label": [0, 1]}), target="label")
    >>> data[1]
    (tensor([2., 4.]), tensor(1))
    """

    def __init__(
        self,
        frame: Any,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        dtype: Any = candelabra.float32,
    ) -> None:
        if features is None:
            features = [name for name in _columns(frame, None) if name != target]
        #: The names of the features.
        self.features = list(features)
        tensors = [to_tensor(frame, self.features, dtype=dtype)]
        if target is not None:
            (column,) = to_tensors(frame, [target]).values()
            tensors.append(column.to(dtype) if column.dtype is candelabra.float64 else column)
        super().__init__(*tensors)
