"""Forward-mode transforms: Jacobian-vector products, and transforms that combine both modes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from ..functorch_layers import differentiable, entered, outside
from ..structure import flatten, map_leaves, unflatten
from ..transforms.jvp_layer import JvpLayer, forward_enabled
from ..transforms.vmap import vmap
from .reverse import basis_of, jacrev, picked, replaced, require_real, vjp

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reverse import Argnums


def _check_pairs(primals: list[Any], tangents: list[Any]) -> None:
    """Check that primals and tangents are tensors of the same sizes."""
    for what, values in (("primals", primals), ("tangents", tangents)):
        if not values:
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to have at least one Tensor")
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {what} to contain only Tensors, got unsupported type {type(value)}"
                )
    for value, direction in zip(primals, tangents, strict=True):
        if value.shape != direction.shape:
            raise RuntimeError(
                "jvp(f, primals, tangents): Expected each tangent to have the sizes of its primal, got "
                f"{list(direction.shape)} for {list(value.shape)}"
            )


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute the value of a function and a Jacobian-vector product.

    Parameters
    ----------
    func
        Returns a tensor or nested containers of tensors. With `has_aux`, it returns a pair of
        that and any other value.
    primals
        The arguments, as a tuple of tensors or nested containers of tensors.
    tangents
        The vector, with the structure and shapes of `primals`.
    strict
        Whether a result that does not depend on the arguments raises an error. If False, its
        derivative is zero.
    has_aux
        Whether `func` returns a pair.

    Returns
    -------
    tuple
        The value and the product; with `has_aux` also the auxiliary value.

    Raises
    ------
    RuntimeError
        If `primals` and `tangents` differ in structure or shapes.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.func.jvp(lambda x: x**2, (candelabra.tensor([1.0, 2.0]),), (candelabra.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals). Got {type(primals)}"
        )
    flat, structure = flatten(primals)
    directions, given = flatten(tangents)
    if structure != given:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with structure {given}"
        )
    _check_pairs(flat, directions)
    layer = JvpLayer()
    with entered(layer), forward_enabled(True):
        inputs = [
            layer.wrap(value, direction if direction.dtype is value.dtype else _converted(direction, value))
            for value, direction in zip(flat, directions, strict=True)
        ]
        output = func(*unflatten(inputs, structure))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
        outputs, output_structure = flatten(output)
        values, moved = [], []
        for part in outputs:
            if not isinstance(part, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected f to return only Tensors, got unsupported type {type(part)}"
                )
            value, tangent = layer.unwrap(part), layer.tangent_of(part)
            if tangent is None:
                if strict:
                    raise RuntimeError(
                        "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
                        "strict=True."
                    )
                with outside():
                    tangent = candelabra.zeros_like(value)
            values.append(value)
            moved.append(tangent)
        aux = map_leaves(layer.unwrap, aux)
    made = (unflatten(values, output_structure), unflatten(moved, output_structure))
    return (*made, aux) if has_aux else made


def _converted(direction: Tensor, value: Tensor) -> Tensor:
    with outside():
        return direction.to(value.dtype)


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of `func` in forward mode.

    All columns are computed at once, with :func:`vmap`.

    Parameters
    ----------
    func, argnums, has_aux
        As in :func:`jacrev`.
    randomness
            The `randomness` argument of :func:`vmap`, for random numbers drawn by `func`.

    Returns
    -------
    Callable
        As for :func:`jacrev`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.func.jacfwd(lambda x: x**2)(candelabra.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def computed(*args: Any, **kwargs: Any) -> Any:
        chosen = picked(args, argnums)
        flat, structure = flatten(chosen if isinstance(argnums, tuple) else (chosen,))
        require_real("jacfwd", "inputs", flat)
        for value in flat:
            if not differentiable(value):
                raise ValueError(
                    f"Expected primal to be floating point or complex, but got: {getattr(value, 'dtype', type(value))}"
                )

        def chosen_only(*leaves: Any) -> Any:
            values = unflatten(leaves, structure)
            return func(*replaced(args, argnums, values if isinstance(argnums, tuple) else values[0]), **kwargs)

        def push(basis: list[Tensor]) -> Any:
            made = jvp(chosen_only, tuple(flat), tuple(basis), has_aux=has_aux)
            return (made[1], made[2]) if has_aux else made[1]

        columns = sum(value.numel() for value in flat)
        if columns == 0:
            value = chosen_only(*flat)
            value = value[0] if has_aux else value
            moved, aux = map_leaves(lambda part: part.new_zeros((0, *part.shape)), value), None
        elif has_aux:
            moved, aux = vmap(push, out_dims=(0, None), randomness=randomness)(basis_of(flat))
        else:
            moved, aux = vmap(push, randomness=randomness)(basis_of(flat)), None
        blocks, output_structure = flatten(moved)
        require_real("jacfwd", "outputs", blocks)
        by_output = []
        for block in blocks:
            # The columns come first here; in a Jacobian the dimensions of the result do.
            parts, start = [], 0
            for value in flat:
                count = value.numel()
                part = block.narrow(0, start, count).movedim(0, -1)
                parts.append(part.reshape((*part.shape[:-1], *value.shape)))
                start += count
            entry = unflatten(parts, structure)
            by_output.append(entry if isinstance(argnums, tuple) else entry[0])
        made = unflatten(by_output, output_structure)
        return (made, aux) if has_aux else made

    return computed


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of `func`, forward mode over reverse mode.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.func.hessian(lambda x: (x**3).sum())(candelabra.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Compute the value of a function, and its linear approximation at this point.

    The function runs once. Each call of the linear function transposes its vjp.

    Parameters
    ----------
    func
        Returns a tensor or nested containers of tensors.
    primals
        The arguments: tensors or nested containers of tensors.

    Returns
    -------
    tuple
        The value, and a function that maps one tangent for each of `primals` to the tangent of
        the value.

    Examples
    --------
    >>> import candelabra
    >>> value, push = candelabra.func.linearize(candelabra.sin, candelabra.zeros(2))
    >>> push(candelabra.ones(2))
    tensor([1., 1.])
    """
    value, pull = vjp(func, *primals)
    outputs, output_structure = flatten(value)
    flat, structure = flatten(primals)

    def push(*tangents: Any) -> Any:
        directions, given = flatten(tangents)
        if given != structure:
            raise RuntimeError(
                f"Expected the tangents {given} to have the same argspec as the primals {structure}. Got tangents with a different structure."
            )
        for number, (direction, primal) in enumerate(zip(directions, flat, strict=True)):
            if direction.shape != primal.shape:
                raise RuntimeError(
                    f"Expected tangent {number} in flattened pytree to have the same shape as the primal: got {list(direction.shape)}, "
                    f"expected {list(primal.shape)}."
                )
            if direction.dtype is not primal.dtype or direction.device != primal.device:
                raise RuntimeError(
                    f"Expected tangent {number} in flattened pytree to have the same dtype and device as the primal: got "
                    f"{direction.dtype} on {direction.device}, expected {primal.dtype} on {primal.device}."
                )
        shadows = unflatten([candelabra.zeros_like(output) for output in outputs], output_structure)
        _, transposed = vjp(lambda cotangents: pull(cotangents), shadows)
        (made,) = transposed(unflatten(directions, structure))
        return made

    return value, push
