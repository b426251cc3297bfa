"""Printing of tensors, in PyTorch's format.

Only the elements that are shown are read: a large tensor is reduced to its edges before it is
copied to the host.
"""

from __future__ import annotations

import math
from operator import index

from candelabra import _C
from candelabra.catalogue import OPERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from candelabra._C import Tensor

_select = OPERATORS["select"]
_narrow = OPERATORS["narrow"]
_detach = OPERATORS["detach"]

PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set options of printing tensors.

    Parameters
    ----------
    precision
        Digits after the decimal point. Default: 4.
    threshold
        Tensors with more elements are summarized by their edges. Default: 1000.
    edgeitems
        The number of elements at each edge. Default: 3.
    linewidth
        Characters per line. Default: 80.
    profile
        ``"default"``, ``"short"`` or ``"full"``: values of all these options, which the other
        arguments override.
    sci_mode
        Whether to use scientific notation. None, which every call without it sets, decides by the
        range of the elements.

    Raises
    ------
    ValueError
        If there is no such profile.
    TypeError
        If one of the counts is not an integer.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.set_printoptions(precision=2)
    >>> candelabra.tensor([1.23456])
    tensor([1.23])
    >>> candelabra.set_printoptions(profile="default")
    """
    if profile is not None:
        if profile not in PROFILES:
            raise ValueError(f"set_printoptions(): unknown profile {profile!r}; there are {', '.join(PROFILES)}")
        for name, value in PROFILES[profile].items():
            setattr(options, name, value)
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, setting in given.items():
        if setting is not None:
            setattr(options, name, float(setting) if name == "threshold" else index(setting))
    options.sci_mode = sci_mode


# ---- what is shown


def _shown(t: Tensor, summarize: bool) -> Any:
    """Return nested lists of the elements that are shown, with Ellipsis for omitted ones."""
    if t.ndim == 0 or not summarize:
        return t.tolist()
    length, edge = t.shape[0], options.edgeitems
    if length <= 2 * edge:
        return t.tolist() if t.ndim == 1 else [_shown(_select(t, 0, i), True) for i in range(length)]
    if t.ndim == 1:
        first, last = (_narrow(t, 0, start, edge).tolist() for start in (0, length - edge))
    else:
        first, last = (
            [_shown(_select(t, 0, i), True) for i in part] for part in (range(edge), range(length - edge, length))
        )
    return [*first, Ellipsis, *last]


def _flat(shown: Any) -> Iterator[Any]:
    if isinstance(shown, list):
        for part in shown:
            yield from _flat(part)
    elif shown is not Ellipsis:
        yield shown


# ---- numbers


class _Whole:
    """Formats integers and bools in a column of the widest one's width."""

    def __init__(self, values: list[Any]) -> None:
        self.width = max((len(str(value)) for value in values), default=1)

    def format(self, value: Any) -> str:
        return str(value).rjust(self.width)


class _Real:
    """Formats floating-point numbers: without decimals if all are integers, in scientific notation
    if their range is large.
    """

    def __init__(self, values: list[float]) -> None:
        finite = [value for value in values if value != 0 and math.isfinite(value)]
        self.scientific = False
        self.whole = all(value == math.ceil(value) for value in finite)
        self.width = 1
        if not finite:
            return
        magnitudes = [abs(value) for value in finite]
        smallest, largest = min(magnitudes), max(magnitudes)
        if options.sci_mode is None:
            self.scientific = largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4
        else:
            self.scientific = options.sci_mode
        self.width = max(len(self._text(value)) for value in finite)

    def _text(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{options.precision}f}"

    def format(self, value: float) -> str:
        return self._text(value).rjust(self.width)


class _Complex:
    """Formats complex numbers: real and imaginary parts each in their own format."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Real([value.real for value in values])
        self.imag = _Real([value.imag for value in values])
        self.width = self.real.width + self.imag.width + 1

    def format(self, value: complex) -> str:
        imag = self.imag.format(value.imag).lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return f"{self.real.format(value.real)}{sign}{imag}j"


def _formatter(dtype: _C.dtype, values: list[Any]) -> _Whole | _Real | _Complex:
    if dtype.is_complex:
        return _Complex(values)
    return _Real(values) if dtype.is_floating_point else _Whole(values)


# ---- lines


def _vector_text(values: list[Any], indent: int, formatter: Any) -> str:
    if values == [Ellipsis]:  # edgeitems=0
        return "[...]"
    each_line = max(1, (options.linewidth - indent) // (formatter.width + 2))
    texts = [" ..." if value is Ellipsis else formatter.format(value) for value in values]
    lines = [", ".join(texts[i : i + each_line]) for i in range(0, len(texts), each_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _array_text(shown: Any, ndim: int, indent: int, formatter: Any) -> str:
    if ndim == 0:
        return formatter.format(shown)
    if ndim == 1:
        return _vector_text(shown, indent, formatter)
    parts = ["..." if part is Ellipsis else _array_text(part, ndim - 1, indent + 1, formatter) for part in shown]
    return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def _is_usual(dtype: _C.dtype, empty: bool) -> bool:
    """Return whether the printed elements imply the dtype."""
    default = _C.get_default_dtype()
    if dtype is default:
        return True
    return not empty and (dtype in (_C.int64, _C.bool) or dtype is default.to_complex())


def _is_default_device(device: _C.device) -> bool:
    try:
        return device == _C.get_default_device()
    except _C.BackendError:
        # The default device has no backend here.
        return False


def suffixes(t: Tensor) -> Iterator[str]:
    """Yield what is printed of a tensor after its elements, where it is not what is usual.

    Examples
    --------
    >>> import candelabra
    >>> list(candelabra.printing.suffixes(candelabra.ones(2, dtype=candelabra.int32)))
    ['dtype=candelabra.int32']
    """
    if t.is_meta or not _is_default_device(t.device):
        yield f"device='{t.device}'"
    empty = t.numel() == 0
    if t.is_meta or (empty and t.ndim != 1) or (not empty and not options.edgeitems):
        yield f"size={tuple(t.shape)}"
    if t.dtype is not _C.get_default_dtype() if t.is_meta else not _is_usual(t.dtype, empty):
        yield f"dtype={t.dtype}"
    if t.grad_fn is not None:
        yield f"grad_fn=<{_node_name(t.grad_fn)}>"
    elif t.requires_grad:
        yield "requires_grad=True"


def _node_name(node: Any) -> str:
    name = getattr(node, "name", None)
    return name() if callable(name) else type(node).__name__


def contents_text(self: Tensor, indent: int) -> str:
    """Return the text of the elements, whose further lines are indented.

    Parameters
    ----------
    self : Tensor
    indent : int
        The number of spaces before further lines.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.printing.contents_text(candelabra.tensor([1, 2]), 0)
    '[1, 2]'
    """
    if not has_elements(self):
        return "..."
    if self.numel() == 0:
        return "[]"
    shown, formatter = shown_elements(self, self.numel() > options.threshold)
    return _array_text(shown, self.ndim, indent, formatter)


def has_elements(self: Tensor) -> bool:
    """Return whether a tensor has memory whose elements can be shown.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.printing.has_elements(candelabra.ones(2, device="meta"))
    False
    """
    return not self.is_meta and "_device_stood_for" not in self.__dict__


def shown_elements(self: Tensor, summarize: bool) -> tuple[Any, Any]:
    """Return nested lists of the elements that are shown, and what formats one of them.

    Ellipsis stands for those between the edges, if `summarize`.

    Examples
    --------
    >>> import candelabra
    >>> shown, formatter = candelabra.printing.shown_elements(candelabra.arange(9), True)
    >>> shown, formatter.format(shown[0])
    ([0, 1, 2, Ellipsis, 6, 7, 8], '0')
    """
    shown = _shown(_detach(self), summarize)
    return shown, _formatter(self.dtype, list(_flat(shown)))


#: A table in a notebook is at most of this many rows and columns; longer ones are shown by their
#: edges.
LONGEST = 20
_CELL = "text-align:right;font-family:monospace;padding:0 .5em"


def tensor_html(self: Tensor) -> str:
    """Return the HTML that notebooks show: a table for one and two dimensions, else the text.

    Examples
    --------
    >>> import candelabra
    >>> "<table" in candelabra.ones(2, 2)._repr_html_()
    True
    """
    from html import escape  # of no use outside of notebooks

    facts = [type(self).__name__, str(tuple(self.shape)), str(self.dtype), str(self.device)]
    facts += [suffix for suffix in suffixes(self) if suffix.startswith(("grad_fn", "requires_grad"))]
    head = f"<div><small>{escape(' · '.join(facts))}</small>"
    if self.ndim not in (1, 2) or not self.numel() or not has_elements(self):
        return f"{head}<pre>{escape(contents_text(self, 0))}</pre></div>"
    values, formatter = shown_elements(self, max(self.shape) > LONGEST)
    rows = [values] if self.ndim == 1 else values
    width = next((len(row) for row in rows if row is not Ellipsis), 1)
    lines = "".join(f"<tr>{_cells(row, width, formatter)}</tr>" for row in rows)
    return f'{head}<table class="candelabra-tensor">{lines}</table></div>'


def _cells(row: Any, width: int, formatter: Any) -> str:
    cells = [Ellipsis] * width if row is Ellipsis else row
    texts = ("…" if cell is Ellipsis else formatter.format(cell).strip() for cell in cells)
    return "".join(f'<td style="{_CELL}">{text}</td>' for text in texts)


def tensor_text(self: Tensor, tensor_contents: str | None = None) -> str:
    """Return the text of a tensor, with other contents if they are given."""
    plain = type(self) is _C.Tensor or getattr(type(self), "_prints_as_tensor", False)
    prefix = "tensor(" if plain else f"{type(self).__name__}("
    indent = len(prefix)
    text = contents_text(self, indent) if tensor_contents is None else tensor_contents
    pieces = [prefix, text]
    used = len(prefix + text) - (prefix + text).rfind("\n") + 1
    for suffix in suffixes(self):
        if used + len(suffix) + 2 > options.linewidth:
            pieces.append(",\n" + " " * indent + suffix)
            used = indent + len(suffix)
        else:
            pieces.append(", " + suffix)
            used += len(suffix) + 2
    text = "".join(pieces) + ")"
    # A parameter of a subclass: Parameter.__repr__() says it for the others.
    return text if plain or not getattr(self, "_is_param", False) else f"Parameter({text})"
