"""The entry points of the backward pass: ``backward`` and ``grad``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import candelabra
from candelabra import _C, Tensor

from .engine import Walk, edge_of, walk_back
from .fitting import fit, like
from .hooks import call_node_hook
from .leaves import call_accumulated_hooks, take_gradient
from .node import AccumulateGrad, Edge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .graph import GradientEdge


def _is_gradient_edge(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "output_nr")


def first_gradient(number: int, tensor: Tensor, grad: Any, batched: bool = False) -> Tensor:
    """Check the initial gradient of a root; for None, return ones."""
    if grad is None:
        if tensor.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}")
        if tensor.is_complex():
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {tensor.dtype}")
        return candelabra.ones_like(tensor.detach())
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad.shape != tensor.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {grad.shape} and output[{number}] has a shape of {tensor.shape}."
        )
    if grad.is_complex() != tensor.is_complex():
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{number}] has a dtype of {grad.dtype} and output[{number}] has a dtype of {tensor.dtype}."
        )
    return grad if grad.dtype is tensor.dtype and grad.device == tensor.device else fit(grad, like(tensor))


def _sequence(values: Any) -> tuple[Any, ...]:
    single = isinstance(values, Tensor) or values is None or _is_gradient_edge(values)
    return (values,) if single or hasattr(values, "__torch_function__") else tuple(values)


def _roots(tensors: tuple[Any, ...], gradients: tuple[Any, ...]) -> list[tuple[Edge, Tensor]]:
    if len(tensors) != len(gradients):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(gradients)} gradients")
    pairs = []
    for number, (tensor, grad) in enumerate(zip(tensors, gradients, strict=True)):
        if _is_gradient_edge(tensor):
            if grad is None:
                raise RuntimeError(
                    f"grad_outputs[{number}] has to be given: a gradient edge has no sizes that ones could be made of"
                )
            pairs.append((edge_of(tensor), grad))
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"element {number} of tensors has to be a Tensor, but got {type(tensor).__name__}")
        if grad is not None or tensor.requires_grad:
            pairs.append((tensor._edge, first_gradient(number, tensor, grad)))
        if not tensor.requires_grad:
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
    return pairs


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | None = None,
) -> None:
    """Accumulate gradients of `tensors` into the ``grad`` of the leaves they depend on.

    Gradients of several tensors are summed.

    Parameters
    ----------
    tensors
        The tensors to differentiate.
    grad_tensors
        The vector in the vector-Jacobian product: one gradient for each of `tensors`, with the
        same shape. None means ones, for a tensor with one element.
    retain_graph
        Whether to keep the graph for another backward pass; defaults to `create_graph`.
    create_graph
        Whether to record the gradients, for higher-order derivatives.
    grad_variables
        A deprecated name of `grad_tensors`.
    inputs
        The only tensors to accumulate into; by default all leaves.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad, if a gradient is missing for a tensor with several
        elements, or if the graph was freed.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> candelabra.autograd.backward([x * 2, x * 3], [candelabra.ones(2), candelabra.ones(2)])
    >>> x.grad
    tensor([5., 5.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    targets = None
    if inputs is not None:
        targets = _sequence(inputs)
        if not targets:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    several = _sequence(tensors)
    gradients = (None,) * len(several) if grad_tensors is None else _sequence(grad_tensors)
    roots = _roots(several, gradients)
    retain = create_graph if retain_graph is None else retain_graph
    if targets is None:
        walk_back(roots, retain, create_graph)
        return
    _check_targets(targets)

    def accumulate(computed: list[Tensor | None]) -> None:
        for target, grad in zip(map(_target_of, targets), computed, strict=True):
            if grad is not None and target is not None:
                _accumulate(target, grad, create_graph)

    walk_back(roots, retain, create_graph, targets, accumulate)


def _accumulate(target: Tensor, grad: Tensor, create_graph: bool) -> None:
    """Accumulate a gradient into a tensor; of a leaf, call what sees the accumulated one."""
    take_gradient(target, grad, create_graph, 0)
    of_leaf = target._hooks
    if of_leaf is None or target.grad_fn is not None:
        return
    call_accumulated_hooks(target, of_leaf)
    accumulate = of_leaf.active_node()
    for hook in () if accumulate is None else tuple(accumulate.after.values()):
        call_node_hook(hook, (), (grad,))


def _check_targets(targets: tuple[Any, ...]) -> None:
    for target in targets:
        if isinstance(target, Tensor) and not target.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")


def _target_of(target: Any) -> Tensor | None:
    """Return the tensor that a gradient is accumulated into; None for the edge of no leaf."""
    if isinstance(target, Tensor):
        return target
    if isinstance(target.node, AccumulateGrad):
        return target.node.variable
    return None


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Compute and return the sum of gradients of `outputs` with respect to `inputs`.

    Parameters
    ----------
    outputs
        The tensors or gradient edges to differentiate.
    inputs
        Tensors or gradient edges that `outputs` depend on; they need not be leaves.
    grad_outputs
        One gradient for each of `outputs`. None means ones, for an output with one element.
    retain_graph
        Whether to keep the graph for another backward pass; defaults to `create_graph`.
    create_graph
        Whether to record the gradients, for higher-order derivatives.
    only_inputs
        Must be True.
    allow_unused
        Whether to return None for inputs that `outputs` do not depend on, instead of raising an
        error; defaults to `materialize_grads`.
    is_grads_batched
        Whether `grad_outputs` have an additional first dimension. The backward pass then runs
        for all entries at once, with :func:`candelabra.vmap`.
    materialize_grads
        Whether to return zeros for unused inputs.

    Returns
    -------
    tuple
        One gradient for each of `inputs`: a tensor, or None where `allow_unused` permits it.

    Raises
    ------
    RuntimeError
        If an output or an input does not require grad, or an input is unused.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor(3.0, requires_grad=True)
    >>> (first,) = candelabra.autograd.grad(x**3, x, create_graph=True)
    >>> candelabra.autograd.grad(first, x)
    (tensor(18.),)
    """
    roots, targets = _sequence(outputs), _sequence(inputs)
    if _C.has_torch_function(roots + targets):
        found: Any = _C.handle_torch_function(
            grad, roots + targets, roots, targets, grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
        return found  # type: ignore[no-any-return]
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        raise ValueError(
            "only_inputs=False is not supported: use candelabra.autograd.backward to accumulate into all leaves"
        )
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for number, target in enumerate(targets):
        if not isinstance(target, Tensor) and not _is_gradient_edge(target):
            raise TypeError(f"element {number} of inputs has to be a Tensor, but got {type(target).__name__}")
    gradients = (None,) * len(roots) if grad_outputs is None else _sequence(grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(roots, targets, gradients, retain, create_graph, allow_unused, materialize_grads)
    pairs = _roots(roots, gradients)
    _check_targets(targets)
    computed: list[Any] | None = walk_back(pairs, retain, create_graph, targets)
    assert computed is not None
    for number, part in enumerate(computed):
        if part is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {number} appears to not have been used in the graph (One of the differentiated "
                    "Tensors appears to not have been used in the graph). Set allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                if not isinstance(targets[number], Tensor):
                    raise RuntimeError(
                        "materialize_grads cannot be used when the given input is a GradientEdge, whose sizes are not known"
                    )
                computed[number] = candelabra.zeros_like(targets[number].detach()).requires_grad_()
    return tuple(computed)


def _batched(
    roots: tuple[Any, ...], targets: tuple[Any, ...], gradients: tuple[Any, ...], retain: bool, create_graph: bool, allow_unused: bool,
    materialize: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Compute :func:`grad` for all entries of the first dimension of `gradients`, with vmap."""
    size = None
    for number, (root, batch) in enumerate(zip(roots, gradients, strict=True)):
        if batch is None:
            continue
        if batch.ndim == 0 or batch.shape[1:] != root.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the "
                "remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{number}] has a shape of {batch.shape} and output[{number}] has a shape of {root.shape}."
            )
        if size not in (None, batch.shape[0]):
            raise RuntimeError(f"grad_outputs have batches of different sizes: {size} and {batch.shape[0]}")
        size = batch.shape[0]
    if size is None:
        raise RuntimeError("is_grads_batched=True needs grad_outputs")
    from .transforms.vmap import vmap

    places = [number for number, batch in enumerate(gradients) if batch is not None]
    used: list[bool] = []

    def one(*vectors: Tensor) -> tuple[Tensor, ...]:
        given = list(gradients)
        for place, vector in zip(places, vectors, strict=True):
            given[place] = vector
        made = grad(roots, targets, given, retain, create_graph, True, allow_unused, False, materialize)
        used[:] = [part is not None for part in made]
        return tuple(part for part in made if part is not None)

    columns: Any = iter(vmap(one)(*(gradients[place] for place in places)))
    # No part that is None unless allow_unused.
    return tuple(next(columns) if part else None for part in used)  # type: ignore[misc]


def backward_of_tensor(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Accumulate gradients of this tensor into the ``grad`` of the leaves it depends on.

    Parameters
    ----------
    gradient
        The gradient of some function with respect to this tensor, with the same shape. Optional
        for a tensor with one element.
    retain_graph, create_graph, inputs
        As in :func:`candelabra.autograd.backward`.

    Raises
    ------
    RuntimeError
        As in :func:`candelabra.autograd.backward`.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([1.0, 2.0], requires_grad=True)
    >>> (x**2).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if inputs is not None:
        backward((self,), (gradient,), retain_graph, create_graph, None, inputs)
        return
    if not self.requires_grad:
        raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
    walk = Walk(not (create_graph if retain_graph is None else retain_graph), create_graph)
    edge = self._edge
    walk.roots.append(edge)
    walk.add(edge, first_gradient(0, self, gradient))
    walk.run()
