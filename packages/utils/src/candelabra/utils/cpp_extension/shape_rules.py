"""Shape rules: a notation for the shapes of results, and functions that allocate results.

``"(n, m), (m, k) -> (n, k)"`` has one group of sizes per tensor argument and per result, like the
signatures of NumPy's generalized ufuncs. A name stands for the same size everywhere. ``...`` stands
for leading sizes, which broadcast, and a number for itself. Sizes of results may contain sums,
differences, products, quotients, ``min`` and ``max``, and may refer to integer arguments by name. A
dtype may follow a result: ``(n): int64``; it defaults to that of the first tensor. ``like x`` is
the shape of argument `x`. ``data: int64`` means that the kernel determines the sizes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from candelabra.catalogue.schemas import Parsed

_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.USub, ast.Name, ast.Load, ast.Constant,
    ast.Call,
)  # fmt: skip
_FUNCTIONS = {"min": min, "max": max, "__builtins__": {}}
_DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "uint16",
    "uint32", "uint64",
)  # fmt: skip


class _Size(NamedTuple):
    """One size of a result, as a compiled expression."""

    text: str
    code: Any


class _Result(NamedTuple):
    #: Whether the group starts with ``...``.
    leading: bool
    sizes: tuple[_Size, ...]
    #: The name in ``like x``, or None.
    like: str | None
    #: Whether the kernel determines the sizes.
    by_kernel: bool
    dtype: Any


_empty = candelabra.ops.empty


def optional(schema: Parsed, name: str) -> bool:
    """Return whether a tensor argument is optional."""
    return any(parameter.name == name and parameter.type.endswith("?") for parameter in schema.parameters)


def split_groups(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


class ShapeRule:
    """Shape rule of an operator, callable as `candelabra.library.register_fake` requires.

    Parameters
    ----------
    name
        Name of the operator, for messages.
    schema
        The parsed schema.
    text
        The rule in the notation of this module.

    Raises
    ------
    ValueError
        If the text does not fit the schema.
    """

    def __init__(self, name: str, schema: Parsed, text: str) -> None:
        self.name, self.text = name, text
        self.parameters = [parameter.name for parameter in schema.parameters]
        self.tensors = [parameter.name for parameter in schema.parameters if parameter.type in ("Tensor", "Tensor?")]
        self.integers = [
            parameter.name for parameter in schema.parameters if parameter.type in ("int", "SymInt", "int?", "SymInt?")
        ]
        head, arrow, tail = text.partition("->")
        if not arrow:
            head, tail = "", text
        self.groups = self._argument_groups(head) if arrow else []
        self.results = [self._result(part) for part in split_groups(tail)]
        if len(self.results) != len(schema.results):
            self._refuse(f"it describes {len(self.results)} result(s), but the schema has {len(schema.results)}")

        one = self.results[0] if len(self.results) == 1 and not self.groups else None
        #: Position of the argument in a rule that is only ``like x``; allows a fast path.
        self.quick = (
            self.parameters.index(one.like)
            if one is not None and one.like is not None and not optional(schema, one.like)
            else None
        )

    @property
    def depends_on_data(self) -> bool:
        """Whether the kernel determines the sizes of any result."""
        return any(result.by_kernel for result in self.results)

    def _refuse(self, why: str) -> None:
        raise ValueError(f"{self.name}: the shape rule {self.text!r}: {why}")

    def _argument_groups(self, head: str) -> list[tuple[str, bool, tuple[str, ...]]]:
        parts = split_groups(head)
        if len(parts) != len(self.tensors):
            self._refuse(
                f"it has {len(parts)} group(s) of sizes for arguments, but the schema has {len(self.tensors)} tensor(s)"
            )
        groups = []
        for name, part in zip(self.tensors, parts, strict=True):
            if not (part.startswith("(") and part.endswith(")")):
                self._refuse(f"expected sizes in parentheses for argument '{name}', but got {part!r}")
            sizes = [size.strip() for size in part[1:-1].split(",") if size.strip()]
            leading = bool(sizes) and sizes[0] == "..."
            sizes = sizes[leading:]
            for size in sizes:
                if not (size.isidentifier() or size.isdigit()):
                    self._refuse(f"a size of argument '{name}' is a name or a number, not {size!r}")
            groups.append((name, leading, tuple(sizes)))
        return groups

    def _result(self, part: str) -> _Result:
        where, colon, dtype_name = part.partition(":")
        where, dtype_name = where.strip(), dtype_name.strip()
        if colon and dtype_name not in _DTYPES:
            self._refuse(f"there is no dtype {dtype_name!r}")
        dtype = getattr(candelabra, dtype_name) if colon else None
        if where == "data":
            return _Result(False, (), None, True, dtype)
        if where.startswith("like "):
            name = where.removeprefix("like ").strip()
            if name not in self.tensors:
                self._refuse(f"there is no tensor argument {name!r}")
            return _Result(False, (), name, False, dtype)
        if not (where.startswith("(") and where.endswith(")")):
            self._refuse(f"expected sizes in parentheses for a result, 'like ARGUMENT' or 'data', but got {where!r}")
        texts = _split_sizes(where[1:-1])
        leading = bool(texts) and texts[0] == "..."
        return _Result(leading, tuple(self._size(text) for text in texts[leading:]), None, False, dtype)

    def _size(self, text: str) -> _Size:
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            tree = None
        known = {size for _, _, sizes in self.groups for size in sizes} | set(self.integers)
        nodes = list(ast.walk(tree)) if tree is not None else []
        called = {id(node.func): node.func for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id not in known and id(node) not in called:
                self._refuse(
                    f"the size {text!r} names {node.id!r}, which is neither a size of an argument nor an int argument"
                )
        ok = tree is not None and all(isinstance(node, _ALLOWED) for node in nodes)
        ok = ok and all(isinstance(node, ast.Name) and node.id in ("min", "max") for node in called.values())
        ok = ok and all(isinstance(node.value, int) for node in nodes if isinstance(node, ast.Constant))
        if not ok or tree is None:
            self._refuse(
                f"the size {text!r} is no sum, difference, product or quotient (//) of names and whole numbers"
            )
        return _Size(text, compile(tree, "<shape rule>", "eval"))  # type: ignore[arg-type]

    # ---- calls

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Allocate the results of a call."""
        if self.quick is not None and self.quick < len(arguments):
            like = arguments[self.quick]
            return _empty(like.shape, dtype=self.results[0].dtype or like.dtype, device=like.device)
        values = dict(zip(self.parameters, arguments, strict=False)) | keywords
        bound: dict[str, int] = {name: int(values[name]) for name in self.integers if values.get(name) is not None}
        leading: tuple[int, ...] | None = None
        origin: dict[str, str] = {}
        for name, has_leading, sizes in self.groups:
            tensor = values.get(name)
            if tensor is None:
                continue
            leading = self._bind(name, tensor, has_leading, sizes, bound, origin, leading)
        first = next((values[name] for name in self.tensors if isinstance(values.get(name), Tensor)), None)
        made = [self._make(result, values, bound, leading, first) for result in self.results]
        return made[0] if len(made) == 1 else tuple(made)

    def _bind(
        self, name: str, tensor: Tensor, has_leading: bool, sizes: tuple[str, ...], bound: dict[str, int], origin: dict[str, str],
        leading: tuple[int, ...] | None,
    ) -> tuple[int, ...] | None:  # fmt: skip
        shape = tuple(tensor.shape)
        if len(shape) < len(sizes) or (len(shape) > len(sizes) and not has_leading):
            more = "at least " if has_leading else ""
            raise RuntimeError(
                f"{self.name}(): expected argument '{name}' to have {more}{len(sizes)} dimension(s), but got sizes {list(shape)}; the "
                f"shape rule is {self.text}"
            )
        front, rest = shape[: len(shape) - len(sizes)], shape[len(shape) - len(sizes) :]
        for dim, (size, got) in enumerate(zip(sizes, rest, strict=True), len(front)):
            wanted = int(size) if size.isdigit() else bound.setdefault(size, got)
            if size not in origin and not size.isdigit():
                origin[size] = name
            if wanted != got:
                why = "" if size.isdigit() else f" = {wanted}, as in '{origin[size]}'"
                raise RuntimeError(
                    f"{self.name}(): expected argument '{name}' to have size {size}{why} in dimension {dim}, but got sizes {list(shape)}; "
                    f"the shape rule is {self.text}"
                )
        if not has_leading:
            return leading
        if leading is None:
            return front
        try:
            return tuple(candelabra.broadcast_shapes(leading, front))
        except RuntimeError as error:
            raise RuntimeError(
                f"{self.name}(): the leading sizes of argument '{name}' do not broadcast: {error}"
            ) from None

    def _make(
        self,
        result: _Result,
        values: dict[str, Any],
        bound: dict[str, int],
        leading: tuple[int, ...] | None,
        first: Tensor | None,
    ) -> Any:
        like = values.get(result.like) if result.like is not None else first
        dtype = result.dtype or (like.dtype if like is not None else candelabra.get_default_dtype())
        if result.by_kernel:
            return dtype
        device = None if like is None else like.device
        if result.like is not None:
            shape: Sequence[int] = like.shape if like is not None else ()
        else:
            sizes = [eval(size.code, _FUNCTIONS, bound) for size in result.sizes]
            for size, value in zip(result.sizes, sizes, strict=True):
                if value < 0:
                    raise RuntimeError(
                        f"{self.name}(): the size {size.text} of a result would be {value}; the shape rule is {self.text}"
                    )
            shape = (*((leading or ()) if result.leading else ()), *sizes)
        return candelabra.empty(tuple(shape), dtype=dtype, device=device)


def _split_sizes(text: str) -> list[str]:
    return split_groups(text)


def from_function(name: str, schema: Parsed, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a shape function as a fake implementation.

    The function returns one size tuple, a list of them, or tensors, which are used as they are.
    """
    tensors = [number for number, parameter in enumerate(schema.parameters) if parameter.type == "Tensor"]

    def describe(*arguments: Any, **keywords: Any) -> Any:
        given = function(*arguments, **keywords)
        parts = given if isinstance(given, list) else [given]
        if isinstance(given, tuple) and given and not all(isinstance(size, int) for size in given):
            parts = list(given)
        first = arguments[tensors[0]] if tensors and tensors[0] < len(arguments) else None
        made = []
        for part in parts:
            if isinstance(part, (Tensor, candelabra.dtype)):
                made.append(part)
            elif isinstance(part, (tuple, candelabra.Size)) and all(
                isinstance(size, int) and size >= 0 for size in part
            ):
                dtype = candelabra.get_default_dtype() if first is None else first.dtype
                made.append(candelabra.empty(tuple(part), dtype=dtype, device=None if first is None else first.device))
            else:
                raise TypeError(
                    f"{name}(): the function of its shape must return a tuple of sizes, a list of such, or tensors, but returned {part!r}"
                )
        return made[0] if len(made) == 1 else tuple(made)

    return describe


def default_rule(schema: Parsed) -> str | None:
    """Return the default rule: results like the first tensor. None without tensor or result."""
    tensors = [
        parameter.name for parameter in schema.parameters if parameter.type == "Tensor" and not parameter.mutated
    ]
    return ", ".join([f"like {tensors[0]}"] * len(schema.results)) if tensors and schema.results else None
