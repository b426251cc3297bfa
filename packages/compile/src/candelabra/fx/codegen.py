"""Python code of a graph."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import candelabra
from candelabra import pytree

from .naming import CUSTOM_BUILTINS, Namespace, public_name, qualified_name, type_text
from .node import Argument, Node, nodes_in

__all__ = ["CodeGen", "PyTreeCodeGen", "PyTreeInfo", "PythonCode", "format_target"]

#: How calls of operators are written.
MAGIC_METHODS = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}", "pos": "+{}",
    "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}",
    "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
INPLACE_METHODS = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}", "imul": "{} *= {}",
    "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}",
    "itruediv": "{} /= {}", "ixor": "{} ^= {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """Source code, and the objects that its global names refer to."""

    src: str
    globals: dict[str, Any]


class PyTreeInfo(NamedTuple):
    """The parameters of a function before its containers were flattened, and the structures."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


def format_target(base: str, target: str) -> str:
    """Return the expression for an attribute by its dotted path.

    Examples
    --------
    >>> from candelabra.fx.codegen import format_target
    >>> format_target("self", "layers.0.weight")
    'getattr(self.layers, "0").weight'
    """
    for atom in target.split("."):
        base = f"{base}.{atom}" if atom.isidentifier() else f'getattr({base}, "{atom}")'
    return base


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Return by node those of its arguments that no later node uses."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(list(nodes)):
        for node in nodes_in((user.args, user.kwargs)):
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
    return found


class CodeGen:
    """Writes the function of a graph. Subclasses change its parameters and its result."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the first lines of the function, given its parameters."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument, *, repr_fn: Callable[[Any], str] | None = None) -> str:
        """Return the statement that returns the result."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """Return what the placeholders of a graph get for some arguments of its function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result of the function for that of the graph."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Return names and objects that the code refers to besides those of the nodes."""
        return []

    def generate(self, nodes: Iterable[Node], root_module: str, namespace: Namespace) -> PythonCode:
        """Return the code of some nodes, whose module is named `root_module` in it."""
        writer = _Writer(self, nodes, root_module, namespace)
        for node in writer.nodes:
            writer.write(node)
        body = "".join(writer.body) or "pass\n"
        code = "\n".join("    " + line for line in body.split("\n"))
        head = self.gen_fn_def(writer.free_vars, writer.return_annotation)
        wrapped = "\n".join(f'candelabra.fx.wrap("{name}")' for name in writer.wrapped)
        return PythonCode(f"\n{wrapped}\n\n{head}\n{code}", writer.globals)


class _Writer:
    """The text of one function while it is written."""

    def __init__(self, codegen: CodeGen, nodes: Iterable[Node], root_module: str, namespace: Namespace) -> None:
        self.codegen = codegen
        self.nodes = list(nodes)
        self.root_module = root_module
        self.namespace = namespace
        self.globals: dict[str, Any] = {}
        self.free_vars: list[str] = []
        self.body: list[str] = []
        #: Names of wrapped functions, in order.
        self.wrapped: dict[str, None] = {}
        self.return_annotation = ""
        self._last_uses = last_uses(self.nodes)
        for name, builtin in CUSTOM_BUILTINS.items():
            namespace.rename_object(builtin.obj, name)
            self.globals[name] = builtin.obj
        for name, value in codegen.additional_globals():
            self.add_global(name, value)

    def add_global(self, hint: str, obj: Any) -> str:
        """Return the name of an object in the code, which is a global one if it needs to be."""
        public = public_name(obj) if callable(obj) and obj is not candelabra.device else None
        if public is not None:
            return public
        name = self.namespace.create_name(hint.replace(".", "_"), obj if _can_be_key(obj) else None)
        if name not in self.globals:
            self.globals[name] = obj
        return name

    def type_text(self, annotation: Any) -> str:
        """Return an annotation in the code, whose types are globals."""
        if isinstance(annotation, str):
            return repr(annotation)
        origin = getattr(annotation, "__origin__", None)
        if origin is not None:
            name = self.add_global(type_text(origin), origin)
            arguments = getattr(annotation, "__args__", ())
            if not arguments:
                return name
            return f"{name}[{','.join(map(self.type_text, arguments))}]"
        if annotation is ...:
            return "..."
        return self.add_global(type_text(annotation), annotation)

    def text(self, arg: Any) -> str:
        """Return the expression of an argument."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple):
            if hasattr(arg, "_fields"):
                return f"{self.add_global(qualified_name(type(arg)), type(arg))}({', '.join(map(self.text, arg))})"
            return f"({', '.join(map(self.text, arg))}{',' if len(arg) == 1 else ''})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.text, arg))}]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{self.text(key)}: {self.text(value)}" for key, value in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.text(arg.start)}, {self.text(arg.stop)}, {self.text(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}.{arg.name}"
        if callable(arg) and not isinstance(arg, candelabra.Tensor):
            return self.add_global(qualified_name(arg), arg)
        return repr(arg)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self.text, args), *(f"{name} = {self.text(value)}" for name, value in kwargs.items())])

    def write(self, node: Node) -> None:
        """Append the statements of a node."""
        annotation = f" : {self.type_text(node.type)}" if node.type is not None else ""
        if node.op == "placeholder":
            default = f" = {self.text(node.args[0])}" if node.args else ""
            self.free_vars.append(f"{node.target}{annotation}{default}")
            name = str(node.target).replace("*", "")
            if name != repr(node):
                self.body.append(f"{node!r} = {name}\n")
            return
        if node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_text(node.type)}"
            self.body.append(self.codegen.generate_output(node.args[0], repr_fn=self.text))
            self.body.append("\n")
            return
        self.body.append(self._statement(node, annotation))
        unused = [*self._last_uses.get(node, []), *([] if node.users else [node])]
        self.body.append(";  " + " = ".join([*map(repr, unused), "None"]) + "\n" if unused else "\n")

    def _statement(self, node: Node, annotation: str) -> str:
        target = f"{node!r}{annotation}"
        if node.op == "get_attr":
            return f"{target} = {format_target(self.root_module, str(node.target))}"
        if node.op == "call_module":
            module = format_target(self.root_module, str(node.target))
            return f"{target} = {module}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            method = format_target(self.text(node.args[0]), str(node.target))
            return f"{target} = {method}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op != "call_function":
            raise NotImplementedError(f"node: {node.op} {node.target}")
        return self._call_of_function(node, target)

    def _call_of_function(self, node: Node, target: str) -> str:
        function: Any = node.target
        name = getattr(function, "__name__", "")
        if not node.kwargs and getattr(operator, name, None) is function:
            if name in MAGIC_METHODS:
                return f"{target} = {MAGIC_METHODS[name].format(*map(_operand, map(self.text, node.args)))}"
            if name in INPLACE_METHODS:
                return (
                    f"{INPLACE_METHODS[name].format(*map(self.text, node.args))};  {target} = {self.text(node.args[0])}"
                )
        if function is getattr and len(node.args) == 2 and not node.kwargs:
            base, attribute = node.args
            if isinstance(base, Node) and isinstance(attribute, str) and attribute.isidentifier():
                return f"{target} = {format_target(repr(base), attribute)}"
        global_name = self.add_global(qualified_name(function), function)
        if node.meta.get("is_wrapped", False):
            self.wrapped[global_name] = None
        return f"{target} = {global_name}({self.arguments(node.args, node.kwargs)})"


def _operand(text: str) -> str:
    # Minus binds less than **.
    return f"({text})" if text.startswith("-") else text


def _can_be_key(obj: Any) -> bool:
    try:
        hash(obj)
    except TypeError:
        return False
    return not isinstance(obj, float | int | str)


class PyTreeCodeGen(CodeGen):
    """Writes a function whose parameters and results are containers, which the graph has
    flattened.
    """

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Return the first lines of the function, which flatten its arguments."""
        if not self.pytree_info.orig_args:
            return super().gen_fn_def(free_vars, maybe_return_annotation)
        arguments = list(self.pytree_info.orig_args)
        has_self = bool(arguments) and arguments[0] == "self"
        if has_self:
            arguments = arguments[1:]
        definition = super().gen_fn_def(arguments, maybe_return_annotation)
        if free_vars:
            # Annotations and defaults are not part of an assignment.
            names = [name.split(":")[0].split("=")[0].strip() for name in free_vars]
            definition += (
                f"\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec([{', '.join(arguments)}], self._in_spec)"
            )
        return definition

    def generate_output(self, output_args: Argument, *, repr_fn: Callable[[Any], str] | None = None) -> str:
        """Return the statement that returns the result in its container."""
        text = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        return f"return pytree.tree_unflatten({text}, self._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        """Return the leaves of the arguments."""
        return pytree.arg_tree_leaves(*args)

    def process_outputs(self, outputs: Any) -> Any:
        """Return the result in its container."""
        if not isinstance(outputs, list | tuple):
            outputs = [outputs]
        if self.pytree_info.out_spec is None:
            return outputs
        return pytree.tree_unflatten(outputs, self.pytree_info.out_spec)
