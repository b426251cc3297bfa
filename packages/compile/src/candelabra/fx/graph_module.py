"""Modules made of graphs."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import candelabra.nn as nn

from . import attributes
from .codegen import CodeGen, PythonCode, PyTreeCodeGen, PyTreeInfo
from .graph import Graph
from .naming import CUSTOM_BUILTINS
from .node import Node
from .patching import WRAPPED_HERE
from .tracing import Tracer

__all__ = ["GraphModule", "reduce_graph_module"]

USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"

_numbers = itertools.count()


def _compiled(source: str, names: dict[str, Any]) -> tuple[Callable[..., Any], str]:
    """Return the function ``forward`` that some code defines, and the file name of the code."""
    file = f"<eval_with_key>.{next(_numbers)}"
    # Tracebacks show the lines of a file that is in this cache. Without a time, it stays.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = {**names, WRAPPED_HERE: set()}
    try:
        exec(compile(source, file, "exec"), scope)
    except BaseException:
        linecache.cache.pop(file, None)
        raise
    return scope["forward"], file


def _import_statement(name: str, obj: Any) -> str:
    if name in CUSTOM_BUILTINS:
        return CUSTOM_BUILTINS[name].import_str
    module = getattr(obj, "__module__", None) or "__main__"
    attribute = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or getattr(obj, "_name", None)
    if attribute is None or "<" in attribute:
        raise AttributeError(f"{obj!r} cannot be imported, as the code of a pickled GraphModule does")
    root, _, rest = attribute.partition(".")
    if rest:
        return f"from {module} import {root} as _{name}\n{name} = _{name}.{rest}"
    return f"from {module} import {attribute} as {name}"


def import_block(names: dict[str, Any]) -> str:
    """Return the statements that bind the global names of some code."""
    return "\n".join(sorted(_import_statement(name, obj) for name, obj in names.items())) + "\n"


class CodeOnlyModule(nn.Module):
    """The attributes of a module without its class, to be traced again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        for table in ("_parameters", "_buffers", "_modules"):
            for name, value in body.get(table, {}).items():
                getattr(self, table)[name] = value
        for name, value in body.items():
            if name not in ("_parameters", "_buffers", "_modules"):
                self.__dict__.setdefault(name, value)
        for name in ("training", "_non_persistent_buffers_set"):
            if name in body:
                self.__dict__[name] = body[name]


def reduce_graph_module(body: dict[str, Any], import_block: str) -> nn.Module:
    """Return a module of its attributes and of its code, which is run and traced; for pickle."""
    source = body.get("_code") or body["code"]
    forward, _ = _compiled(import_block + source, {})
    return _retraced(forward, body)


def _retraced(forward: Callable[..., Any], body: dict[str, Any]) -> nn.Module:
    tracer_cls = body.get("_tracer_cls") or Tracer

    class KeepModules(tracer_cls):  # type: ignore[misc, valid-type]
        def is_leaf_module(self, _: nn.Module, __: str) -> bool:
            return True

    class Traced(CodeOnlyModule):
        pass

    Traced.forward = forward  # type: ignore[method-assign]
    root = Traced(body)
    graph = KeepModules().trace(root, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = tracer_cls
    if "_pytree_info" in body:
        graph._codegen = PyTreeCodeGen(PyTreeInfo(*body["_pytree_info"]))
    made = GraphModule(root, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return made


class GraphModule(nn.Module):
    """A module that runs a graph: its `forward` is generated from it.

    Each instance has a class of its own. After a change of the graph, `recompile` generates the
    code anew; assigning `graph` does so as well.

    Parameters
    ----------
    root
        The module whose attributes the graph refers to, or a dict of them by dotted path.
    graph
        The graph.
    class_name
        The name of the class.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import fx
    >>> traced = fx.symbolic_trace(lambda x: x + 1)
    >>> traced(candelabra.ones(2))
    tensor([2., 2.])
    >>> for node in traced.graph.find_nodes(op="call_function"):
    ...     node.update_arg(1, 2)
    >>> _ = traced.recompile()
    >>> traced(candelabra.ones(2))
    tensor([3., 3.])
    """

    _code: str
    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # An instance that is copied passes its own class.
        base = next(each for each in cls.__mro__ if "_fx_files" not in vars(each))
        files: list[str] = []
        made: type = type("GraphModuleImpl", (base,), {"_fx_files": files})
        weakref.finalize(made, _forget_sources, files).atexit = False
        return super().__new__(made)

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        referring = [node for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in referring:
                attributes.copy_attribute(root, self, str(node.target))
        elif isinstance(root, dict):
            for node in referring:
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            # Parents first: a module would replace the attributes set on it before.
            for path in sorted(dict.fromkeys(str(node.target) for node in referring), key=lambda path: path.count(".")):
                attributes.assign(root[path], self, path)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        for name in ("_create_node_hooks", "_erase_node_hooks", "_replace_hooks", "_deepcopy_hooks"):
            self.__dict__[name] = []
        self.graph = graph
        # Local classes cannot be pickled.
        tracer_cls = graph._tracer_cls
        self._tracer_cls = tracer_cls if tracer_cls and "<locals>" not in tracer_cls.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        if isinstance(root, nn.Module) and hasattr(root, "meta") and isinstance(root.meta, dict):
            preserved = root.meta.get(USER_PRESERVED_ATTRIBUTES_KEY)
            if preserved:
                self.meta[USER_PRESERVED_ATTRIBUTES_KEY] = preserved
                self.__dict__.update(preserved)

    # ---- the graph and its code

    @property
    def graph(self) -> Graph:
        """The graph; assign one to run it."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code generated from the graph."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Generate the code from the graph; call it after a change of the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        code = self._graph.python_code("self")
        self._code = code.src
        cls: Any = type(self)
        _forget_sources(cls._fx_files)
        cls.forward, file = _compiled(self._code, code.globals)
        cls._fx_files[:] = [file]
        return code

    # ---- submodules

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Add a submodule by its dotted path, and return whether that was possible.

        Modules on the way are made. Something on it that is no module makes it impossible.
        """
        *way, name = target.split(".")
        module: nn.Module = self
        for atom in way:
            child = getattr(module, atom, None)
            if child is None:
                child = nn.Module()
                setattr(module, atom, child)
            if not isinstance(child, nn.Module):
                return False
            module = child
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete a submodule by its dotted path, and return whether there was one."""
        *way, name = target.split(".")
        module: Any = self
        for atom in way:
            module = getattr(module, atom, None)
            if not isinstance(module, nn.Module):
                return False
        if not isinstance(getattr(module, name, None), nn.Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that the graph neither calls nor has attributes of."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                atoms = str(node.target).split(".")
                used.update(".".join(atoms[:end]) for end in range(1, len(atoms) + 1))
            if node.op == "call_module":
                used.update(
                    f"{node.target}.{name}" for name, _ in self.get_submodule(str(node.target)).named_modules() if name
                )
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- files and copies

    def __reduce__(self) -> tuple[Any, ...]:
        body = self.__dict__.copy()
        codegen = self._graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            # The code of the leaves is traced again.
            body["_pytree_info"] = tuple(codegen.pytree_info)
            self._graph._codegen = CodeGen()
        try:
            code = self._graph.python_code("self")
        finally:
            self._graph._codegen = codegen
        for name in ("_graph", "_create_node_hooks", "_erase_node_hooks", "_replace_hooks", "_deepcopy_hooks"):
            body.pop(name, None)
        body["_graphmodule_cls_name"] = type(self).__name__
        body["_code"] = code.src
        return reduce_graph_module, (body, import_block(code.globals))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        body = dict(self.__dict__)
        hooks = body.pop("_deepcopy_hooks", [])
        for name in ("_create_node_hooks", "_erase_node_hooks", "_replace_hooks"):
            body.pop(name, None)
        copied = CodeOnlyModule(copy.deepcopy(body, memo))
        self._deepcopy_init()(made, copied, copied.__dict__["_graph"], type(self).__name__)
        # State that the graph does not refer to.
        for name in (
            "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
            "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
            "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks", "_hooked",
        ):  # fmt: skip
            if name in copied.__dict__:
                made.__dict__[name] = copied.__dict__[name]
        made.meta = copied.__dict__.get("meta", {})
        made.__dict__.update(made.meta.get(USER_PRESERVED_ATTRIBUTES_KEY, {}))
        for hook in hooks:
            hook(made)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph, type(self).__name__)
        made.meta = getattr(self, "meta", {})
        # Both run the graph, which refers to this one still.
        self.graph.owning_module = self
        return made

    def _replicate_for_data_parallel(self) -> Any:
        made = copy.copy(self)
        made.__dict__["_is_replica"] = True
        return made

    # ---- printing

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> NoReturn:
        """Raise an error: modules are pickled, and `candelabra.export` stores programs."""
        raise NotImplementedError(
            "GraphModule.to_folder() is not supported: pickle the module, print its code, or use candelabra.export.save"
        )

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: Sequence[str] | None = None,
    ) -> str:
        """Return the code of the module and of its submodules of graphs, as a class; print it too.

        Parameters
        ----------
        print_output
            Whether to print.
        include_stride, include_device, colored, fast_sympy_print, expanded_def, additional_meta
            Accepted for compatibility.
        """
        text = _readable(self, self._get_name())
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    # ---- hooks

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self.__dict__["_replace_hooks"].append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self.__dict__["_replace_hooks"].remove(f)

    def _register_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_create_node_hooks"].append(f)

    def _unregister_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_create_node_hooks"].remove(f)

    def _register_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_erase_node_hooks"].append(f)

    def _unregister_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self.__dict__["_erase_node_hooks"].remove(f)

    def _register_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self.__dict__["_deepcopy_hooks"].append(f)

    def _unregister_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self.__dict__["_deepcopy_hooks"].remove(f)


def _forget_sources(files: list[str]) -> None:
    for file in files:
        linecache.cache.pop(file, None)


def _readable(module: GraphModule, name: str) -> str:
    code = module._code.lstrip("\n")
    parts = [f"class {name}(candelabra.nn.Module):", _indented(code)]
    for child_name, child in module.named_children():
        if isinstance(child, GraphModule):
            parts.append(_indented(_readable(child, child_name)))
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join("    " + line if line.strip() else "" for line in text.rstrip("\n ").split("\n")) + "\n"
