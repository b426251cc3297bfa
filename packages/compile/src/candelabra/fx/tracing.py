"""Tracing: a program runs on proxies, and what it does becomes a graph."""

from __future__ import annotations

import collections
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import candelabra
import candelabra.nn as nn
from candelabra import _C, Tensor, pytree

from . import patching
from .codegen import PyTreeCodeGen, PyTreeInfo
from .graph import Graph
from .naming import is_ours
from .node import Argument, base_types
from .patching import Patches, is_fx_tracing, wrap
from .proxy import ParameterProxy, Scope, ScopeContextManager, TracerBase
from .proxyable_class import proxyable_classes

__all__ = ["PH", "PHBase", "PHWithMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing", "wrap"]

is_fx_symbolic_tracing = is_fx_tracing


class PHBase:
    """Stands for an argument that is a proxy, among concrete arguments."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """An argument that is a proxy, whose node gets the attributes of this object in its meta."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


def _assert_is_none(value: Any, message: str) -> None:
    """Raise AssertionError if a value is not None: an argument that was None while it was
    traced.
    """
    if value is not None:
        raise AssertionError(message)


def _named(tensors: Any, value: Any) -> str | None:
    return next((name for name, tensor in tensors if tensor is value), None)


class Tracer(TracerBase):
    """Traces functions and modules. Subclasses change what is traced.

    Parameters
    ----------
    autowrap_modules
        Python modules whose functions are recorded rather than traced, where the globals of the
        program have them.
    autowrap_functions
        The same for single functions.
    param_shapes_constant
        Whether programs may ask for the shapes of parameters.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx, nn
    >>> class NoLeaves(fx.Tracer):
    ...     def is_leaf_module(self, m, module_qualified_name):
    ...         return False
    >>> graph = NoLeaves().trace(nn.Sequential(nn.ReLU()))
    >>> [node.op for node in graph.nodes]
    ['placeholder', 'call_function', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        #: Modules whose functions the program calls by their attributes, such as ``math.sqrt``.
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root: nn.Module = nn.Module()
        self.root_module_name = ""
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.tensor_attrs: dict[Tensor, str] = {}
        #: The parameters of the root and their names, by identity.
        self._parameters: dict[int, tuple[str, Tensor]] = {}
        self.scope = Scope("", None)
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self._qualname_counter: dict[str, int] = collections.defaultdict(int)

    # ---- what subclasses change

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Return whether calls of a module are nodes, rather than traced.

        By default that is so for the layers of `candelabra.nn`, except Sequential.
        """
        name = m.__module__
        return (name == "candelabra.nn" or name.startswith("candelabra.nn.")) and not isinstance(m, nn.Sequential)

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return what the call of a module is: a proxy for leaves, and else what its `forward`
        returns.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            number = self._qualname_counter[path]
            self._qualname_counter[path] += 1
            key = f"{path}@{number}" if number else path
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return what the program gets for a parameter, buffer or module: a proxy for
        parameters.
        """
        if not isinstance(attr_val, Tensor):
            return attr_val
        name = None
        if isinstance(attr_val, nn.Parameter):
            name = self._name_of_parameter(attr_val)
        elif self.proxy_buffer_attributes:
            name = _named(self.root.named_buffers(), attr_val)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            # Subclasses may have a create_proxy from before its last parameter was added.
            options: dict[str, Any] = {}
            if self.param_shapes_constant and isinstance(attr_val, nn.Parameter):
                options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, name, attr_val)
            parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
        return parameter_proxy_cache[name]

    def _name_of_parameter(self, parameter: Tensor) -> str | None:
        found = self._parameters.get(id(parameter))
        return _named(self.root.named_parameters(), parameter) if found is None else found[0]

    def path_of_module(self, mod: nn.Module) -> str:
        """Return the dotted path of a module in the root.

        Raises
        ------
        NameError
            If it is no submodule of the root.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is not None:
                return path
        else:
            for name, module in self.root.named_modules():
                if module is mod:
                    return name
        raise NameError("module is not installed as a submodule")

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name that begins with `prefix` and that the root has no attribute of."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Argument:
        """Return what stands for a value in the arguments of a node: for tensors, attributes of
        the root.
        """
        if isinstance(a, nn.Parameter):
            name = self._name_of_parameter(a)
            if name is None:
                raise NameError("parameter is not a member of this module")
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, Tensor):
            name = _named(self.root.named_buffers(), a) or self.tensor_attrs.get(a)
            if name is None:
                name = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        if type(a) in proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # ---- parameters of the root

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """Return the function to trace, and what it is called with.

        Parameters
        ----------
        root_fn
            The function, or the method of the root.
        is_module
            Whether the first parameter is the root.
        concrete_args
            Arguments that are no proxies, by name or in order.
        """
        analysed: Any = inspect.unwrap(root_fn)
        code = analysed.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(
            code.co_varnames[
                : count + bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
            ]
        )
        is_variadic = code.co_kwonlyargcount > 0 or bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
        args: list[Any] = []
        first = 0
        if is_module:
            if not names:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
            first = 1
        signature = inspect.signature(analysed)
        parameters = names[first:count]
        if isinstance(concrete_args, tuple):
            if len(parameters) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(parameters)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(parameters, concrete_args, strict=True))
        args += [self._parameter(name, concrete_args or {}, signature, analysed) for name in parameters]
        stars = iter(names[count:])
        if code.co_flags & inspect.CO_VARARGS:
            args.append(self.proxy(self.create_node("placeholder", f"*{next(stars)}", (), {})))
        if code.co_flags & inspect.CO_VARKEYWORDS:
            args.append(self.proxy(self.create_node("placeholder", f"**{next(stars)}", (), {})))
        if is_variadic:
            root_fn = _positional(analysed, len(args))
        if concrete_args is None:
            return root_fn, args
        return self._flattened(root_fn, args, names[:count], first)

    def _parameter(self, name: str, concrete: dict[str, Any], signature: inspect.Signature, function: Any) -> Any:
        """Return the proxy of a parameter, or its concrete argument with proxies in it."""
        parameter = signature.parameters[name]
        default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        if name not in concrete:
            # The annotations of layers are for type checkers.
            annotation = None if is_ours(function) else function.__annotations__.get(name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)
        number = 0

        def replace(value: Any) -> Any:
            nonlocal number
            number += 1
            made = self.create_proxy("placeholder", f"{name}_{number}", default, {})
            if isinstance(value, PHBase):
                made.node.meta.update(vars(value))
                return made
            message = f"{name} has been specialized to have value {value} but got another value"
            if value is None:
                self.create_proxy("call_function", _assert_is_none, (made, message), {})
            elif isinstance(value, base_types) and not isinstance(value, Tensor):
                self.create_proxy("call_function", candelabra._assert, (made == value, message), {})
            else:
                _C.warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the user to make "
                    "sure that your inputs match the inputs you specialized the function with.",
                )
            return value

        return pytree.tree_map(replace, concrete[name])

    def _flattened(
        self, root_fn: Callable[..., Any], args: list[Any], names: list[str], first: int
    ) -> tuple[Any, list[Any]]:
        """Return a function of leaves if arguments are containers, and the leaves."""
        leaves, in_spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in in_spec.children()):
            return root_fn, args
        # Generated code makes a list of its arguments, of which the module is none.
        arguments_spec = pytree.tree_structure(args[first:])
        codegen = PyTreeCodeGen(PyTreeInfo(names[first:], arguments_spec, None))
        self.graph._codegen = codegen

        def flat(*flat_args: Any) -> Any:
            result = root_fn(*pytree.tree_unflatten(flat_args, in_spec))
            results, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        return flat, leaves

    # ---- tracing

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or function.

        Parameters
        ----------
        root
            The module, whose `forward` is traced, or the function.
        concrete_args
            Arguments that are no proxies, by name: the program may branch on them.
        """
        fn: Any
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = nn.Module()
            fn = root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        self.tensor_attrs = {}
        self._collect_tensors(self.root, [])
        self._parameters = {id(parameter): (name, parameter) for name, parameter in self.root.named_parameters()}
        if not isinstance(fn, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        names = inspect.unwrap(fn).__globals__
        fn, args = self.create_args_for_root(fn, isinstance(root, nn.Module), concrete_args)
        patches = Patches(self._autowrap_function_ids)
        proxies: dict[str, Any] = {}

        def call(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return patching.module_call(module, args, kwargs)

            patches.replace_in(getattr(type(module).forward, "__globals__", {}))
            return self.call_module(module, forward, args, kwargs)

        def get(name: str, value: Any) -> Any:
            return self.getattr(name, value, proxies)

        try:
            with patching.tracing(patches), patching.tracing_modules(call, get):
                patches.replace_in(names)
                for module in self._autowrap_search:
                    patches.replace_in(vars(module))
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {})
        finally:
            self.submodule_paths = None
            self._parameters = {}
        return self.graph

    def _collect_tensors(self, module: nn.Module, atoms: list[str]) -> None:
        for name, value in module.__dict__.items():
            if isinstance(value, Tensor):
                self.tensor_attrs.setdefault(value, ".".join([*atoms, name]))
        for name, child in module.named_children():
            self._collect_tensors(child, [*atoms, name])


def _positional(function: Any, count: int) -> Any:
    """Return a function that takes all its parameters by position, also ``*args`` and ``**kwargs``,
    each of which is then one argument.
    """
    code = function.__code__
    code = code.replace(
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
