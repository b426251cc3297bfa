"""Jacobians and Hessians of functions, and their products with vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import Tensor

from .walks import grad

if TYPE_CHECKING:
    from collections.abc import Callable


def _tuple(values: Any, argument: str, function: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return the values as a tuple of tensors, and whether they were a sequence."""
    several = not isinstance(values, Tensor)
    made = tuple(values) if several else (values,)
    for number, value in enumerate(made):
        if not isinstance(value, Tensor):
            where = f"value at index {number}" if several else f"given {argument}"
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a tuple of Tensors but the {where} has type {type(value)}."
            )
    return several, made


def _prepared(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """Return the tensors to differentiate with respect to.

    With `create_graph` they stay on the caller's tape.
    """
    if create_graph:
        return tuple(
            value.view_as(value) if value.requires_grad else value.detach().requires_grad_() for value in inputs
        )
    return tuple(value.detach().requires_grad_() for value in inputs)


def _vectors(v: Any, like: tuple[Tensor, ...], several: bool, what: str, function: str) -> tuple[Tensor, ...]:
    """Check the vectors of a product with `like`, which was a sequence if `several` is set. None
    means ones, which requires a single element.
    """
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            where = "input to the user-provided function is" if what == "input" else "user-provided function returns"
            raise RuntimeError(f"The vector v can only be None if the {where} a single Tensor with a single element.")
        return (candelabra.ones_like(like[0].detach()),)
    _, made = _tuple(v, "v", function)
    if len(made) != len(like):
        if not several:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(made)}.")
    for number, (vector, value) in enumerate(zip(made, like, strict=True)):
        if vector.shape != value.shape:
            where = f"Entry {number} in " if several else ""
            raise RuntimeError(f"{where}v has invalid size: should be {value.shape} but got {vector.shape}.")
    return made


#: What strict mode says of a tensor that does not require gradients, by what the tensor is.
_CONSTANT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a differentiable "
    "manner from the input when running in strict mode.",
    "grad_inputs": "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is not "
    "allowed in strict mode.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    "independent of the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and "
    "that the jacobian depends on the inputs (this would be violated by a linear function for example).",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the input. This is not allowed in "
    "strict mode. You should ensure that your function is thrice differentiable and that the hessian depends on the inputs.",
}
#: What strict mode says of a gradient that is missing, by how it is computed.
_MISSING = {
    "output": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "dual": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward "
    "trick to compute forward mode gradients. This is not allowed in strict mode.",
    "jacobian": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "hessian": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in "
    "strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}
#: The same of a gradient that cannot be differentiated, with `create_graph`.
_CONSTANT_RESULT = {
    "output": "jacobian",
    "dual": "jacobian",
    "jacobian": "hessian",
    "hessian": "hessian",
}


def _check_depends(tensors: tuple[Tensor, ...], strict: bool, what: str = "outputs") -> None:
    for number, tensor in enumerate(tensors if strict else ()):
        if not tensor.requires_grad:
            raise RuntimeError(_CONSTANT[what].format(number))


def _gradients(
    outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...], vectors: tuple[Tensor, ...], create_graph: bool, strict: bool,
    what: str = "output", differentiable: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the gradients of `inputs`, with zeros for unused inputs.

    Strict mode refuses unused inputs, and results that are constant if they have to be
    `differentiable`. The messages are those of `what`.
    """
    pairs = [(output, vector) for output, vector in zip(outputs, vectors, strict=True) if output.requires_grad]
    if not pairs:
        made: tuple[Tensor | None, ...] = (None,) * len(inputs)
    else:
        made = grad(
            [output for output, _ in pairs], inputs, [vector for _, vector in pairs], create_graph=create_graph, allow_unused=True,
        )  # fmt: skip
    full = []
    for number, (part, value) in enumerate(zip(made, inputs, strict=True)):
        if part is None:
            if strict:
                raise RuntimeError(_MISSING[what].format(number))
            part = candelabra.zeros_like(value.detach())
        elif strict and differentiable and not part.requires_grad:
            raise RuntimeError(
                f"The {_CONSTANT_RESULT[what]} of the user-provided function is independent of input {number}. This is not allowed in "
                "strict mode when create_graph=True."
            )
        full.append(part)
    return tuple(full)


def _finished(values: tuple[Tensor, ...], create_graph: bool, several: bool) -> Any:
    made = values if create_graph else tuple(value.detach() for value in values)
    return made if several else made[0]


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute the product of a vector and the Jacobian of `func`.

    Parameters
    ----------
    func
        Takes tensors and returns a tensor or a tuple of tensors.
    inputs
        A tensor or a tuple of tensors.
    v
        The vector, with the shapes of the outputs. Optional if there is one output with one
        element.
    create_graph
        Whether the results can be differentiated.
    strict
        Whether an output that does not depend on an input raises an error. If False, its
        derivative is zero.

    Returns
    -------
    tuple
        The outputs of `func`, and the product, with the shapes of `inputs`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.functional.vjp(lambda x: x**2, candelabra.tensor([1.0, 2.0]), candelabra.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with candelabra.enable_grad():
        several, given = _tuple(inputs, "inputs", "vjp")
        given = _prepared(given, create_graph)
        several_outputs, outputs = _tuple(func(*given), "outputs of the user-provided function", "vjp")
        _check_depends(outputs, strict)
        vectors = _vectors(v, outputs, several_outputs, "output", "vjp")
        made = _gradients(outputs, given, vectors, create_graph, strict, differentiable=create_graph)
    return _finished(outputs, create_graph, several_outputs), _finished(made, create_graph, several)


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute the product of the Jacobian of `func` and a vector.

    Uses double backward: the product of :func:`vjp` is linear in its vector, and this is the
    derivative with respect to that vector.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As in :func:`vjp`.
    v
            The vector, with the shapes of `inputs`. Optional if there is one input with one
            element.

    Returns
    -------
    tuple
        The outputs of `func`, and the product, with the shapes of the outputs.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.functional.jvp(lambda x: x**2, candelabra.tensor([1.0, 2.0]), candelabra.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    with candelabra.enable_grad():
        several, given = _tuple(inputs, "inputs", "jvp")
        vectors = _vectors(v, given, several, "input", "jvp")
        given = _prepared(given, create_graph)
        several_outputs, outputs = _tuple(func(*given), "outputs of the user-provided function", "jvp")
        _check_depends(outputs, strict)
        dual = tuple(candelabra.zeros_like(output.detach()).requires_grad_() for output in outputs)
        first = _gradients(outputs, given, dual, True, strict)
        _check_depends(first, strict, "grad_inputs")
        made = _gradients(first, dual, vectors, create_graph, strict, "dual", create_graph)
    return _finished(outputs, create_graph, several_outputs), _finished(made, create_graph, several_outputs)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the Jacobian of `func`.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As in :func:`vjp`.
    vectorize
        Whether to compute all rows (or columns) at once, with :func:`candelabra.vmap`.
    strategy
        ``"reverse-mode"`` computes rows; ``"forward-mode"`` computes columns and requires
        `vectorize`. Forward mode is faster if there are more outputs than inputs.

    Returns
    -------
    Tensor or tuple
        For one output and one input, a tensor whose shape is the output's shape followed by the
        input's. Otherwise (nested) tuples of such tensors, indexed by output first.

    Raises
    ------
    ValueError
        If `strategy` is not one of the two.
    NotImplementedError
        If forward mode is used without `vectorize`, or with `create_graph`.
    RuntimeError
        If both `strict` and `vectorize` are set.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.functional.jacobian(lambda x: x**2, candelabra.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy("jacobian", strategy, create_graph, strict, vectorize)
    if strategy == "forward-mode":
        several, given = _tuple(inputs, "inputs", "jacobian")
        return _forward_jacobian(func, tuple(value.detach() for value in given), several)
    with candelabra.enable_grad():
        several, given = _tuple(inputs, "inputs", "jacobian")
        given = _prepared(given, create_graph)
        several_outputs, outputs = _tuple(func(*given), "outputs of the user-provided function", "jacobian")
        _check_depends(outputs, strict)
        rows = _vectorized_jacobian if vectorize else _jacobian_of
        blocks = [rows(number, output, given, create_graph, strict) for number, output in enumerate(outputs)]
    made = tuple(_finished(block, create_graph, several) for block in blocks)
    return made if several_outputs else made[0]


def _jacobian_of(
    number: int, output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    rows: list[tuple[Tensor, ...]] = []
    for position in range(output.numel()):
        vector = candelabra.zeros(output.numel(), dtype=output.dtype, device=output.device)
        vector[position] = 1
        rows.append(_row(number, output, inputs, vector.reshape(output.shape), create_graph, strict))
    if not rows:
        return tuple(value.new_zeros((*output.shape, *value.shape)) for value in inputs)
    return tuple(
        candelabra.stack(column).reshape((*output.shape, *value.shape))
        for column, value in zip(zip(*rows, strict=True), inputs, strict=True)
    )


def _row(
    number: int, output: Tensor, inputs: tuple[Tensor, ...], vector: Tensor, create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """Return the gradients of an element of output `number`."""
    unused = (None,) * len(inputs)
    parts = (
        grad(output, inputs, vector, retain_graph=True, create_graph=create_graph, allow_unused=True)
        if output.requires_grad
        else unused
    )
    row = []
    for at, (part, value) in enumerate(zip(parts, inputs, strict=True)):
        if strict and part is None:
            raise RuntimeError(
                f"Output {number} of the user-provided function is independent of input {at}. This is not allowed in strict mode."
            )
        if strict and create_graph and part is not None and not part.requires_grad:
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {at}. This is not allowed in strict mode when "
                "create_graph=True."
            )
        row.append(candelabra.zeros_like(value.detach()) if part is None else part)
    return tuple(row)


def _vectorized_jacobian(
    number: int, output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """Compute all rows in one batched backward pass."""
    count = output.numel()
    if not count or not output.requires_grad:
        return tuple(value.new_zeros((*output.shape, *value.shape)) for value in inputs)
    basis = candelabra.eye(count, dtype=output.dtype, device=output.device).reshape((count, *output.shape))
    made = grad(
        output, inputs, basis, retain_graph=True, create_graph=create_graph, allow_unused=True, is_grads_batched=True
    )
    return tuple(
        value.new_zeros((*output.shape, *value.shape)) if part is None else part.reshape((*output.shape, *value.shape))
        for part, value in zip(made, inputs, strict=True)
    )


def _forward_jacobian(func: Callable[..., Any], inputs: tuple[Tensor, ...], several: bool) -> Any:
    from .func import jacfwd

    made = jacfwd(func, argnums=tuple(range(len(inputs))))(*inputs)
    if several:
        return made
    nested = bool(made) and isinstance(made[0], tuple)
    return tuple(row[0] for row in made) if nested else made[0]


def _check_strategy(function: str, strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    name = "strategy" if function == "jacobian" else "outer_jacobian_strategy"
    if strategy not in ("forward-mode", "reverse-mode"):
        raise ValueError(
            f'{function}: expected {name} to be either "forward-mode" or "reverse-mode", but got {strategy!r}'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                f'candelabra.autograd.functional.{function}: `create_graph=True` and `{name}="forward-mode"` are not supported together '
                f'(yet). Please either set `create_graph=False` or `{name}="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
            )
    if strict and vectorize:
        raise RuntimeError(
            f"candelabra.autograd.functional.{function}: `strict=True` and `vectorized=True` are not supported together. Please either set "
            "`strict=False` or `vectorize=False`."
        )


def _scalar(func: Callable[..., Any], function: str, strict: bool) -> Callable[..., Tensor]:
    """Wrap a function so that it must return a single element, which depends on the inputs in
    strict mode.
    """

    def checked(*arguments: Tensor) -> Tensor:
        several, outputs = _tuple(func(*arguments), "outputs of the user-provided function", function)
        _check_depends(outputs, strict)
        output = outputs[0] if outputs else None
        if several or output is None:
            raise RuntimeError(f"The function given to {function} should return a single Tensor")
        if output.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {function} should contain a single element"
            )
        return output.reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the Hessian of a function that returns a single element.

    Parameters
    ----------
    func, inputs, create_graph, strict, vectorize
        As in :func:`jacobian`.
    outer_jacobian_strategy
            The `strategy` for the Jacobian of the gradient.

    Returns
    -------
    Tensor or tuple
        For one input, a tensor with the input's shape twice; for several, a tuple of tuples.

    Raises
    ------
    RuntimeError
        If the function does not return a single element.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.functional.hessian(lambda x: (x**3).sum(), candelabra.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, _ = _tuple(inputs, "inputs", "hessian")
    checked = _scalar(func, "hessian", strict)
    _check_strategy("hessian", outer_jacobian_strategy, create_graph, strict, vectorize)
    if outer_jacobian_strategy == "forward-mode":
        from .func import jacrev

        _, given = _tuple(inputs, "inputs", "hessian")
        numbers = tuple(range(len(given)))
        inner = jacrev(checked, argnums=numbers)
        made = _forward_jacobian(inner, tuple(value.detach() for value in given), True)
        return made if several else made[0][0]

    def gradient(*arguments: Tensor) -> Any:
        made = jacobian(checked, arguments, create_graph=True)
        _check_depends(made, strict, "jacobian")
        return made if several else made[0]

    return jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute the product of a vector and the Hessian of `func`.

    Parameters
    ----------
    func
        Returns a tensor with one element.
    inputs, create_graph, strict
        As in :func:`vjp`.
    v
        The vector, with the shapes of `inputs`.

    Returns
    -------
    tuple
        The output of `func`, and the product, with the shapes of `inputs`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.functional.vhp(lambda x: (x**3).sum(), candelabra.tensor([1.0, 2.0]), candelabra.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with candelabra.enable_grad():
        several, given = _tuple(inputs, "inputs", "vhp")
        vectors = _vectors(v, given, several, "input", "vhp")
        given = _prepared(given, create_graph)
        output = _scalar(func, "vhp", strict)(*given)
        first = _gradients((output,), given, (candelabra.ones_like(output.detach()),), True, strict)
        _check_depends(first, strict, "jacobian")
        made = _gradients(first, given, vectors, create_graph, strict, "jacobian", create_graph)
    return _finished((output,), create_graph, False), _finished(made, create_graph, several)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Compute the product of the Hessian of `func` and a vector.

    The product is computed as the directional derivative of the gradient. It equals :func:`vhp`
    where the second derivatives are continuous, because the Hessian is then symmetric. Parameters
    and return value are those of :func:`vhp`.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.autograd.functional.hvp(lambda x: (x**3).sum(), candelabra.tensor([1.0, 2.0]), candelabra.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with candelabra.enable_grad():
        several, given = _tuple(inputs, "inputs", "hvp")
        vectors = _vectors(v, given, several, "input", "hvp")
        given = _prepared(given, create_graph)
        output = _scalar(func, "hvp", strict)(*given)
        first = _gradients((output,), given, (candelabra.ones_like(output.detach()),), True, strict)
        _check_depends(first, strict, "jacobian")
        shadows = tuple(candelabra.zeros_like(part.detach()).requires_grad_() for part in first)
        second = _gradients(first, given, shadows, True, strict, "jacobian")
        _check_depends(second, strict, "hessian")
        made = _gradients(second, shadows, vectors, create_graph, strict, "hessian", create_graph)
    return _finished((output,), create_graph, False), _finished(made, create_graph, several)
