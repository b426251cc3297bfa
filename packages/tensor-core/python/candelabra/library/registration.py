"""Registration of functions by operator name, and libraries of operators."""

from __future__ import annotations

import re
import weakref
from typing import Any

from candelabra import _C

from .definitions import DEFINITIONS, PENDING_FAKES, CustomOpDef, check_name, definition_of, forget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Kernel = Callable[..., Any]

#: Namespaces of a library of kind DEF.
_namespaces: set[str] = set()
#: Reserved namespaces.
_RESERVED = frozenset({"prim", "aten", "candelabra", "prims"})
#: PyTorch's dispatch keys and the device types that they stand for.
_DEVICE_KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "XPU": "xpu",
    "MPS": "mps",
    "XLA": "xla",
    "HPU": "hpu",
    "MTIA": "mtia",
    "PrivateUse1": "privateuseone",
}
_ADVICE = {
    "Autograd": "register_autograd() gives the operator its gradient",
    "FuncTorchBatched": "register_vmap() gives its rule for batches",
    "ADInplaceOrView": "views and changes in place are read from the schema",
    "Functionalize": "there is nothing to be functionalized",
}


class Library:
    """Operators of one namespace, defined by schemas.

    Without a gradient formula of its own, autograd and transforms see the operators that the Python
    kernel calls.

    Parameters
    ----------
    ns
        The namespace: ``"mylib"``.
    kind
        ``"DEF"`` for the library that owns the namespace, ``"FRAGMENT"`` for further operators in
        it, ``"IMPL"`` for kernels of operators that are defined elsewhere.
    dispatch_key
        The default of :meth:`impl`: ``"CPU"``, …

    Raises
    ------
    ValueError
        For another kind, or a reserved namespace.
    RuntimeError
        For a second library of kind DEF.

    Examples
    --------
    >>> import candelabra
    >>> library = candelabra.library.Library("docs_waves", "DEF")
    >>> library.define("square_wave(Tensor x) -> Tensor")
    'square_wave'
    >>> library.impl("square_wave", lambda x: x.sin().sign(), "CPU")
    >>> candelabra.ops.docs_waves.square_wave(candelabra.tensor([1.0, -2.0]))
    tensor([ 1., -1.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if not re.fullmatch(r"[A-Za-z_]\w*", ns):
            raise ValueError(f"expected a name as the namespace of a library, but got {ns!r}")
        if kind == "DEF":
            if ns in _namespaces:
                raise RuntimeError(
                    f"Only a single library of kind DEF can be made for the namespace {ns}; kind FRAGMENT adds operators to it, kind IMPL kernels"
                )
            _namespaces.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs: set[str] = set()
        self._op_impls: set[tuple[str, str]] = set()
        self._end = weakref.finalize(self, _forget_library, ns, kind, self._op_defs)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator.

        Parameters
        ----------
        schema
            Such as ``"smooth(Tensor x, float strength=1.0) -> Tensor"``, without the namespace.
        alias_analysis
            ``""`` or ``"CONSERVATIVE"``; ignored.
        tags
            Ignored.

        Returns
        -------
        str
            The name.

        Raises
        ------
        RuntimeError
            If an operator of that name is defined, or the library is of kind IMPL.
        ValueError
            If the schema cannot be read; the message says where.
        """
        if self.kind == "IMPL":
            raise RuntimeError(f"{self!r}: define() is not for a library of kind IMPL")
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name = schema.partition("(")[0].strip()
        if name.startswith(f"{self.ns}::"):
            name = name.removeprefix(f"{self.ns}::")
        if "(" not in schema or "->" not in schema:
            raise ValueError(f'expected a schema such as "f(Tensor x) -> Tensor", but got {schema!r}')
        qualname = f"{self.ns}::{name}"
        check_name(qualname)
        if qualname in DEFINITIONS:
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{schema.strip()}) with the same name and overload name multiple times. Each overload's "
                "schema should only be registered with a single call to define()."
            )
        made = CustomOpDef(qualname, schema)
        made._seen_through = True
        made._refresh()
        self._op_defs.add(qualname)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Kernel,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = False,
    ) -> None:
        """Register a function for an operator of the namespace.

        Parameters
        ----------
        op_name
            The operator, or its name with or without the namespace.
        fn
            Of the operator's signature.
        dispatch_key
            A device: ``"CPU"``, ``"CUDA"`` or ``"cpu"``; ``"CompositeExplicitAutograd"`` or
            ``"CompositeImplicitAutograd"`` for all devices; ``"Meta"`` for the description of the
            results, as `register_fake`; ``"AutocastCPU"``, ``"AutocastCUDA"`` for what is called
            instead while calls are autocast on that device. Nothing is autocast within it.
        with_keyset
            Not supported.
        allow_override
            Whether a function that is registered already may be replaced.

        Raises
        ------
        RuntimeError
            If there is no such operator, or a function is registered already.
        NotImplementedError
            For what is no device: the message says what takes its place.
        """
        if with_keyset:
            raise NotImplementedError(f"{self!r}: impl(with_keyset=True): there are no sets of dispatch keys")
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        name = (
            op_name
            if isinstance(op_name, str)
            else op_name._qualname
            if isinstance(op_name, CustomOpDef)
            else op_name.name
        )
        qualname = name if "::" in name else f"{self.ns}::{name}"
        if self.ns in _RESERVED or qualname.partition("::")[0] in _RESERVED:
            raise NotImplementedError(
                f"{self!r}: the kernels of Candelabra's own operators come with the backends; registrar.kernel() of a backend registers one"
            )
        if qualname.partition("::")[0] != self.ns:
            raise ValueError(f"{self!r}: {qualname} is of another namespace")
        definition = definition_of(qualname)
        if (qualname, key) in self._op_impls and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {qualname}'s behavior for {key} dispatch "
                f"key and {self.ns} namespace."
            )
        for start, advice in _ADVICE.items():
            if key.startswith(start):
                raise NotImplementedError(f"{self!r}: impl({name!r}, ..., {key!r}): {advice}")
        if key == "Meta":
            definition.register_fake(fn)
        elif key.startswith("Autocast"):
            self._impl_autocast(definition, key, fn)
        elif key.startswith("Composite"):
            definition.register_kernel(None, fn)
        else:
            definition.register_kernel(_device_type(key), fn)
        self._op_impls.add((qualname, key))

    @staticmethod
    def _impl_autocast(definition: CustomOpDef, key: str, fn: Kernel) -> None:
        from candelabra.amp import is_autocast_available

        device_type = _device_type(key.removeprefix("Autocast"))
        # Calls on devices that have no backend here are never autocast.
        if is_autocast_available(device_type):
            definition.register_autocast_kernel(device_type, fn)

    def _register_fake(self, op_name: str, fn: Kernel, _stacklevel: int = 1, *, allow_override: bool = True) -> None:
        definition_of(op_name if "::" in op_name else f"{self.ns}::{op_name}").register_fake(fn)

    def _destroy(self) -> None:
        """Take back what the library defined."""
        self._end()


def _forget_library(ns: str, kind: str, names: set[str]) -> None:
    if kind == "DEF":
        _namespaces.discard(ns)
    for name in list(names):
        forget(name)
    names.clear()


def _device_type(key: str) -> str:
    if key in _DEVICE_KEYS:
        return _DEVICE_KEYS[key]
    if key.islower():
        return key
    raise NotImplementedError(
        f"there is no dispatch key {key!r}; a device type is one: {', '.join(_DEVICE_KEYS)}, or its name in small letters"
    )


#: Libraries of `define`, which live as long as the process.
_kept: dict[str, Library] = {}


def define(qualname: Any, schema: str | None = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Define an operator by its schema.

    Parameters
    ----------
    qualname
        ``"mylib::f"``.
    schema
        ``"(Tensor x) -> Tensor"``.
    lib
        The library that it belongs to; with one, the operator goes when the library goes.
    tags
        Ignored.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.library.define("docs_define::double", "(Tensor x) -> Tensor")
    >>> @candelabra.library.impl("docs_define::double", "cpu")
    ... def double(x):
    ...     return x * 2
    >>> candelabra.ops.docs_define.double(candelabra.ones(2))
    tensor([2., 2.])
    """
    if isinstance(qualname, Library):  # define(lib, schema): a decorator

        def register(function: Kernel) -> Kernel:
            name = qualname.define(schema or "")
            qualname.impl(name, function)
            return function

        return register
    check_name(qualname)
    if not isinstance(schema, str) or not schema.lstrip().startswith("("):
        raise ValueError(f'expected a schema such as "(Tensor x) -> Tensor", without the name, but got {schema!r}')
    namespace, _, name = qualname.partition("::")
    if lib is None:
        lib = _kept.get(namespace) or _kept.setdefault(namespace, Library(namespace, "FRAGMENT"))
    lib.define(name + schema.lstrip())
    return None


def impl(qualname: Any, types: Any, func: Kernel | None = None, *, lib: Library | None = None) -> Any:
    """Register a function for an operator on some device types; a decorator where `func` is not
    given.

    Parameters
    ----------
    qualname
        ``"mylib::f"``; or a `Library`, with the name of the operator as `types`.
    types
        Device types: ``"cpu"``, ``("cpu", "cuda")``, or ``"default"`` for all.
    func
        Of the operator's signature.
    lib
        Ignored; for compatibility with PyTorch.
    """
    if isinstance(qualname, Library):  # impl(lib, name, dispatch_key="")

        def put(function: Kernel) -> Kernel:
            qualname.impl(types, function, func if isinstance(func, str) else "")
            return function

        return put
    names = (types,) if isinstance(types, str) else tuple(types)

    def register(function: Kernel) -> Kernel:
        definition = definition_of(qualname)
        for name in names:
            definition.register_kernel(
                None if name in ("default", "CompositeExplicitAutograd") else _device_type(name), function
            )
        return function

    if func is None:
        return register
    register(func)
    return None


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Kernel | None = None, /, *, lib: Library | None = None
) -> Any:
    """Register a function that computes an operator on some device types.

    Parameters
    ----------
    op
        The operator, its definition, or its name.
    device_types
        Such as ``"cpu"``; None for all that have no kernel of their own.
    func
        Of the operator's signature. Without it, a decorator is returned.
    lib
        Ignored; for compatibility with PyTorch.

    Raises
    ------
    RuntimeError
        If there is no such operator.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.library.custom_op("docs::cube", mutates_args=(), device_types="cuda")
    ... def cube(x: candelabra.Tensor) -> candelabra.Tensor:
    ...     return x * x * x
    >>> @candelabra.library.register_kernel("docs::cube", "cpu")
    ... def cube_on_cpu(x):
    ...     return candelabra.from_numpy(x.numpy() ** 3)
    >>> cube(candelabra.tensor([2.0]))
    tensor([8.])
    """
    return definition_of(op).register_kernel(device_types, func)


def register_fake(
    op: Any,
    func: Kernel | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = False,
) -> Any:
    """Register a function that describes the results of an operator: tensors of the same sizes,
    dtype and device, whose values mean nothing.

    A compiled kernel writes to the tensors that it makes. `opcheck` compares them with what the
    kernels return.

    Parameters
    ----------
    op
        The operator, its definition, or its name. An operator of this name may also be defined
        later.
    func
        Of the operator's signature. Without it, a decorator is returned.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.library.custom_op("docs::row_sums", mutates_args=())
    ... def row_sums(x: candelabra.Tensor) -> candelabra.Tensor:
    ...     return x.sum(-1)
    >>> @candelabra.library.register_fake("docs::row_sums")
    ... def _(x):
    ...     return x.new_empty(x.shape[:-1])
    """
    if isinstance(op, str) and op not in DEFINITIONS:
        check_name(op)

        def keep(function: Kernel) -> Kernel:
            PENDING_FAKES[op] = function
            return function

        return keep if func is None else keep(func)
    definition = definition_of(op)
    return definition.register_fake if func is None else definition.register_fake(func)


impl_abstract = register_fake


def register_autograd(
    op: Any, backward: Kernel, /, *, setup_context: Kernel | None = None, lib: Library | None = None
) -> None:
    """Give an operator a gradient.

    Parameters
    ----------
    op
        The operator, its definition, or its name.
    backward
        ``backward(ctx, *gradients)``: from the gradients of the results, those of the positional
        arguments, one each; None for what has none. It is made of operators, for gradients of
        gradients; a list of tensors has a list of gradients.
    setup_context
        ``setup_context(ctx, inputs, output)`` keeps what `backward` needs:
        ``ctx.save_for_backward(...)`` for tensors, attributes of `ctx` for all else. Where the
        operator has keyword-only arguments it also takes ``keyword_only_inputs``.
    lib
        Ignored; for compatibility with PyTorch.

    Raises
    ------
    RuntimeError
        If there is no such operator, or it changes its arguments.

    Notes
    -----
    Tangents (`candelabra.func.jvp`) follow from the gradient.

    Examples
    --------
    >>> import candelabra, numpy
    >>> @candelabra.library.custom_op("docs::numpy_sin", mutates_args=())
    ... def numpy_sin(x: candelabra.Tensor) -> candelabra.Tensor:
    ...     return candelabra.from_numpy(numpy.sin(x.numpy()))
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> def gradient(ctx, grad):
    ...     (x,) = ctx.saved_tensors
    ...     return grad * x.cos()
    >>> candelabra.library.register_autograd("docs::numpy_sin", gradient, setup_context=keep)
    >>> x = candelabra.zeros(2, requires_grad=True)
    >>> numpy_sin(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    definition_of(op).register_autograd(backward, setup_context=setup_context)


def register_vmap(op: Any, func: Kernel | None = None, /, *, lib: Library | None = None) -> Any:
    """Give an operator a rule for batches; without one, `candelabra.vmap` calls it once an entry.

    Parameters
    ----------
    op
        The operator, its definition, or its name.
    func
        ``func(info, in_dims, *arguments, **keywords)`` returns the results and where the batch is
        in each. `info` has ``batch_size`` and ``randomness``; `in_dims` says where the batch is in
        each positional argument, or None. Without it, a decorator is returned.
    lib
        Ignored; for compatibility with PyTorch.

    Examples
    --------
    >>> import candelabra
    >>> @candelabra.library.custom_op("docs::halve", mutates_args=())
    ... def halve(x: candelabra.Tensor) -> candelabra.Tensor:
    ...     return x / 2
    >>> @candelabra.library.register_vmap("docs::halve")
    ... def _(info, in_dims, x):
    ...     return halve(x), in_dims[0]
    >>> candelabra.vmap(halve)(candelabra.ones(2, 1))
    tensor([[0.5000],
            [0.5000]])
    """
    return definition_of(op).register_vmap(func)


def register_autocast(op: Any, device_type: str, cast_inputs: _C.dtype, /, *, lib: Library | None = None) -> None:
    """Have an operator's floating-point tensors cast to a dtype where calls are autocast on a
    device type.

    Parameters
    ----------
    op
        The operator, its definition, or its name.
    device_type
        Such as ``"cpu"``.
    cast_inputs
        Such as ``candelabra.bfloat16``.
    lib
        Ignored; for compatibility with PyTorch.

    Raises
    ------
    ValueError
        For a device type that there is not.
    """
    definition_of(op).register_autocast(device_type, cast_inputs)
