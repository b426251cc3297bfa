"""Custom autograd functions: operations with user-defined gradients."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NoReturn

import candelabra
from candelabra import _C, Tensor

from .anomaly import annotate, is_anomaly_enabled
from .engine import current_walk
from .fitting import fit, like
from .graph import SavedByFunction, SavedTensor, history_of, pack, reconnected, transformation_depth, unpack
from .inplace import rebase
from .node import FREED, MultiNode, next_sequence, own_result, raise_modified
from .once_differentiable import once_differentiable as once_differentiable

if TYPE_CHECKING:
    from collections.abc import Callable


class FunctionNode(MultiNode):
    """The node of an applied custom function, and the ``ctx`` of its methods.

    Each subclass of :class:`Function` has its own subclass of this class. Instances accept
    arbitrary attributes.
    """

    __slots__ = (
        "__dict__", "_layout", "_outputs", "_outputs_like", "dirty", "for_forward", "materialize_grads", "needs_input_grad", "non_differentiable", "to_save",
    )  # fmt: skip

    _function: type[Function]
    #: Shape, dtype and device of each argument, None if it is no tensor. `_outputs_like` is the
    #: same for results.
    _layout: tuple[Any, ...]
    _outputs_like: list[Any]
    _outputs: int
    needs_input_grad: tuple[bool, ...]
    to_save: tuple[Any, ...]
    for_forward: tuple[Tensor | None, ...] | None
    dirty: tuple[Tensor, ...]
    non_differentiable: tuple[Tensor, ...]
    if TYPE_CHECKING:  # what a function keeps for its backward

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self) -> None:
        self._hooks = None
        self._saved = ()
        self.to_save = self.dirty = self.non_differentiable = ()
        self.for_forward = None
        self.materialize_grads = True
        self._outputs = 1
        self._edges = ()

    # ---- methods for forward and setup_context

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (inputs, results or None) for ``backward``.

        :attr:`saved_tensors` returns them there.
        """
        for number, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {number} is of type {type(tensor).__name__}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for ``jvp``, where :attr:`saved_tensors` returns them."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx. Got "
                    f"{type(tensor).__name__}"
                )
        self.for_forward = tensors

    def restore(self, tensors: Any) -> None:
        """Set the tensors that :attr:`saved_tensors` returns."""
        self._saved = tuple(("input", tensor, None if tensor is None else tensor._version) for tensor in tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Mark inputs that were changed in place; each must be among the results."""
        for number, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                kind = type(tensor).__name__
                raise RuntimeError(f"mark_dirty can only accept variables, but argument {number} is of type {kind}")
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Mark results that have no gradient."""
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    f"mark_non_differentiable only accepts variable arguments, but got {type(tensor).__name__}"
                )
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether ``backward`` receives zeros (the default) or None for undefined gradients."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors of :meth:`save_for_backward`; raises if one was changed in place since."""
        if self._saved is None:
            raise RuntimeError(FREED)
        restored = []
        for kind, value, version in self._saved:
            if version == "packed":
                packed, history = value
                restored.append(reconnected(unpack(packed), (self, kind) if isinstance(kind, int) else history))
                continue
            if value is not None and version is not None and value._version != version:
                raise_modified(self, value, version, kind != "input")
            if isinstance(kind, int) and candelabra.is_grad_enabled():
                value = own_result(value, self, kind)
            restored.append(value)
        return tuple(restored)

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The tensors of :meth:`save_for_backward`, for hooks."""
        if self._saved is None:
            raise RuntimeError(FREED)
        return tuple(SavedByFunction(self, position) for position in range(len(self._saved)))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """A deprecated name of :attr:`saved_tensors`."""
        _C.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    def name(self) -> str:
        """Return the name of the function followed by ``Backward``."""
        return type(self).__name__

    # ---- the backward pass

    def backward(self, grad: Any, edges: tuple[Any, ...]) -> tuple[Any, ...]:
        gradients = grad if self._outputs > 1 else [grad]
        if self.materialize_grads:
            gradients = [
                candelabra.zeros(of[0], dtype=of[1], device=of[2]) if part is None and of is not None else part
                for part, of in zip(gradients, self._outputs_like, strict=True)
            ]
        walk = current_walk()
        if walk is not None:
            walk.node = self
        # The program's own code: its calls are asked overrides for, unlike those of formulas.
        overrides = candelabra._C.set_torch_function_state(0)
        try:
            made = _backward_of(self._function)(self, *gradients)
        finally:
            candelabra._C.set_torch_function_state(overrides)
        if not isinstance(made, tuple):
            made = tuple(made) if isinstance(made, list) else (made,)
        expected = len(self._layout)
        if len(made) > expected and all(part is None for part in made[expected:]):
            made = made[:expected]
        if len(made) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got {len(made)})"
            )
        results: list[Any] = []
        for number, (part, of) in enumerate(zip(made, self._layout, strict=True)):
            if of is None:
                if part is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than None at position {number + 1}, but the corresponding "
                        "forward input was not a Variable"
                    )
                continue
            if part is not None and not isinstance(part, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(part).__name__})")
            results.append(None if part is None or edges[len(results)] is None else self._checked(number, part, of))
        return tuple(results)

    def _checked(self, number: int, grad: Tensor, of: Any) -> Tensor:
        """Convert a gradient to the shape and dtype of its input; raise if that is impossible."""
        if grad.shape == of[0] and grad.dtype is of[1] and grad.device == of[2]:
            return grad
        if not _sums_to(grad.shape, of[0]):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {number} - got {list(grad.shape)} but expected shape "
                f"compatible with {list(of[0])}"
            )
        return fit(grad, of)


def _sums_to(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Return whether a tensor of shape `to` can be broadcast to `shape`."""
    return len(shape) >= len(to) and all(b in (1, a) for a, b in zip(shape[len(shape) - len(to) :], to, strict=True))


class _Meta(type):
    def __init__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> None:
        super().__init__(name, bases, members)
        cls._backward_cls = type(
            f"{name}Backward", (FunctionNode,), {"__slots__": (), "_function": cls, "__module__": cls.__module__}
        )


class Function(metaclass=_Meta):
    """Base class of operations with custom gradients.

    A subclass defines the static methods ``forward(ctx, *inputs)`` and ``backward(ctx,
    *grad_outputs)``. Alternatively it defines ``forward(*inputs)`` and ``setup_context(ctx, inputs,
    output)``. Call the function with ``apply``.

    Examples
    --------
    >>> import candelabra
    >>> class Double(candelabra.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = candelabra.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    _backward_cls: type[FunctionNode]
    #: Whether to derive ``vmap`` by running each of the other methods within vmap.
    generate_vmap_rule = False

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        _C.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
            "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
            "static forward method."
        )

    @staticmethod
    def forward(*arguments: Any, **keywords: Any) -> Any:
        """Compute the results; subclasses override this."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what ``backward`` needs on `ctx`; override this if ``forward`` takes no ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return one gradient per positional argument of ``forward``; subclasses override this."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the results; override this to support forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> Any:
        """Compute the results of a batch; override this to support :func:`candelabra.vmap`.

        Parameters
        ----------
        info
            An object with ``batch_size`` and ``randomness``.
        in_dims
            The batch dimension of each argument, or None if it has no batch.
        arguments
            The arguments of ``forward``, with batches.

        Returns
        -------
        tuple
            The results, and the batch dimension of each.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *arguments: Any, **keywords: Any) -> Any:
        """Run ``forward`` and record the function on the tape.

        Parameters
        ----------
        arguments
            The arguments of ``forward``. Tensor arguments are differentiable; tensors inside
            lists and other containers are not.

        Returns
        -------
        Tensor or tuple of Tensor
            The return value of ``forward``.
        """
        return _apply(cls, arguments, keywords)


def _backward_of(function: type[Function]) -> Callable[..., Any]:
    if function.backward is not Function.backward and function.vjp is not Function.vjp:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
        )
    if function.backward is Function.backward and function.vjp is not Function.vjp:
        return function.vjp
    return function.backward


def _apply(function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    if transformation_depth():
        from .functorch_layers import apply_within, layer_of

        layer = layer_of(arguments)
        if layer is not None:
            return apply_within(function, arguments, keywords, layer)
    return run_forward(function, arguments, keywords, keep=False)[0]


def run_forward(
    function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any], keep: bool = True
) -> tuple[Any, FunctionNode]:
    """Apply a function and return its output and context.

    With `keep`, :attr:`saved_tensors` of the context is ready for ``jvp``.
    """
    node = function._backward_cls()
    if function.setup_context is not Function.setup_context:
        arguments = _with_defaults(function, arguments, keywords)
    recording = _prepare(node, arguments)
    before = candelabra._C.set_grad_enabled(False)
    try:
        if function.setup_context is Function.setup_context:
            output = function.forward(node, *arguments, **keywords)
        else:
            output = function.forward(*arguments)
            function.setup_context(node, arguments, output)
    finally:
        candelabra._C.set_grad_enabled(before)
    results, several = listed(output)
    for_jvp = (node.to_save if node.for_forward is None else node.for_forward) if keep else ()
    _finish(node, arguments, results, recording)
    if keep:
        context = node
        if recording:
            # The node on the tape holds what backward needs, so jvp gets another context with the
            # same attributes.
            context = function._backward_cls()
            context.__dict__.update(node.__dict__)
            context.needs_input_grad, context.materialize_grads = node.needs_input_grad, node.materialize_grads
        context.restore(for_jvp)
        node = context
    return (
        type(output)(results)
        if several and not hasattr(output, "_fields")
        else (type(output)(*results) if several else results[0])
    ), node


def _with_defaults(function: type[Function], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    """Return all arguments of ``forward`` by position, as ``setup_context`` gets them."""
    if not keywords and getattr(function.forward, "__defaults__", None) is None:
        return arguments
    bound = inspect.signature(function.forward).bind(*arguments, **keywords)
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(f"{function.__name__}.forward: keyword-only arguments are not supported with setup_context")
    return bound.args


def require_setup_context(function: type[Function]) -> None:
    """Raise unless the forward of a function can run apart from its context."""
    if function.setup_context is Function.setup_context:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context "
            "staticmethod."
        )


def listed(output: Any) -> tuple[list[Any], bool]:
    """Return the results of a function as a list, and whether they are several."""
    return (list(output), True) if isinstance(output, (tuple, list)) else ([output], False)


def record_application(
    function: type[Function], arguments: tuple[Any, ...], results: list[Any], several: bool
) -> list[Any]:
    """Record a function on the tape whose results are already computed."""
    node = function._backward_cls()
    recording = _prepare(node, arguments)
    before = candelabra._C.set_grad_enabled(False)
    try:
        function.setup_context(node, arguments, tuple(results) if several else results[0])
    finally:
        candelabra._C.set_grad_enabled(before)
    _finish(node, arguments, results, recording)
    return results


def _prepare(node: FunctionNode, arguments: tuple[Any, ...]) -> bool:
    """Store metadata of the arguments; return whether the function must be recorded."""
    node.needs_input_grad = tuple(isinstance(argument, Tensor) and argument.requires_grad for argument in arguments)
    recording = candelabra.is_grad_enabled() and any(node.needs_input_grad)
    if recording:
        node._layout = tuple(like(argument) if isinstance(argument, Tensor) else None for argument in arguments)
        node._edges = tuple(argument._edge for argument in arguments if isinstance(argument, Tensor))
    return recording


def _finish(node: FunctionNode, arguments: tuple[Any, ...], results: list[Any], recording: bool) -> None:
    """Validate the marks and record the function on the tape. Entries of `results` may be replaced
    by other tensors on the same memory.
    """
    for changed in node.dirty:
        if not any(changed is result for result in results):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
                "inplace must all be outputs of the Function."
            )
    if recording:
        _record(node, arguments, results)
    else:
        # As with recording, an input returned as is becomes a new tensor on the same memory.
        results[:] = [_handed_through(result, arguments, node) for result in results]


def _handed_through(result: Any, arguments: tuple[Any, ...], node: FunctionNode) -> Any:
    if isinstance(result, Tensor) and not _among(result, node.dirty) and _among(result, arguments):
        return result.view_as(result)
    return result


def _among(tensor: Any, tensors: tuple[Any, ...]) -> bool:
    return any(tensor is other for other in tensors)


def _record(node: FunctionNode, arguments: tuple[Any, ...], results: list[Any]) -> None:
    """Record an applied function: set the history of its results and save its tensors."""
    node._sequence = next_sequence()
    node._outputs = len(results)
    # None: this result has no gradient to give as zeros.
    of_constants = getattr(node, "_materialize_non_diff_grads", True)
    node._outputs_like = [
        like(result)
        if isinstance(result, Tensor) and (of_constants or not _among(result, node.non_differentiable))
        else None
        for result in results
    ]
    inside = list(results)
    changed: list[tuple[Tensor, int]] = []
    for number, result in enumerate(results):
        if not isinstance(result, Tensor):
            continue
        differentiable = (result.is_floating_point() or result.is_complex()) and not _among(
            result, node.non_differentiable
        )
        if _among(result, node.dirty):
            if result.requires_grad and result.grad_fn is None:
                raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
            if differentiable:
                changed.append((result, number))
            continue
        if _among(result, arguments):
            # An input returned as is: the caller's tensor keeps its history, and the result is a
            # new tensor on the same memory.
            with candelabra.no_grad():
                result = results[number] = result.view_as(result) if differentiable else result.detach()
        if differentiable:
            result._set_history(node, number)
            if result._is_view():
                # A change in place would go around the program's own gradient.
                result._mark_one_of_views()
    node._saved = _kept(node, arguments, inside, results)
    for result, number in changed:
        base = result._base
        if base is None:
            result._set_history(node, number)
            result._bump_history()
        else:
            value = result._detached()
            value._set_history(node, number)
            rebase(base, result, value)
    node.to_save = node.dirty = node.non_differentiable = ()
    if is_anomaly_enabled():
        annotate(node)


def _kept(node: FunctionNode, arguments: tuple[Any, ...], inside: list[Any], results: list[Any]) -> tuple[Any, ...]:
    """Return the entries for the tensors of save_for_backward; results detached, as they reference
    the node.
    """
    kept: list[tuple[Any, Any, Any]] = []
    for tensor in node.to_save:
        number = (
            next((at for at, result in enumerate(inside) if result is tensor), None) if tensor is not None else None
        )
        if number is not None and _among(tensor, arguments) and not _among(tensor, node.dirty):
            number = None  # an input that was returned as is: the caller's tensor is saved
        if tensor is None:
            kept.append(("input", None, None))
            continue
        own = number is not None and (results[number].grad_fn is node or _among(tensor, node.dirty))
        packed = pack(tensor)
        if packed is not None:
            kept.append((number if own else "input", (packed, None if own else history_of(tensor)), "packed"))
        elif own:
            kept.append((number, tensor._detached(), tensor._version))
        else:
            kept.append(("input", tensor, tensor._version))
    return tuple(kept)


class InplaceFunction(Function):
    """A function whose ``apply`` takes ``inplace`` last, by convention; kept for old code.

    Examples
    --------
    >>> import candelabra
    >>> issubclass(candelabra.autograd.function.InplaceFunction, candelabra.autograd.Function)
    True
    """


#: PyTorch's names. Here one class is both the context of a function's methods and its node.
FunctionCtx = FunctionNode
BackwardCFunction = FunctionNode
FunctionMeta = _Meta
