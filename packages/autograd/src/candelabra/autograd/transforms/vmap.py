"""vmap: vectorize a function over a batch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from ..functorch_layers import entered
from ..structure import broadcast_prefix, flatten, unflatten
from .vmap_layer import VmapLayer, out_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..structure import Structure


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Vectorize a function over a batch dimension.

    Parameters
    ----------
    func
        Takes tensors, nested containers of tensors and other values. Returns a tensor or nested
        containers of tensors.
    in_dims
        The batch dimension of each argument, in the structure of the arguments, or one number
        for all. None means that an argument has no batch. Keyword arguments have no batch.
    out_dims
        The batch dimension of each result, in the structure of the results, or one number for
        all. None means that a result has no batch.
    randomness
        ``"error"`` forbids random operators; with ``"same"`` all entries share the random
        numbers; with ``"different"`` each entry draws its own.
    chunk_size
        Number of entries to compute at once; all by default.

    Returns
    -------
    Callable
        Takes the arguments of `func`, with batches.

    Raises
    ------
    ValueError
        Raised by the returned function if `in_dims` or `out_dims` do not match, or if batch
        sizes differ.
    RuntimeError
        Raised by the returned function if `func` reads the value of a batched tensor. Also
        raised if `func` draws random numbers in mode ``"error"``.

    Examples
    --------
    >>> import candelabra
    >>> rows = candelabra.arange(6.0).reshape(3, 2)
    >>> candelabra.vmap(candelabra.dot)(rows, rows)
    tensor([ 1., 13., 41.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = _flatten_batched(func, in_dims, args)
        if chunk_size is None or chunk_size >= size:
            return _mapped(func, size, dims, leaves, structure, out_dims, randomness, kwargs)
        chunks = []
        state = candelabra.get_rng_state() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if state is not None:
                candelabra.set_rng_state(state)
            count = min(chunk_size, size - start)
            part = [
                leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)
            ]
            chunks.append(_mapped(func, count, dims, part, structure, out_dims, randomness, kwargs))
        _, results = flatten(chunks[0])
        places = broadcast_prefix(out_dims, results) or []
        columns = zip(*(flatten(chunk)[0] for chunk in chunks), strict=True)
        return unflatten(
            [
                parts[0] if dim is None else candelabra.cat(parts, dim)
                for parts, dim in zip(columns, places, strict=True)
            ],
            results,
        )

    return batched


def _flatten_batched(
    func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]
) -> tuple[int, list[int | None], list[Any], Structure]:
    """Return the batch size, and the dimensions, leaves and structure of the arguments."""
    call = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
            "inputs. The latter is unsupported."
        )
    leaves, structure = flatten(args)
    given = broadcast_prefix(in_dims, structure)
    if given is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure {flatten(in_dims)[1]} but inputs has "
            f"structure {structure}."
        )
    dims: list[int | None] = []
    sizes: list[int] = []
    for leaf, dim in zip(leaves, given, strict=True):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, please "
                "use None as the respective in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.ndim} so expected in_dim to "
                f"satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        dims.append(dim % leaf.ndim)
        sizes.append(leaf.shape[dim])
    if not sizes:
        raise ValueError(f"{call}: at least one input has to be mapped over: all in_dims are None")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, structure


def _mapped(
    func: Callable[..., Any], size: int, dims: list[int | None], leaves: list[Any], structure: Structure, out_dims: Any, randomness: str,
    kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    layer = VmapLayer(size, randomness)
    with entered(layer):
        inside = [leaf if dim is None else layer.wrap(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
        output = func(*unflatten(inside, structure), **kwargs)
    results, result_structure = flatten(output)
    places = broadcast_prefix(out_dims, result_structure)
    if places is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
            f"structure {flatten(out_dims)[1]} but outputs has structure {result_structure}."
        )
    layer.alive = True
    try:
        made = [_result(func, layer, result, place) for result, place in zip(results, places, strict=True)]
    finally:
        layer.alive = False
    return unflatten(made, result_structure)


def _result(func: Callable[..., Any], layer: VmapLayer, result: Any, place: Any) -> Any:
    if place is None:
        if layer.is_batched(result):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return layer.unwrap(result)
    if not isinstance(result, Tensor):
        raise ValueError(
            f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(result)}. Did you mean to set out_dims= to "
            "None for output?"
        )
    if not isinstance(place, int):
        raise ValueError(f"vmap({_name(func)}, ..., out_dims={place}): out_dims has to hold integers or None")
    ndim = result.ndim + 1
    if not -ndim <= place < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {place})")
    return out_of(layer, result, place % ndim)
