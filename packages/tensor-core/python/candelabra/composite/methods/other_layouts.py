"""Attributes and methods of tensors in other layouts. All tensors are strided; the errors say what
is not supported.
"""

from __future__ import annotations

from candelabra import _C

from ..registration import PROPERTIES, function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from candelabra._C import Tensor, dtype
    from candelabra.types import Device

_COO, _COMPRESSED = "sparse coordinate tensor", "sparse {} compressed tensor"
#: Methods of sparse tensors that PyTorch rejects for strided ones: the expected layout, and their
#: description.
_EXPECTED = {
    "coalesce": (_COO, "Add up the entries of equal indices of a sparse tensor."),
    "is_coalesced": (_COO, "Tell whether the indices of a sparse tensor are sorted and unique."),
    "indices": (_COO, "Return the indices of a sparse tensor."),
    "values": ("sparse tensor", "Return the values of a sparse tensor."),
    "crow_indices": (_COMPRESSED.format("row"), "Return where the rows of a sparse tensor begin."),
    "col_indices": (_COMPRESSED.format("row"), "Return the columns of the entries of a sparse tensor."),
    "ccol_indices": (_COMPRESSED.format("column"), "Return where the columns of a sparse tensor begin."),
    "row_indices": (_COMPRESSED.format("column"), "Return the rows of the entries of a sparse tensor."),
    "smm": ("sparse tensor", "Multiply a sparse matrix by a dense one; the result is sparse."),
    "sspaddmm": ("sparse tensor", "Multiply sparse and dense matrices and add a sparse one."),
}
#: Methods that create or change unsupported layouts.
_MISSING = {
    "sparse tensors": {
        "to_sparse": "Convert to a sparse tensor.",
        "to_sparse_coo": "Convert to a sparse tensor of coordinates.",
        "to_sparse_csr": "Convert to a sparse tensor of compressed rows.",
        "to_sparse_csc": "Convert to a sparse tensor of compressed columns.",
        "to_sparse_bsr": "Convert to a sparse tensor of compressed rows of blocks.",
        "to_sparse_bsc": "Convert to a sparse tensor of compressed columns of blocks.",
        "sparse_mask": "Take the entries at the indices of a sparse tensor.",
        "sparse_resize_": "Change the sizes of a sparse tensor.",
        "sparse_resize_and_clear_": "Change the sizes of a sparse tensor and drop its entries.",
        "resize_as_sparse_": "Change the sizes to those of a sparse tensor.",
    },
    "quantized tensors": {
        "int_repr": "Return the integers of a quantized tensor.",
        "q_scale": "Return the scale of a quantized tensor.",
        "q_zero_point": "Return the zero point of a quantized tensor.",
        "q_per_channel_scales": "Return the scales of the channels of a quantized tensor.",
        "q_per_channel_zero_points": "Return the zero points of the channels of a quantized tensor.",
        "q_per_channel_axis": "Return the dimension of the channels of a quantized tensor.",
        "qscheme": "Return how a quantized tensor is quantized.",
    },
    "tensors in oneDNN's own memory formats": {"to_mkldnn": "Convert to oneDNN's own memory format."},
    "nested tensors": {"to_padded_tensor": "Pad the parts of a nested tensor to one size."},
}


def _refusing(name: str, summary: str, error: type[Exception], message: str) -> None:
    def method(self: Tensor, *arguments: Any, **keywords: Any) -> NoReturn:
        raise error(message)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{summary} Raises {error.__name__}: there are none."
    function(package=False)(method)


for _name, (_layout, _summary) in _EXPECTED.items():
    _refusing(
        _name, _summary, RuntimeError,
        f"{_name} expected {_layout} layout but got Strided: all tensors of Candelabra are strided, there are no sparse ones",
    )  # fmt: skip
for _kind, _names in _MISSING.items():
    for _name, _summary in _names.items():
        _refusing(
            _name, _summary, NotImplementedError,
            f"{_name}(): Candelabra has no {_kind}; tensors are strided, of the dtypes that candelabra.dtype names",
        )  # fmt: skip


def _false(name: str, what: str) -> None:
    def attribute(self: Tensor) -> bool:
        return False

    attribute.__doc__ = f"False: {what}."
    PROPERTIES[name] = property(attribute, doc=attribute.__doc__)


for _name in ("is_sparse_csr", "is_nested", "is_mkldnn"):
    _false(_name, "tensors are strided")


def _of_device_type(device_type: str) -> None:
    def attribute(self: Tensor) -> bool:
        return self.device.type == device_type

    attribute.__doc__ = f"Whether the tensor is on the device type ``{device_type}``."
    PROPERTIES[f"is_{device_type}"] = property(attribute, doc=attribute.__doc__)


for _name in ("xla", "xpu", "mps", "ipu", "maia", "mtia", "vulkan"):
    _of_device_type(_name)


def _to_device_type(device_type: str) -> None:
    def method(self: Tensor, device: Device = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        place = f"{device_type}:{device}" if isinstance(device, int) else device_type if device is None else device
        return self.to(device=place, non_blocking=non_blocking, memory_format=memory_format)

    method.__name__ = method.__qualname__ = device_type
    method.__doc__ = f"""Copy to a device of the type ``{device_type}``; the tensor itself where it is there.

    Raises BackendError where no backend of that device type is installed.
    """
    function(package=False)(method)


for _name in ("xpu", "ipu", "mtia", "hpu"):
    _to_device_type(_name)


@function(package=False)
def to_dense(self: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor itself, which is dense, or a copy in another dtype.

    Parameters
    ----------
    dtype : dtype, optional
        Of the result.
    masked_grad : bool, optional
        Only used for sparse tensors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2).to_dense(candelabra.int64)
    tensor([1, 1])
    """
    return self if dtype is None else self.to(dtype)


@function(package=False)
def dequantize(self: Tensor) -> Tensor:
    """Return the tensor as float32: there are no quantized tensors.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, dtype=candelabra.float64).dequantize().dtype
    candelabra.float32
    """
    return self.to(_C.float32)


@function(package=False)
def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions: 0.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, 3).sparse_dim()
    0
    """
    return 0


@function(package=False)
def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: all.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.ones(2, 3).dense_dim()
    2
    """
    return self.ndim
