"""Broadcasting of shapes and tensors, and grids of coordinates."""

from __future__ import annotations

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from candelabra._C import Tensor

_expand = OPERATORS["expand"]
_view = OPERATORS["view"]


def broadcast_shape(*shapes: Any) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to."""
    ndim = max((len(shape) for shape in shapes), default=0)
    sizes = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n != 1:
                if sizes[i] not in (1, n):
                    raise RuntimeError(
                        f"Shape mismatch: objects cannot be broadcast to a single shape: {', '.join(str(list(s)) for s in shapes)}"
                    )
                sizes[i] = n
    return tuple(sizes)


@function(method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """Return the shape that tensors of the given shapes broadcast to.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.broadcast_shapes((2, 1), (3,))
    candelabra.Size([2, 3])
    """
    return _C.Size(broadcast_shape(*((s,) if isinstance(s, int) else s for s in shapes)))


@function(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Expand tensors to the shape they broadcast to, without copies.

    Examples
    --------
    >>> import candelabra
    >>> [t.shape for t in candelabra.broadcast_tensors(candelabra.ones(2, 1), candelabra.ones(3))]
    [candelabra.Size([2, 3]), candelabra.Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    shape = broadcast_shape(*(t.shape for t in tensors))
    return tuple([_expand(t, shape) for t in tensors])


@function()
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Expand a tensor to a shape, without a copy.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.broadcast_to(candelabra.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """
    return _expand(input, size)


@function(method=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return grids of coordinates from one-dimensional tensors.

    Parameters
    ----------
    *tensors : Tensor
        One tensor per coordinate, of at most one dimension.
    indexing : str
        ``"ij"``: the first coordinate varies along dimension 0; ``"xy"``: along dimension 1, as in
        images. The default is ``"ij"``, with a warning.

    Returns
    -------
    tuple of Tensor
        Views of one shape, one per coordinate.

    Examples
    --------
    >>> import candelabra
    >>> rows, columns = candelabra.meshgrid(candelabra.arange(2), candelabra.arange(3), indexing="ij")
    >>> rows
    tensor([[0, 0, 0],
            [1, 1, 1]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        _C.warn("candelabra.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'candelabra.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for t in tensors:
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
        if t.ndim > 1:
            raise RuntimeError(
                f"candelabra.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of {t.ndim} dimensions"
            )
    swap = indexing == "xy" and len(tensors) > 1
    ordered = (tensors[1], tensors[0], *tensors[2:]) if swap else tensors
    shape = [t.numel() for t in ordered]
    grids = []
    for i, t in enumerate(ordered):
        line = _view(reshape(t, -1), [1] * i + [-1] + [1] * (len(ordered) - 1 - i))
        grids.append(_expand(line, shape))
    if swap:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


def _at_least(name: str, ndim: int, expand_to: Callable[[Tensor], Tensor]) -> Any:
    def at_least(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
            tensors = tuple(tensors[0])
        elif len(tensors) == 1:
            return expand_to(tensors[0])
        return tuple([expand_to(t) for t in tensors])

    at_least.__name__ = at_least.__qualname__ = name
    at_least.__doc__ = f"""View tensors of fewer than {ndim} dimensions as having {ndim}.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.{name}(candelabra.tensor(1)).ndim
    {ndim}
    """
    function(method=False)(at_least)
    return at_least


atleast_1d = _at_least("atleast_1d", 1, lambda t: _view(t, (1,)) if t.ndim == 0 else t)
atleast_2d = _at_least(
    "atleast_2d", 2, lambda t: _view(t, (1, 1)) if t.ndim == 0 else OPERATORS["unsqueeze"](t, 0) if t.ndim == 1 else t
)
atleast_3d = _at_least(
    "atleast_3d",
    3,
    lambda t: (
        _view(t, (1, 1, 1))
        if t.ndim == 0
        else OPERATORS["unsqueeze"](OPERATORS["unsqueeze"](t, 0), -1)
        if t.ndim == 1
        else OPERATORS["unsqueeze"](t, -1)
        if t.ndim == 2
        else t
    ),
)
