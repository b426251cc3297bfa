"""Arguments for hostile calls: extreme sizes and numbers, tensors that overlap, and objects that
lie about what they are or change other arguments while they are parsed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import candelabra
from candelabra.catalogue.schemas import parse

#: Whether tensors can require gradients.
HAS_TAPE = importlib.util.find_spec("candelabra.autograd") is not None
DTYPES = (
    "float32", "float32", "float64", "int64", "int64", "bool", "uint8", "int32", "int8", "float16", "bfloat16", "complex64", "complex128",
)  # fmt: skip
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (3,), (3, 3), (3, 3), (2, 3), (3, 2), (0, 3), (3, 0), (0, 0), (2, 3, 3), (2, 0, 3), (2, 3, 4), (1, 2, 5, 5), (1, 2, 3, 4, 5),
)  # fmt: skip
INTEGERS = (
    0, 0, 1, 1, 2, 3, 4, -1, -1, -2, -5, 7, 100, 2**31 - 1, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**70),
)  # fmt: skip
REALS = (0.0, 1.0, 0.5, -1.0, 2.0, -0.5, 1e-30, 1e300, -1e300, float("inf"), -float("inf"), float("nan"))
STRINGS = (
    "", "mean", "sum", "none", "amax", "prod", "reduced", "complete", "r", "L", "U", "fro", "nuc", "ortho", "forward", "backward", "linear", "nearest",
    "bilinear", "bicubic", "area", "constant", "reflect", "replicate", "circular", "zeros", "border", "same", "valid", "left", "right", "gelsd", "ij", "xy",
    "trunc", "floor", "tanh", "ij,jk->ik", "...i->i", "i,i", "\0", "é" * 40, "float32",
)  # fmt: skip


class Draw(random.Random):
    """The random numbers of one call, and the arguments that it has made so far."""

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        #: All arguments of the call, for those that change others.
        self.arguments: list[Any] = []
        #: Whether an argument has changed another one.
        self.acted = False


class Number:
    """An integer that is another one each time it is asked for."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __index__(self) -> int:
        return self._draw.choice(INTEGERS)

    def __float__(self) -> float:
        return self._draw.choice(REALS)

    def __bool__(self) -> bool:
        return self._draw.random() < 0.5

    __int__ = __index__

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class ChangingNumber(Number):
    """An integer that changes the other arguments of the call when it is asked for."""

    def __index__(self) -> int:
        self._act()
        return self._draw.choice((0, 1, 2))

    def __float__(self) -> float:
        self._act()
        return 0.5

    __int__ = __index__

    def _act(self) -> None:
        self._draw.acted = True
        for value in self._draw.arguments:
            if isinstance(value, list):
                self._draw.choice(_LIST_CHANGES)(value)
            elif isinstance(value, candelabra.Tensor):
                with contextlib.suppress(Exception):
                    self._draw.choice(_CHANGES)(value)


#: What a ChangingNumber does to lists and to tensors.
_LIST_CHANGES: tuple[Callable[[list[Any]], Any], ...] = (
    list.clear, list.reverse, lambda values: values.extend(values[:9]), lambda values: values.insert(0, 2**62),
)  # fmt: skip
_CHANGES: tuple[Callable[[candelabra.Tensor], Any], ...] = (
    lambda value: value.resize_(0), lambda value: value.resize_(64), lambda value: value.set_(), lambda value: value.requires_grad_(),
    lambda value: value.t_(), lambda value: setattr(value, "data", candelabra.ones(1, dtype=candelabra.int8)),
)  # fmt: skip


class LyingList(list):  # type: ignore[type-arg]
    """A list with another length and other elements than it says."""

    def __len__(self) -> int:
        return random.Random(id(self)).choice((0, 1, 5, 2**40))

    def __iter__(self) -> Iterator[Any]:
        return iter([1] * 5)


class LyingTuple(tuple):  # type: ignore[type-arg]
    """The same as a tuple."""

    __len__ = LyingList.__len__
    __iter__ = LyingList.__iter__


class LyingSequence:
    """What is a sequence by its methods alone, of a length that it does not have."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __len__(self) -> int:
        return self._draw.choice((0, 1, 2, 3, 1000))

    def __getitem__(self, at: int) -> Any:
        if at > 3:
            raise IndexError(at)
        return self._draw.choice((0, 1, 2, 2**62, self, None))


class LyingArray:
    """What says that it is an array, and gives something else."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def _lie(self, *_: Any, **__: Any) -> Any:
        return self._draw.choice((None, 3, "x", [1, 2], self))

    __array__ = __dlpack__ = __dlpack_device__ = __float__ = __index__ = _lie
    __array_struct__ = __array_interface__ = property(_lie)


class Overriding:
    """An argument that takes functions over, and returns what they never would."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return self._draw.choice((NotImplemented, None, self, [self]))


def liar(draw: Draw) -> Any:
    """Return an object that lies, or changes other arguments while they are parsed."""
    return draw.choice((
        lambda: Number(draw), lambda: ChangingNumber(draw), lambda: [1, ChangingNumber(draw), 2], lambda: [ChangingNumber(draw)],
        lambda: LyingList([1, 2]), lambda: LyingList([tensor(draw)]), lambda: LyingTuple((1, 2)), lambda: LyingSequence(draw),
        lambda: LyingArray(draw), lambda: Overriding(draw), lambda: [Number(draw), Number(draw)], lambda: _nested(draw),
        lambda: _cyclic(),
    ))()  # fmt: skip


def _nested(draw: Draw) -> Any:
    """Return lists in lists, deeper than a tensor has dimensions."""
    made: Any = 1
    for _ in range(draw.choice((2, 64, 65, 500))):
        made = [made]
    return made


def _cyclic() -> list[Any]:
    """Return a list that holds itself."""
    made: list[Any] = [1]
    made.append(made)
    return made


def tensor(draw: Draw, small: bool = False) -> candelabra.Tensor:
    """Return a small tensor of any dtype, in any layout, with extreme values."""
    dtype = getattr(candelabra, draw.choice(DTYPES))
    shape = draw.choice(SHAPES[:7] if small else SHAPES)
    count = 1
    for size in shape:
        count *= size
    kind = draw.random()
    if dtype.is_floating_point or dtype.is_complex:
        choices: Sequence[Any] = REALS if kind < 0.3 else (0.5, 1.5, -0.25, 2.0, 0.0)
    elif dtype is candelabra.bool:
        choices = (True, False)
    else:
        limits = candelabra.iinfo(dtype)
        choices = (limits.min, limits.max, 0, 1, 100) if kind < 0.3 else (0, 1, 2)
    made = candelabra.tensor([draw.choice(choices) for _ in range(count)], dtype=dtype).reshape(shape)
    layout = draw.random()
    others = [one for one in draw.arguments if isinstance(one, candelabra.Tensor) and one.numel() >= 2]
    if others and layout < 0.08:
        return _overlapping(draw, draw.choice(others))
    if layout < 0.1 and made.ndim >= 2:
        return made.transpose(0, -1)
    if layout < 0.2 and made.ndim and made.shape[0] == 1:
        return made.expand(draw.choice((0, 2, 5)), *made.shape[1:])
    if layout < 0.25 and made.numel() >= 3:
        return made.reshape(-1).as_strided((2, 2), (1, 1))
    if layout < 0.3 and dtype.is_complex:
        return made.conj()
    if layout < 0.32 and count:
        return made.reshape(-1)[:1].expand(2**40)[:0]
    if layout < 0.35:
        return made.reshape((1,) * (64 - made.ndim) + tuple(made.shape))
    if layout < 0.42 and HAS_TAPE and (dtype.is_floating_point or dtype.is_complex):
        return made.requires_grad_()
    return made


def _overlapping(draw: Draw, other: candelabra.Tensor) -> candelabra.Tensor:
    """Return a view of some of the memory of another argument."""
    other = other.detach()
    room = other.untyped_storage().nbytes() // other.element_size() - other.storage_offset()
    if room < 2:
        return other
    flat = other.as_strided((min(room, 64),), (1,), other.storage_offset())
    return draw.choice((flat[1:], flat[:-1], flat.flip(0), flat[: flat.numel() // 2 * 2].view(2, -1).T, flat[::2]))


def integers(draw: Draw) -> Any:
    """Return a list of dimensions or sizes, or one integer."""
    if draw.random() < 0.3:
        return draw.choice(INTEGERS)
    hurt = draw.random() < 0.3
    return [draw.choice(INTEGERS if hurt else (0, 1, 2, 3, -1)) for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4, 6)))]


def anything(draw: Draw) -> Any:
    """Return an argument of any type."""
    if draw.random() < 0.4:
        return liar(draw)
    return draw.choice(
        (
            lambda: tensor(draw), lambda: draw.choice(INTEGERS), lambda: draw.choice(REALS), lambda: draw.choice(STRINGS), lambda: None,
            lambda: integers(draw), lambda: True, lambda: 1j, lambda: [tensor(draw), tensor(draw)], lambda: candelabra.float32, object, dict,
            lambda: [None, "a"], lambda: b"ab",
        )
    )()  # fmt: skip


#: Numbers of iterations: as in PyTorch, 2**62 of them are computed.
COUNTS = frozenset(("niter", "num_layers", "max_iter"))
#: Parameters that are integers where nothing says so.
_INTEGER_NAMES = frozenset((
    "dim", "n", "k", "size", "kernel_size", "stride", "padding", "dilation", "output_size", "norm", "in_features", "out_features",
    "in_channels", "out_channels", "num_features",
))  # fmt: skip


def of_kind(draw: Draw, kind: str, name: str) -> Any:
    """Return an argument of the type that an annotation or a schema names."""
    if name == "params":
        return [candelabra.ones(2, 3).requires_grad_(), candelabra.zeros(draw.choice((0, 3))).requires_grad_()]
    if "Tensor" in kind and re.search(r"\[\]|list|Sequence|tuple|\[Tensor", kind):
        return [tensor(draw) for _ in range(draw.choice((0, 1, 2, 2, 3)))]
    if "Tensor" in kind or (kind == "" and name in ("input", "self", "other", "x", "A", "B", "x1", "x2")):
        return tensor(draw)
    if re.search(r"int\[\]|int\[1\]|[Ss]equence\[int|tuple\[int|list\[int|Size", kind):
        return integers(draw)
    if "dtype" in kind:
        return getattr(candelabra, draw.choice(DTYPES))
    if "bool" in kind:
        return draw.random() < 0.5
    if "str" in kind:
        return draw.choice(STRINGS)
    if "float" in kind or "Scalar" in kind or "Number" in kind:
        return draw.choice(REALS if draw.random() < 0.4 else (0.5, 1.0, 2, 1))
    if name in COUNTS:
        return draw.choice((0, 1, 2, -1))
    if "int" in kind or name in _INTEGER_NAMES:
        return draw.choice(INTEGERS if draw.random() < 0.4 else (0, 1, 2, -1))
    if "device" in kind:
        return candelabra.get_default_device()
    return anything(draw)


def parameters(function: Callable[..., Any]) -> list[tuple[str, str, bool, bool]]:
    """Return name, type, and whether required and keyword-only, of each parameter of a function or
    operator.
    """
    schema = getattr(function, "schema", None)
    if isinstance(schema, str):
        return [(one.name, one.type, one.default is None, one.keyword_only) for one in parse(schema).parameters]
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD,):
            continue
        kind = "" if parameter.annotation is parameter.empty else str(parameter.annotation)
        required = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        found.append((parameter.name, kind, required, parameter.kind is parameter.KEYWORD_ONLY))
    return found


def arguments(function: Callable[..., Any], draw: Draw) -> tuple[list[Any], dict[str, Any]]:
    """Return random arguments, mostly of the expected types, so that calls pass the first
    checks.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    gap = False
    for name, kind, required, keyword in parameters(function):
        if name == "generator" or (not required and draw.random() < 0.5):
            gap = True
            continue
        if name == "out":
            tensors = [value for value in positional if isinstance(value, candelabra.Tensor)]
            value = draw.choice(tensors) if tensors and draw.random() < 0.4 else tensor(draw)
            keywords["out"] = value if draw.random() < 0.9 else anything(draw)
            draw.arguments.append(keywords["out"])
            continue
        counts = name in COUNTS
        value = anything(draw) if draw.random() < 0.1 and not counts else of_kind(draw, kind, name)
        draw.arguments.append(value)
        if keyword or gap:
            keywords[name] = value
        else:
            positional.append(value)
    if "out" not in keywords and getattr(function, "schema", "").endswith("-> Tensor") and draw.random() < 0.1:
        keywords["out"] = tensor(draw)
    return positional, keywords


def shown(value: Any, depth: int = 0) -> str:
    """Return the source text of an argument."""
    if depth > 4:
        return "..."
    if isinstance(value, candelabra.Tensor):
        strides = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        values = value.tolist() if 0 < value.numel() <= 9 else ""
        return f"<{str(value.dtype)[11:]}{list(value.shape)}{strides} {values}>"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(shown(one, depth + 1) for one in value) + "]"
    return repr(value)
