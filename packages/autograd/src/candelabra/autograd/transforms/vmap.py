"""vmap: vectorize a function over a batch."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from ..functorch_layers import entered, layer_at, outside
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
        size, dims, leaves, structure = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return _flat_vmap(func, size, dims, leaves, structure, out_dims, randomness, kwargs)
        chunks = []
        state = candelabra.get_rng_state() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if state is not None:
                candelabra.set_rng_state(state)
            count = min(chunk_size, size - start)
            part = [
                leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)
            ]
            chunks.append(_flat_vmap(func, count, dims, part, structure, out_dims, randomness, kwargs))
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


# Libraries whose containers vmap has to map as a whole replace the next three functions, by
# PyTorch's names in torch._functorch.vmap.


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
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


def _create_batched_inputs(
    flat_in_dims: list[int | None], flat_args: list[Any], vmap_level: int, args_spec: Structure
) -> Any:
    """Return the arguments with tensors of the layer of a level."""
    layer = vmap_layer_of(vmap_level)
    inside = [leaf if dim is None else layer.wrap(leaf, dim) for leaf, dim in zip(flat_args, flat_in_dims, strict=True)]
    return unflatten(inside, args_spec)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """Return the results with the batches of the layer of a level in `out_dims`."""
    layer = vmap_layer_of(vmap_level)
    results, structure = flatten(batched_outputs)
    places = broadcast_prefix(out_dims, structure)
    if places is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has "
            f"structure {flatten(out_dims)[1]} but outputs has structure {structure}."
        )
    with outside():
        made = [_result(func, layer, result, place) for result, place in zip(results, places, strict=True)]
    return unflatten(made, structure)


def vmap_layer_of(level: int) -> VmapLayer:
    """Return the active layer of a level.

    Raises
    ------
    RuntimeError
        If the level is not that of a vmap.
    """
    layer = layer_at(level)
    if not isinstance(layer, VmapLayer):
        raise RuntimeError(f"there is no vmap of the level {level}")
    return layer


def _flat_vmap(
    func: Callable[..., Any], size: int, dims: list[int | None], leaves: list[Any], structure: Structure, out_dims: Any, randomness: str,
    kwargs: dict[str, Any],
) -> Any:  # fmt: skip
    with entered(VmapLayer(size, randomness)) as layer:
        inputs = _create_batched_inputs(dims, leaves, layer.number, structure)
        return _unwrap_batched(func(*inputs, **kwargs), out_dims, layer.number, size, func)


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
