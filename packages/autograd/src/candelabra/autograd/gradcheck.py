"""Check gradients against finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from .leaves import computes_operators
from .walks import grad as compute_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class GradcheckError(RuntimeError):
    """Raised by :func:`gradcheck` and :func:`gradgradcheck` if a check fails.

    Examples
    --------
    >>> import candelabra
    >>> issubclass(candelabra.autograd.GradcheckError, RuntimeError)
    True
    """


def _differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _inputs(inputs: Any) -> tuple[Any, ...]:
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _outputs(value: Any) -> tuple[Tensor, ...]:
    values = (value,) if isinstance(value, Tensor) else tuple(value)
    return tuple(one for one in values if _differentiable(one) and one.requires_grad)


def _all_outputs(value: Any) -> tuple[Tensor, ...]:
    values = (value,) if isinstance(value, Tensor) else tuple(value)
    return tuple(one for one in values if _differentiable(one))


def _check_inputs(inputs: tuple[Any, ...]) -> None:
    if not any(isinstance(value, Tensor) and value.requires_grad for value in inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for number, value in enumerate(inputs):
        if not (isinstance(value, Tensor) and value.requires_grad):
            continue
        if value.dtype not in (candelabra.float64, candelabra.complex128):
            _C.warn(
                f"Input #{number} requires gradient and is not a double precision floating point or complex. This check will likely fail "
                "if all the inputs are not of double precision floating point or complex. ",
            )
        if any(stride == 0 and size > 1 for stride, size in zip(value.stride(), value.shape, strict=True)):
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )


def numerical_jacobian(fn: Callable[..., Any], inputs: tuple[Any, ...], target: Tensor, eps: float) -> list[Tensor]:
    """Compute the Jacobian of each output with respect to `target` by central differences.

    `target` is one of `inputs`. Its elements are changed in place and restored.

    Returns
    -------
    list of Tensor
        One tensor per output: rows are elements of `target`, columns are elements of the output.
        For complex `target`, dimension 1 holds the derivatives along the real and the imaginary
        axis.
    """
    # The data of a class that computes operators itself are where its `detach` says.
    data = target.detach() if computes_operators(target) else target.data
    memory = data.as_strided(target.shape, target.stride(), target.storage_offset())
    columns: list[list[Tensor]] = []
    directions = [1.0, 1j] if target.is_complex() else [1.0]
    for index in _positions(target.shape):
        element = memory[index]
        old = element.clone()
        made = []
        for direction in directions:
            element.copy_(old + eps * direction)
            above = [value.detach().clone() for value in _all_outputs(fn(*inputs))]
            element.copy_(old - eps * direction)
            below = [value.detach().clone() for value in _all_outputs(fn(*inputs))]
            element.copy_(old)
            _check_perturbed(above, below)
            made.append([(a - b).reshape(-1) / (2 * eps) for a, b in zip(above, below, strict=True)])
        columns.append(made[0] if len(made) == 1 else [_pair(real, imag) for real, imag in zip(*made, strict=True)])
    if not columns:
        return []
    return [candelabra.stack([column[number] for column in columns]) for number in range(len(columns[0]))]


def _check_perturbed(above: list[Tensor], below: list[Tensor]) -> None:
    """Raise unless outputs have the same shapes and dtypes wherever the function is computed."""
    for a, b in zip(above, below, strict=True):
        for what, first, second in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
            if first != second:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index 0, but got: "
                    f"{what}s {first} and {second}."
                )


def _pair(real: Tensor, imag: Tensor) -> Tensor:
    """Stack the derivatives along the real and the imaginary axis in a new first dimension."""
    return candelabra.stack([real, imag])


def _positions(shape: Sequence[int]) -> list[tuple[int, ...]]:
    positions: list[tuple[int, ...]] = [()]
    for size in shape:
        positions = [(*position, at) for position in positions for at in range(size)]
    return positions


def _numerical_products(jacobian: Tensor, vector: Tensor, target: Tensor) -> Tensor:
    """Compute the gradient of `target` for an output gradient, from numerical derivatives.

    For a real loss with gradient `vector` with respect to the output w, the directional derivative
    is Re(conj(vector) · dw).
    """
    if target.is_complex():
        real = (vector.conj() * jacobian[:, 0]).sum(-1)
        imag = (vector.conj() * jacobian[:, 1]).sum(-1)
        real = real.real if real.is_complex() else real
        imag = imag.real if imag.is_complex() else imag
        return candelabra.complex(real, imag)
    made = (vector.conj() * jacobian).sum(-1)
    return made.real if made.is_complex() else made


def analytical_jacobian(output: Tensor, target: Tensor, vectors: list[Tensor], retain: bool = True) -> list[Tensor]:
    """Compute flattened gradients of `target`, one per gradient of `output`.

    Unused inputs have zero gradients.
    """
    made = []
    for vector in vectors:
        (gradient,) = compute_grad(
            output, (target,), vector.reshape(output.shape), retain_graph=retain, allow_unused=True
        )
        if gradient is None:
            gradient = candelabra.zeros_like(target.detach())
        if gradient.shape != target.shape or gradient.dtype is not target.dtype:
            raise GradcheckError(
                f"grad is of shape {list(gradient.shape)} and dtype {gradient.dtype}, but the input of shape {list(target.shape)} and "
                f"dtype {target.dtype}"
            )
        made.append(gradient.detach().reshape(-1))
    return made


def _unit_vectors(output: Tensor) -> list[Tensor]:
    vectors = []
    for factor in [1.0, 1j] if output.is_complex() else [1.0]:
        for position in range(output.numel()):
            vector = candelabra.zeros(output.numel(), dtype=output.dtype, device=output.device)
            vector[position] = factor
            vectors.append(vector)
    return vectors


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although "
    "analytical gradient matches numerical gradient.The tolerance for nondeterminism was {}."
)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the gradients of `func` with central differences.

    Parameters
    ----------
    func
        Takes `inputs` and returns a tensor or a tuple of tensors.
    inputs
        A tensor or a tuple. Tensors that require grad are checked. They should be float64 or
        complex128, and their elements must not overlap in memory.
    eps
        The step size of the differences.
    atol, rtol
        Tolerances: ``|a - n| <= atol + rtol * |n|``.
    raise_exception
        Whether a failed check raises an error; if False, the function returns False.
    nondet_tol
        Allowed difference between two computations of the same gradient.
    check_undefined_grad
        Whether to check the backward pass if only some outputs have gradients.
    check_grad_dtypes
        Accepted for compatibility; dtypes of gradients are always checked.
    check_batched_grad
        Whether to check ``is_grads_batched`` as well.
    check_batched_forward_grad
        Whether to check tangents computed under vmap.
    check_forward_ad
        Whether to check forward-mode derivatives as well.
    check_backward_ad
        Whether to check gradients; set to False to check only forward mode.
    fast_mode
        Whether to check one direction instead of all of them.
    masked
        Accepted for compatibility.

    Returns
    -------
    bool
        True if no check failed.

    Raises
    ------
    GradcheckError
        If the Jacobians differ; the message shows both.
    ValueError
        If no input requires grad.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([0.5, 1.0], dtype=candelabra.float64, requires_grad=True)
    >>> candelabra.autograd.gradcheck(candelabra.sin, (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_undefined_grad and not check_backward_ad:
        check_undefined_grad = False
    if check_batched_grad and not check_backward_ad:
        raise ValueError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise ValueError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    given = _inputs(inputs)
    _check_inputs(given)
    try:
        if check_backward_ad:
            _gradcheck(func, given, eps, atol, rtol, nondet_tol, fast_mode)
        if check_forward_ad:
            _check_forward(func, given, eps, atol, rtol)
        if check_batched_forward_grad:
            _check_batched_forward(func, given, atol, rtol)
        if check_undefined_grad:
            _check_undefined(func, given)
        if check_batched_grad:
            _check_batched(func, given, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _gradcheck(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    eps: float,
    atol: float,
    rtol: float,
    nondet_tol: float,
    fast_mode: bool,
) -> None:
    made = func(*inputs)
    every, outputs = _all_outputs(made), _outputs(made)
    targets = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
    for at, target in enumerate(targets):
        jacobians = numerical_jacobian(func, inputs, target, eps) if target.numel() else []
        if not outputs:
            if any(bool((jacobian != 0).any().item()) for jacobian in jacobians):
                raise GradcheckError("Numerical gradient for function expected to be zero")
            continue
        for number, output in enumerate(every):
            if not output.requires_grad or not output.numel() or not target.numel():
                continue
            _compare(number, at, output, target, jacobians[number], atol, rtol, nondet_tol, fast_mode)


def _compare(
    number: int,
    at: int,
    output: Tensor,
    target: Tensor,
    jacobian: Tensor,
    atol: float,
    rtol: float,
    nondet_tol: float,
    fast_mode: bool,
) -> None:
    vectors = _unit_vectors(output)
    if fast_mode:
        vectors = [
            sum((vector * (0.3 + 0.7 * ((7 * k + 3) % 11) / 11) for k, vector in enumerate(vectors[1:])), vectors[0])
        ]
    analytical = candelabra.stack(analytical_jacobian(output, target, vectors), 1)
    numerical = candelabra.stack([_numerical_products(jacobian, vector, target) for vector in vectors], 1)
    numerical = numerical.to(analytical)  # outputs may be on another device than the input
    if not candelabra.allclose(analytical, numerical, rtol, atol, equal_nan=True):
        kind = "for real outputs and complex inputs " if target.is_complex() and not output.is_complex() else ""
        difference = (analytical - numerical).abs().max().item()
        raise GradcheckError(
            f"{kind}Jacobian mismatch for output {number} with respect to input {at},\nnumerical:{numerical}\nanalytical:{analytical}\n"
            f"The largest difference is {difference}."
        )
    again = candelabra.stack(analytical_jacobian(output, target, vectors), 1)
    unequal = (
        (analytical != again) & ~(analytical.isnan() & again.isnan())
        if not analytical.is_complex()
        else analytical != again
    )
    if unequal.any().item() and (analytical - again).abs().max().item() > nondet_tol:
        raise GradcheckError(_NOT_REENTRANT.format(nondet_tol))


def _check_undefined(func: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
    """Check that each output can be differentiated while the others have no gradient."""
    outputs = _outputs(func(*inputs))
    targets = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
    if len(outputs) < 2:
        return
    for number, output in enumerate(outputs):
        try:
            compute_grad(output, targets, candelabra.ones_like(output.detach()), retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads. Only output {number} had a gradient, and it failed: {error}"
            ) from error


def _check_batched(func: Callable[..., Any], inputs: tuple[Any, ...], atol: float, rtol: float) -> None:
    targets = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
    for output in _outputs(func(*inputs)):
        batch = candelabra.stack([candelabra.full_like(output.detach(), factor) for factor in (0.5, 1.5)])
        together = compute_grad(output, targets, batch, retain_graph=True, allow_unused=True, is_grads_batched=True)
        for row in range(2):
            alone = compute_grad(output, targets, batch[row], retain_graph=True, allow_unused=True)
            for a, b in zip(together, alone, strict=True):
                if (a is None) != (b is None) or (
                    a is not None and b is not None and not candelabra.allclose(a[row], b, rtol, atol)
                ):
                    raise GradcheckError("Batched gradients differ from gradients computed one by one")


def _tangents_of(func: Callable[..., Any], inputs: tuple[Any, ...], at: int, tangent: Tensor) -> list[Tensor]:
    """Compute forward-mode tangents of all outputs for `tangent` at input number `at`."""
    from .func import jvp

    def alone(value: Tensor) -> tuple[Tensor, ...]:
        return _all_outputs(func(*inputs[:at], value, *inputs[at + 1 :]))

    return list(jvp(alone, (inputs[at].detach(),), (tangent,))[1])


def _check_forward(func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float) -> None:
    """Compare tangents with central differences for each element of each input.

    Complex inputs are checked along the real and the imaginary axis.
    """
    for at, target in enumerate(inputs):
        if not (isinstance(target, Tensor) and target.requires_grad and target.numel()):
            continue
        numerical = numerical_jacobian(func, inputs, target, eps)
        for row, index in enumerate(_positions(target.shape)):
            for direction, factor in enumerate((1, 1j) if target.is_complex() else (1,)):
                tangent = candelabra.zeros_like(target.detach())
                tangent[index] = factor
                for number, moved in enumerate(_tangents_of(func, inputs, at, tangent)):
                    expected = numerical[number][row]
                    expected = (expected[direction] if target.is_complex() else expected).to(moved.dtype)
                    if not candelabra.allclose(moved.reshape(-1), expected, rtol, atol, equal_nan=True):
                        raise GradcheckError(
                            f"Jacobian computed with forward mode mismatch for output {number} with respect to input {at},\n"
                            f"numerical:{expected}\nanalytical:{moved.reshape(-1)}\n"
                        )


def _check_batched_forward(func: Callable[..., Any], inputs: tuple[Any, ...], atol: float, rtol: float) -> None:
    from .func import vmap

    for at, target in enumerate(inputs):
        if not (isinstance(target, Tensor) and target.requires_grad):
            continue
        batch = candelabra.stack([candelabra.full_like(target.detach(), factor) for factor in (0.5, 1.5)])

        def tangents(tangent: Tensor, at: int = at) -> tuple[Tensor, ...]:
            return tuple(_tangents_of(func, inputs, at, tangent))

        together = vmap(tangents)(batch)
        for row in range(2):
            for a, b in zip(together, tangents(batch[row]), strict=True):
                if not candelabra.allclose(a[row], b, rtol, atol, equal_nan=True):
                    raise GradcheckError("Batched tangents differ from tangents computed one by one")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compare second derivatives of `func` with central differences of its gradients.

    Parameters
    ----------
    func, inputs
        As in :func:`gradcheck`.
    grad_outputs
        Gradients of the outputs, which are checked as well; random by default.
    gen_non_contig_grad_outputs
        Whether the random gradients are non-contiguous.
    eps, atol, rtol, raise_exception, nondet_tol
        As in :func:`gradcheck`.
    check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode, masked
        As in :func:`gradcheck`.

    Returns
    -------
    bool
        True if no check failed.

    Raises
    ------
    GradcheckError
        As in :func:`gradcheck`.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([0.5, 1.0], dtype=candelabra.float64, requires_grad=True)
    >>> candelabra.autograd.gradgradcheck(candelabra.sin, (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise ValueError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    given = _inputs(inputs)
    outputs = _outputs(func(*given))
    if grad_outputs is None:
        generators = {output.device: candelabra.Generator(output.device) for output in outputs}
        for generator in generators.values():
            generator.manual_seed(0)
        gradients = tuple(
            _random_like(output, gen_non_contig_grad_outputs, generators[output.device]) for output in outputs
        )
    else:
        gradients = _inputs(grad_outputs)
    count = len(gradients)

    def gradient_function(*arguments: Any) -> Any:
        values, vectors = arguments[:-count], arguments[-count:]
        values = tuple(
            value.view_as(value) if isinstance(value, Tensor) and value.requires_grad else value for value in values
        )
        targets = [value for value in values if isinstance(value, Tensor) and value.requires_grad]
        made = compute_grad(_outputs(func(*values)), targets, vectors, create_graph=True, allow_unused=True)
        return tuple(part for part in made if part is not None)

    if not count:
        return True
    if check_fwd_over_rev:
        try:
            _check_forward_over_reverse(func, given, gradients, gradient_function, eps, atol, rtol)
        except GradcheckError:
            if raise_exception:
                raise
            return False
    if not check_rev_over_rev:
        return True
    return gradcheck(
        gradient_function, given + gradients, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _check_forward_over_reverse(
    func: Callable[..., Any], inputs: tuple[Any, ...], gradients: tuple[Tensor, ...], gradient_function: Callable[..., Any], eps: float,
    atol: float, rtol: float,
) -> None:  # fmt: skip
    """Compare forward-over-reverse derivatives with central differences of gradients."""
    from .func import jvp, vjp

    wanted = [at for at, value in enumerate(inputs) if isinstance(value, Tensor) and value.requires_grad]

    def chosen(*values: Tensor) -> tuple[Tensor, ...]:
        given = list(inputs)
        for at, value in zip(wanted, values, strict=True):
            given[at] = value
        return tuple(part for part in _all_outputs(func(*given)))

    recorded = [number for number, part in enumerate(_all_outputs(func(*inputs))) if part.requires_grad]

    def pulled(*values: Tensor) -> tuple[Tensor, ...]:
        return vjp(lambda *own: tuple(part for number, part in enumerate(chosen(*own)) if number in recorded), *values)[
            1
        ](gradients)

    everything = inputs + gradients
    used = [number for number, part in enumerate(gradient_function(*everything)) if part is not None]
    for place, at in enumerate(wanted):
        target = inputs[at]
        if not target.numel() or len(used) != len(wanted):
            continue
        numerical = numerical_jacobian(gradient_function, everything, target, eps)
        for row, index in enumerate(_positions(target.shape)):
            tangent = candelabra.zeros_like(target.detach())
            tangent[index] = 1
            tangents = [candelabra.zeros_like(inputs[one].detach()) for one in wanted]
            tangents[place] = tangent
            moved = jvp(pulled, tuple(inputs[one].detach() for one in wanted), tuple(tangents))[1]
            for number, part in enumerate(moved):
                expected = numerical[number][row]
                expected = (expected[0] if target.is_complex() else expected).to(part.dtype)
                if not candelabra.allclose(part.reshape(-1), expected, rtol, atol, equal_nan=True):
                    raise GradcheckError(
                        f"Jacobian of gradient {number} computed with forward mode over reverse mode mismatch with respect to input {at},\n"
                        f"numerical:{expected}\nanalytical:{part.reshape(-1)}\n"
                    )


def _random_like(output: Tensor, gaps: bool, generator: Any) -> Tensor:
    shape = (*output.shape, 2) if gaps else tuple(output.shape)
    made = candelabra.empty(shape, dtype=output.dtype, device=output.device)
    # Uniform in [0.1, 1): away from zero, and small enough for accurate differences.
    parts = candelabra.view_as_real(made) if made.is_complex() else made
    parts.uniform_(0.1, 1.0, generator=generator)
    if gaps:
        made = made.select(-1, 0)
    return made.detach().requires_grad_()
