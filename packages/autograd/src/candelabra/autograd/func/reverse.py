"""Reverse-mode transforms: gradients, vector-Jacobian products and Jacobians."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from ..functorch_layers import entered, outside
from ..structure import flatten, map_leaves, unflatten
from ..transforms.grad_layer import GradLayer
from ..transforms.vmap import vmap
from ..walks import grad as walk_back

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..structure import Structure

    Argnums = int | tuple[int, ...]


def checked_argnums(argnums: Any, count: int) -> tuple[int, ...]:
    """Return argument numbers as nonnegative integers.

    Raises
    ------
    RuntimeError
        If there are none, if one is repeated, or if an argument does not exist.
    """

    def checked(number: Any) -> int:
        if not isinstance(number, int) or isinstance(number, bool):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
        return number % count

    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        made = tuple(map(checked, argnums))
        if len(set(made)) != len(made):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")
        return made
    if not isinstance(argnums, int):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    return (checked(argnums),)


def picked(arguments: Sequence[Any], argnums: Any) -> Any:
    """Return the arguments that `argnums` selects; a tuple if `argnums` is a tuple."""
    numbers = checked_argnums(argnums, len(arguments))
    return tuple(arguments[number] for number in numbers) if isinstance(argnums, tuple) else arguments[numbers[0]]


def replaced(arguments: Sequence[Any], argnums: Any, values: Any) -> tuple[Any, ...]:
    """Return the arguments with those that `argnums` selects replaced by `values`."""
    made = list(arguments)
    numbers = checked_argnums(argnums, len(arguments))
    for number, value in zip(numbers, values if isinstance(argnums, tuple) else (values,), strict=True):
        made[number] = value
    return tuple(made)


def check_tensors(leaves: list[Any], what: str) -> None:
    """Raise if a leaf is not a tensor."""
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{what}: expected all inputs that are differentiated to be tensors, got {type(leaf)}")


def gradients_of(
    layer: GradLayer,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor | None],
    retain: bool,
) -> list[Tensor]:
    """Run a backward pass on a layer's tape; unused inputs get zeros.

    The results are tensors of the next outer layer.
    """
    pairs = [(output, vector) for output, vector in zip(outputs, vectors, strict=True) if output.requires_grad]
    made: Sequence[Tensor | None] = [None] * len(inputs)
    if pairs and inputs:
        made = walk_back(
            [output for output, _ in pairs], inputs, [vector for _, vector in pairs], retain_graph=retain, create_graph=False,
            allow_unused=True,
        )  # fmt: skip
    results = []
    for part, of in zip(made, inputs, strict=True):
        if part is None:
            with outside():
                results.append(candelabra.zeros_like(layer.unwrap(of).detach()))
        else:
            results.append(layer.unwrap(part))
    return results


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes the gradient of `func` and its value.

    Parameters
    ----------
    func
        Returns a 0-D tensor. With `has_aux`, it returns a pair of that and any other value.
    argnums
        The number of the argument to differentiate with respect to, or a tuple of numbers. The
        arguments are tensors or nested containers of tensors.
    has_aux
        Whether `func` returns a pair.

    Returns
    -------
    Callable
        Takes the arguments of `func` and returns ``(gradient, value)``; with `has_aux`
        ``(gradient, (value, aux))``.

    Raises
    ------
    RuntimeError
        Raised by the returned function if `func` returns something else, or if `argnums` is
        invalid.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.func.grad_and_value(lambda x: (x**2).sum())(candelabra.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def computed(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        layer = GradLayer()
        chosen, structure = flatten(picked(args, argnums))
        check_tensors(chosen, "grad_and_value(f)(*args)")
        with entered(layer), candelabra.enable_grad():
            inputs = [layer.variable(value) for value in chosen]
            output = func(*replaced(args, argnums, unflatten(inputs, structure)), **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if has_aux is True"
                    )
                output, aux = output
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a tensor, got type {type(output)}"
                )
            if output.ndim != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            gradient = unflatten(gradients_of(layer, [output], inputs, [None], False), structure)
            value = layer.unwrap(output)
            aux = map_leaves(layer.unwrap, aux)
        return gradient, (value, aux) if has_aux else value

    return computed


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of `func`.

    Parameters
    ----------
    func, argnums, has_aux
        As in :func:`grad_and_value`.

    Returns
    -------
    Callable
        Takes the arguments of `func` and returns the gradient; with `has_aux` ``(gradient,
        aux)``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.func import grad
    >>> grad(grad(lambda x: x**3))(candelabra.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def computed(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return computed


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Compute the value of a function, and return its vector-Jacobian product function.

    Parameters
    ----------
    func
        Returns a tensor or nested containers of tensors. With `has_aux`, it returns a pair of
        that and any other value.
    primals
        The arguments: tensors or nested containers of tensors.
    has_aux
        Whether `func` returns a pair.

    Returns
    -------
    tuple
        The value, and a function that maps a cotangent of the value to a tuple of gradients,
        one for each of `primals`. With `has_aux`, also the auxiliary value.

    Examples
    --------
    >>> import candelabra
    >>> value, pull = candelabra.func.vjp(candelabra.sin, candelabra.zeros(2))
    >>> pull(candelabra.ones(2))
    (tensor([1., 1.]),)
    """
    layer = GradLayer()
    flat, structure = flatten(primals)
    check_tensors(flat, "vjp(f, *primals)")
    with entered(layer), candelabra.enable_grad():
        inputs = [layer.variable(value) for value in flat]
        output = func(*unflatten(inputs, structure))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
        outputs, output_structure = flatten(output)
        if not outputs:
            raise RuntimeError(
                f"vjp(f, *primals): Expected f to be a function that has non-empty output (got output = {output!r})"
            )
        for part in outputs:
            if not isinstance(part, Tensor):
                raise RuntimeError(
                    f"vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(part)}"
                )
        value = unflatten([layer.unwrap(part) for part in outputs], output_structure)
        aux = map_leaves(layer.unwrap, aux)
    outputs = [part if layer.owns(part) else layer.wrap(part) for part in outputs]

    def pull_back(
        cotangents: Any, retain_graph: bool | None = None, create_graph: bool | None = None
    ) -> tuple[Any, ...]:
        return _pulled_back(layer, inputs, structure, outputs, output_structure, cotangents, retain_graph is not False)

    return (value, pull_back, aux) if has_aux else (value, pull_back)


def _pulled_back(
    layer: GradLayer, inputs: Sequence[Tensor], structure: Structure, outputs: Sequence[Tensor], output_structure: Structure, cotangents: Any,
    retain: bool,
) -> tuple[Any, ...]:  # fmt: skip
    vectors, given = flatten(cotangents)
    if given != output_structure:
        raise RuntimeError(
            "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
            f"cotangents: {given}, primal output: {output_structure}"
        )
    before = layer.outer_mode
    layer.outer_mode = candelabra.is_grad_enabled()
    try:
        with entered(layer):
            made = gradients_of(layer, outputs, inputs, [layer.lift(vector) for vector in vectors], retain)
    finally:
        layer.outer_mode = before
    return unflatten(made, structure)


def basis_of(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return, for each tensor, its columns of the joint identity matrix: (total, *shape)."""
    counts = [tensor.numel() for tensor in tensors]
    total = sum(counts)
    made = []
    start = 0
    for tensor, count in zip(tensors, counts, strict=True):
        block = candelabra.zeros(total, count, dtype=tensor.dtype, device=tensor.device)
        if count:
            block.narrow(0, start, count).diagonal().fill_(1)
        made.append(block.reshape((total, *tensor.shape)))
        start += count
    return made


def split_rows(block: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Split the first dimension of `block`, one row per element, among the tensors."""
    made = []
    start = 0
    for tensor in tensors:
        count = tensor.numel()
        made.append(block.narrow(0, start, count).reshape((*tensor.shape, *block.shape[1:])))
        start += count
    return made


def require_real(name: str, what: str, values: list[Any]) -> None:
    """Raise if one of the `values`, which are `what` of a Jacobian, is complex."""
    for number, value in enumerate(values):
        if isinstance(value, Tensor) and value.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {number}"
            )


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that computes the Jacobian of `func` in reverse mode.

    All rows are computed at once, with :func:`vmap`.

    Parameters
    ----------
    func
        Returns a tensor or nested containers of tensors. With `has_aux`, it returns a pair of
        that and any other value.
    argnums
        The number of the argument to differentiate with respect to, or a tuple of numbers.
    has_aux
        Whether `func` returns a pair.
    chunk_size
        Number of rows to compute at once; all by default.

    Returns
    -------
    Callable
        Takes the arguments of `func`. For each tensor of the value and each tensor of the
        argument, it returns a tensor whose shape is the value's followed by the argument's,
        nested in the structure of both. With `has_aux`, it returns a pair of that and the
        auxiliary value.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.func.jacrev(lambda x: x**2)(candelabra.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def computed(*args: Any, **kwargs: Any) -> Any:
        def chosen_only(*chosen: Any) -> Any:
            return func(*replaced(args, argnums, chosen if isinstance(argnums, tuple) else chosen[0]), **kwargs)

        selected = picked(args, argnums)
        primals = selected if isinstance(argnums, tuple) else (selected,)
        require_real("jacrev", "inputs", flatten(primals)[0])
        value, pull, *aux = vjp(chosen_only, *primals, has_aux=has_aux)
        outputs, output_structure = flatten(value)
        require_real("jacrev", "outputs", outputs)
        for output in outputs:
            if not output.is_floating_point():
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{output.dtype}"
                )
        rows = sum(output.numel() for output in outputs)
        inputs, input_structure = flatten(primals)
        if rows == 0:
            blocks = [part.new_zeros((0, *part.shape)) for part in inputs]
        else:
            basis = unflatten(basis_of(outputs), output_structure)
            blocks = flatten(vmap(pull, chunk_size=chunk_size)(basis))[0]
        by_input = [split_rows(block, outputs) for block in blocks]
        by_output = [
            unflatten([column[number] for column in by_input], input_structure) for number in range(len(outputs))
        ]
        made = unflatten([entry if isinstance(argnums, tuple) else entry[0] for entry in by_output], output_structure)
        return (made, aux[0]) if has_aux else made

    return computed
