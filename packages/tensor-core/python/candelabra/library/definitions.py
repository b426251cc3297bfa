"""The definition of a custom operator: the core's operator, and the functions registered for it."""

from __future__ import annotations

import contextlib
import re
import threading
from typing import Any, overload

from candelabra import _C, assembly
from candelabra.assembly import OperatorNamespace
from candelabra.catalogue.declaration import CUSTOM, DATA_DEPENDENT, NO_OUT
from candelabra.catalogue.schemas import Parsed, parse

from .schemas import infer_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Kernel = Callable[..., Any]

#: Definitions by qualified name, ``"mylib::f"``.
DEFINITIONS: dict[str, CustomOpDef] = {}
#: Fake functions of operators that are not defined yet.
PENDING_FAKES: dict[str, Callable[..., Any]] = {}
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*(\.[A-Za-z_]\w*)?\Z")


class CustomOpDef:
    """A custom operator, with methods that register kernels and rules. The result of `custom_op`.

    Calling it calls the operator ``candelabra.ops.NAMESPACE.NAME``.
    """

    def __init__(
        self, qualname: str, schema: str, function: Kernel | None = None, *, rule: str = "custom", tags: int = 0
    ) -> None:
        check_name(qualname)
        self._qualname = qualname
        self._namespace, _, self._name = qualname.partition("::")
        self._init_fn = function
        #: Kernels by device type; None for all device types without one.
        self._kernels: dict[str | None, Kernel] = {}
        self._disabled: set[str] = set()
        self._compiled: set[str] = set()
        self._fake: Kernel | None = None
        self._has_allocator = False
        self._has_autograd = False
        #: Whether the operators that a kernel calls are recorded and transformed, because the
        #: operator has no formula of its own.
        self._seen_through = False
        text = f"{qualname}{schema[schema.index('(') :]}"
        self._opoverload = _C.declare_operator(
            text, rule, tags | (CUSTOM | NO_OUT if rule == "custom" else 0), _doc(function), {}, ""
        )
        self._parsed: Parsed = parse(self._opoverload.schema)
        if rule == "custom":
            self._opoverload.implementation = self._run
        if not self._parsed.is_functional:
            self._opoverload.inplace_autograd_function = self._refuse_gradient
        DEFINITIONS[qualname] = self
        publish(self)
        if qualname in PENDING_FAKES:
            self.register_fake(PENDING_FAKES.pop(qualname))

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    # ---- what is registered

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Kernel | None = None, /) -> Any:
        """Register a function that computes the operator on these device types; with None, on all
        others.

        Parameters
        ----------
        device_types
            For example ``"cpu"`` or ``("cpu", "cuda")``.
        fn
            Of the operator's signature. Without it, a decorator is returned.

        Returns
        -------
        callable
            The function, or the decorator.
        """
        names = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)

        def register(function: Kernel) -> Kernel:
            if not callable(function):
                raise TypeError(f"{self._qualname}: a kernel must be callable, not {type(function).__name__}")
            for name in names:
                self._kernels[name] = function
                self._disabled.discard(name or "")
            self._refresh()
            return function

        return register if fn is None else register(fn)

    def register_compiled_kernel(
        self, device_type: str, library: str, symbol: str, allocator: Kernel | None = None
    ) -> None:
        """Register a function of a shared library as a kernel, by the interface of
        ``candelabra/backend.h``.

        Parameters
        ----------
        device_type
            The device type of its tensors.
        library
            The path of the library, which stays loaded.
        symbol
            The name of the function, a ``cb_kernel``.
        allocator
            Makes the results that the kernel writes. By default, the fake function does, also one
            that is registered later.

        Raises
        ------
        OSError
            If the library cannot be loaded, or has no such function.
        """
        from candelabra import backends

        backends.load(device_type)
        _C.register_compiled_kernel(device_type, self._qualname, str(library), symbol)
        self._compiled.add(device_type)
        if allocator is not None:
            self._has_allocator = True
            self._opoverload.allocator = allocator
        self._refresh()

    def register_fake(self, fn: Kernel, /) -> Kernel:
        """Register a fake function: it returns tensors with the sizes, dtypes and devices of the
        results, whose values are ignored.

        A compiled kernel without an allocator of its own writes its results to them. If the sizes
        of a result depend on values, the kernel gets a dtype instead of the tensor, and allocates
        the memory itself.
        """
        if not callable(fn):
            raise TypeError(f"{self._qualname}: register_fake() takes a callable, not {type(fn).__name__}")
        self._fake = fn
        if not self._has_allocator:
            self._opoverload.allocator = fn
        return fn

    def register_autograd(self, backward: Kernel, /, *, setup_context: Kernel | None = None) -> None:
        """Register a gradient formula; see :func:`candelabra.library.register_autograd`."""
        if not self._parsed.is_functional:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {self._opoverload.schema}. Please create a "
                "functional operator and register an autograd formula for that."
            )
        keyword_tensors = [
            one.name for one in self._parsed.parameters if one.keyword_only and one.type.startswith("Tensor")
        ]
        if keyword_tensors:
            raise NotImplementedError(
                f"register_autograd with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {self._opoverload.schema}"
            )
        self._has_autograd = True
        self._opoverload.autograd_function = _later(self._opoverload, backward, setup_context)
        self._refresh()

    def register_vmap(self, func: Kernel | None = None, /) -> Any:
        """Register a batching rule; see :func:`candelabra.library.register_vmap`."""

        def register(function: Kernel) -> Kernel:
            vars(self._opoverload)["vmap_rule"] = function
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: _C.dtype) -> None:
        """Register a dtype to which autocast casts the operator's floating-point tensors."""
        from candelabra.amp import autocasting

        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not autocasting.is_autocast_available(device_type):
            raise ValueError(f"Unknown device type: {device_type}")
        autocasting.register_operator(self._opoverload, device_type, cast_inputs)

    def register_autocast_kernel(self, device_type: str, fn: Kernel, /) -> Kernel:
        """Register a function that is called in place of the operator while calls are autocast on a
        device type. Nothing is autocast within it.
        """
        from candelabra.amp import autocasting

        if not autocasting.is_autocast_available(device_type):
            raise ValueError(f"Unknown device type: {device_type}")
        autocasting.register_function(self._opoverload, device_type, fn)
        return fn

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """Disable the kernel of a device type within the block, so that the one for all device
        types is used.
        """
        known = device_type in self._kernels
        before = device_type in self._disabled
        if known:
            (self._disabled.discard if enabled else self._disabled.add)(device_type)
            self._refresh()
        try:
            yield
        finally:
            if known:
                (self._disabled.add if before else self._disabled.discard)(device_type)
                self._refresh()

    # ---- how it runs

    def _kernel_for(self, device_type: str) -> Kernel:
        found = self._kernels.get(device_type)
        # A fake function makes the results of tensors without memory.
        if found is None and device_type == "meta" and self._fake is not None:
            if self._opoverload.tags & DATA_DEPENDENT:
                raise NotImplementedError(
                    f"Could not run '{self._qualname}' on the device 'meta': the shape of its result depends on data"
                )
            return self._fake
        if found is None or device_type in self._disabled:
            found = self._kernels.get(None)
        if found is not None:
            return found
        there = sorted({*(name for name in self._kernels if name is not None), *self._compiled} - self._disabled)
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the '{device_type}' device: "
            + (f"it has kernels for {', '.join(there)} only; " if there else "it has no kernel; ")
            + f'candelabra.library.register_kernel("{self._qualname}", "{device_type}") registers one'
        )

    def _falls_back(self, device_type: str) -> bool:
        """Tell whether the kernel of the CPU computes for a device type without a kernel."""
        known = {*self._kernels, *self._compiled} - self._disabled
        return "cpu" in known and not known & {device_type, None} and _C.has_cpu_fallback(device_type)

    def _run(self, device: Any, *arguments: Any, **keywords: Any) -> Any:
        """Run a Python kernel; the core calls this. Autograd does not record the operators that it
        calls.
        """
        if self._falls_back(device.type):
            from candelabra.backends.fallback import run

            return run(self._opoverload, (*arguments, *keywords.values()), None, device)
        kernel = self._kernel_for(device.type)
        before = _C.set_grad_enabled(False)
        try:
            result = kernel(*arguments, **keywords)
        finally:
            _C.set_grad_enabled(before)
        return self._checked(result)

    def _run_open(self, *arguments: Any, **keywords: Any) -> Any:
        """Run a Python kernel, whose operators autograd records."""
        return self._checked(
            self._kernel_for(_device_type_of((*arguments, *keywords.values())))(*arguments, **keywords)
        )

    def _checked(self, result: Any) -> Any:
        """Return the result, after checking its types against the schema."""
        results = self._parsed.results
        if results == ("Tensor",):
            if isinstance(result, _C.Tensor):
                return result
        elif not results:
            if result is None:
                return None
        elif len(results) == 1:
            if _fits(result, results[0]):
                return result
        elif isinstance(result, (tuple, list)) and len(result) == len(results):
            for position, (one, kind) in enumerate(zip(result, results, strict=True)):
                if not _fits(one, kind):
                    raise RuntimeError(
                        f"{self._qualname}(): the kernel returned {type(one).__name__} as result {position}, but its schema says {kind}: "
                        f"{self._opoverload.schema}"
                    )
            return tuple(result)
        raise RuntimeError(
            f"{self._qualname}(): the kernel returned {_described(result)}, but its schema says {_wanted(results)}: {self._opoverload.schema}"
        )

    def _refresh(self) -> None:
        """Tell the core whether autograd and transforms see the operator or the operators that its
        kernel calls.
        """
        open_ = self._seen_through and not self._has_autograd and self._parsed.is_functional and bool(self._kernels)
        self._opoverload.composite = self._run_open if open_ else None
        if not self._has_autograd and self._parsed.is_functional:
            self._opoverload.autograd_function = None if open_ else _later(self._opoverload, None, None)

    def _refuse_gradient(self, operator: Any, *arguments: Any) -> Any:
        raise RuntimeError(
            f"{self._qualname}(): an operator that changes its arguments has no gradient, but one of the arguments requires grad. Call it "
            "within candelabra.no_grad() or on detached tensors, or define a functional operator and register_autograd() for that."
        )


def check_name(qualname: str) -> None:
    """Check that a name is qualified."""
    if not isinstance(qualname, str) or not _NAME.match(qualname):
        raise ValueError(f'expected the name of a custom operator to look like "namespace::name", but got {qualname!r}')


def _doc(function: Kernel | None) -> str:
    return (getattr(function, "__doc__", None) or "") if function is not None else ""


def _device_type_of(arguments: Iterable[Any]) -> str:
    for argument in arguments:
        if isinstance(argument, _C.Tensor):
            return argument.device.type
        if isinstance(argument, (list, tuple)):
            for entry in argument:
                if isinstance(entry, _C.Tensor):
                    return entry.device.type
    for argument in arguments:
        if isinstance(argument, _C.device):
            return argument.type
    return _C.get_default_device().type


def _fits(value: Any, kind: str) -> bool:
    if kind.endswith("?"):
        return value is None or _fits(value, kind[:-1])
    if kind.endswith("[]"):
        return isinstance(value, (list, tuple)) and all(_fits(entry, kind[:-2]) for entry in value)
    if kind == "Tensor":
        return isinstance(value, _C.Tensor)
    if kind in ("int", "SymInt"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "float":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "Scalar":
        return isinstance(value, (bool, int, float, complex))
    return isinstance(value, {"bool": bool, "str": str}.get(kind, object))


def _described(result: Any) -> str:
    if isinstance(result, (tuple, list)):
        return f"a {type(result).__name__} of {len(result)} ({', '.join(type(one).__name__ for one in result)})"
    return type(result).__name__


def _wanted(results: tuple[str, ...]) -> str:
    return "no result" if not results else results[0] if len(results) == 1 else f"({', '.join(results)})"


def _later(operator: Any, backward: Kernel | None, setup_context: Kernel | None) -> Kernel:
    """Return an autograd function that candelabra.autograd creates when a call is first
    recorded.
    """

    def first(result: Any, *arguments: Any) -> Any:
        from candelabra.autograd import custom_operators  # type: ignore[attr-defined, unused-ignore]

        made = custom_operators.autograd_function_of(operator, backward, setup_context)
        if operator.autograd_function is first:
            operator.autograd_function = made
        return made(result, *arguments)

    return first


# ---- namespaces


class OverloadPacket:
    """The overloads of one name, such as ``candelabra.ops.mylib.f`` if only ``f.out`` is
    defined.
    """

    def __init__(self, qualname: str) -> None:
        self.__name__ = qualname

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        names = sorted(set(vars(self)) - {"__name__"})
        if len(names) == 1:
            return getattr(self, names[0])(*arguments, **keywords)
        raise RuntimeError(f"{self.__name__} has several overloads, name one: {', '.join(names)}")


def publish(definition: CustomOpDef) -> None:
    """Make an operator an attribute of ``candelabra.ops``."""
    namespace = vars(assembly.ops).get(definition._namespace)
    if namespace is None:
        namespace = OperatorNamespace(definition._namespace)
        setattr(assembly.ops, definition._namespace, namespace)
    elif not isinstance(namespace, OperatorNamespace):
        del DEFINITIONS[definition._qualname]
        _C.forget_operator(definition._qualname)
        raise ValueError(
            f"'{definition._namespace}' is the name of an operator of Candelabra and cannot be that of a namespace"
        )
    base, _, overload = definition._name.partition(".")
    operator = definition._opoverload
    if overload:
        if base not in vars(namespace):
            setattr(namespace, base, OverloadPacket(f"{definition._namespace}::{base}"))
        setattr(getattr(namespace, base), overload, operator)
        return
    before = vars(namespace).get(base)
    for name, other in vars(before).items() if isinstance(before, OverloadPacket) else ():
        if name != "__name__":
            setattr(operator, name, other)
    vars(operator)["default"] = operator
    setattr(namespace, base, operator)
    if operator.inplace is not None:
        setattr(namespace, f"{base}_", operator.inplace)


def forget(qualname: str) -> None:
    """Remove an operator from all tables, so that its name is free."""
    definition = DEFINITIONS.pop(qualname, None)
    if definition is None:
        return
    _C.forget_operator(qualname)
    namespace = vars(assembly.ops).get(definition._namespace)
    base, _, overload = definition._name.partition(".")
    holder, name = (getattr(namespace, base, None), overload) if overload else (namespace, base)
    if holder is not None and vars(holder).get(name) is definition._opoverload:
        delattr(holder, name)
    if isinstance(namespace, OperatorNamespace) and set(vars(namespace)) == {"__name__"}:
        delattr(assembly.ops, definition._namespace)


def operator_named(qualname: str) -> Any:
    """Return the custom operator of a qualified name, ``"mylib::f"``. Unpickling calls this.

    Raises
    ------
    RuntimeError
        If there is no such operator. The module that defines it must be imported first.
    """
    return definition_of(qualname)._opoverload


def definition_of(op: Any) -> CustomOpDef:
    """Return the definition of an operator, given its name, the operator or the definition."""
    if isinstance(op, CustomOpDef):
        return op
    name = op.name if isinstance(op, _C.Operator) else op
    if not isinstance(name, str):
        raise ValueError(f"expected a custom operator or its name, but got {type(op).__name__}")
    if isinstance(op, str):
        check_name(name)
    found = DEFINITIONS.get(name)
    if found is None:
        raise RuntimeError(
            f"operator {name} does not exist: custom_op() or Library.define() has to define it before something is registered for it"
            if "::" in name
            else f"{name} is no custom operator: its kernels come with the backends (docs/backends.md)"
        )
    return found


@overload
def custom_op(
    name: str, fn: None = None, /, *, mutates_args: str | Iterable[str], device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> Callable[[Kernel], CustomOpDef]: ...  # fmt: skip
@overload
def custom_op(
    name: str, fn: Kernel, /, *, mutates_args: str | Iterable[str], device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> CustomOpDef: ...  # fmt: skip
def custom_op(
    name: str,
    fn: Kernel | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
) -> Any:
    """Define an operator by a function.

    The operator is opaque: gradients, batching and autocast use the registered functions, and do
    not trace the operators that `fn` calls.

    Parameters
    ----------
    name
        ``"namespace::name"``. Replaces an existing operator of that name.
    fn
        The function. Without it, a decorator is returned.
    mutates_args
        The names of the tensors that `fn` changes in place, or ``"unknown"``. A change of another
        tensor raises a RuntimeError if the core detects it, and otherwise leads to wrong gradients.
    device_types
        The device types whose kernel is `fn`; all by default.
    schema
        Such as ``"(Tensor x, float strength) -> Tensor"``; read from the annotations of `fn` by
        default.

    Returns
    -------
    CustomOpDef
        The operator, with methods ``register_kernel``, ``register_autograd``, ``register_fake`` and
        ``register_vmap``.

    Raises
    ------
    ValueError
        If the name or the annotations are invalid, or `mutates_args` contradicts `schema`.
    NotImplementedError
        For keyword-only tensors.

    Examples
    --------
    >>> import candelabra, numpy
    >>> @candelabra.library.custom_op("docs::sinc_squared", mutates_args=())
    ... def sinc_squared(x: candelabra.Tensor) -> candelabra.Tensor:
    ...     return candelabra.from_numpy(numpy.sinc(x.numpy()) ** 2)
    >>> sinc_squared(candelabra.tensor([0.0, 0.5]))
    tensor([1.0000, 0.4053])
    >>> candelabra.ops.docs.sinc_squared
    <operator docs::sinc_squared(Tensor x) -> Tensor>
    """
    check_name(name)
    mutated = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args)

    def define(function: Kernel) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutated) if schema is None else schema
        parsed = parse(text)
        if schema is not None:
            said = {one.name for one in parsed.parameters if one.mutated}
            if not isinstance(mutated, str) and said != set(mutated):
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema suggests that the op "
                    f"mutates {said} which is different from what was provided to us in `mutates_args`. Please make these consistent."
                )
        if any(one.keyword_only and one.type.startswith("Tensor") for one in parsed.parameters):
            raise NotImplementedError(
                f"custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {name}{text}"
            )
        takes_tensors = any(one.type.startswith("Tensor") for one in parsed.parameters)
        if (
            device_types is not None
            and not takes_tensors
            and not any(one.name == "device" for one in parsed.parameters)
        ):
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: candelabra.device` argument"
            )
        forget(name)
        made = CustomOpDef(name, text, function)
        made.register_kernel(device_types, function)
        return made

    return define if fn is None else define(fn)


# ---- the context of a fake function


class FakeImplCtx(threading.local):
    """The context of a fake function: creates sizes that depend on values."""

    active = False
    asked = False

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """Return a size that depends on values. Any number will do; the kernel determines the real
        one.
        """
        if not self.active:
            raise RuntimeError(
                "get_ctx().new_dynamic_size(): only a description of results asks this; the function of a compiled kernel returns a dtype in "
                "the place of a tensor whose size depends on values"
            )
        if min < 0 or (max is not None and max < min):
            raise ValueError(f"new_dynamic_size(): expected 0 <= min <= max, but got min={min}, max={max}")
        self.asked = True
        return min

    new_dynamic_size_ = create_unbacked_symint = new_dynamic_size


context = FakeImplCtx()


def get_ctx() -> FakeImplCtx:
    """Return the context of the running fake function, for ``get_ctx().new_dynamic_size()``."""
    return context
