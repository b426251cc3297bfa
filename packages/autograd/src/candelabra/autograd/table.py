"""The table of derivative formulas: one row per operator.

``derivative("mul", broadcast=True, self=lambda grad, other: grad * conj(other), ...)`` gives one
function for each differentiable input. The function maps the gradient of the result to the gradient
of that input. Its parameter names say what to save:

========================  ===================================================================
``grad``                  the gradient of the (first) result; always the first parameter
an argument of the        its value: tensors are saved with their version, other values as they are
operator, by name
``result``, ``result1``   the result, or one of several
``self_shape``            shape of tensor argument ``self``; also ``_dtype``, ``_strides``,
                          ``_offset`` and ``_like`` (everything that :func:`~.fitting.fit` needs)
``needs``                 in a joint formula: which inputs need a gradient, a tuple of bools
========================  ===================================================================

Only values named by a formula are saved. Formulas use ordinary operators, so they are
differentiable themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Formula = Callable[..., Any]


class Row:
    """The derivative formulas of one operator.

    If ``joint`` is set, it is one function that returns the gradients of all ``inputs`` as a tuple.
    Otherwise ``formulas`` has one function per input. ``broadcast`` means that gradients are summed
    to the shapes of the inputs and converted to their dtypes. ``may_return_self`` means that the
    result may be the first argument itself, in which case nothing is recorded. ``part`` is set for
    partial views and holds the functions ``look`` and ``span`` of :class:`~.assembly.PartNode`.
    """

    __slots__ = ("broadcast", "formulas", "inputs", "joint", "may_return_self", "name", "part", "title")

    def __init__(
        self,
        name: str,
        formulas: dict[str, Formula],
        joint: Formula | None = None,
        joint_inputs: tuple[str, ...] = (),
        broadcast: bool = False,
        title: str = "",
        may_return_self: bool = False,
        part: dict[str, Formula] | None = None,
    ) -> None:
        self.name = name
        self.part = part
        self.formulas = formulas
        self.joint = joint
        self.inputs = joint_inputs or tuple(formulas)
        self.broadcast = broadcast
        self.title = title
        self.may_return_self = may_return_self


#: Rows by operator name.
ROWS: dict[str, Row] = {}
#: Hand-written autograd functions by operator name, called as ``autograd_function(result,
#: *arguments)``; they return `result`.
WRITTEN: dict[str, Callable[..., Any]] = {}


def derivative(
    name: str, /, *, broadcast: bool = False, title: str = "", may_return_self: bool = False, **formulas: Formula
) -> None:
    """Register the derivative formulas of operator `name`.

    Parameters
    ----------
    name
        The operator's name in the catalogue.
    broadcast
        Whether inputs may be broadcast or promoted. If True, gradients are reduced to the
        shapes and converted to the dtypes of the inputs.
    title
        Name of the node without ``Backward0``; by default the operator's name in camel case.
    may_return_self
        Whether the operator may return its argument unchanged.
    formulas
        The gradient function of each input.
    """
    ROWS[name] = Row(
        name, formulas, broadcast=broadcast, title=title or title_of(name), may_return_self=may_return_self
    )


def joint_derivative(
    name: str, inputs: tuple[str, ...], formula: Formula, *, broadcast: bool = False, title: str = ""
) -> None:
    """Register one formula that returns the gradients of several inputs as a tuple."""
    ROWS[name] = Row(name, {}, formula, inputs, broadcast, title or title_of(name))


def part_derivative(name: str, look: Formula, span: Formula | None = None) -> None:
    """Register operator `name` as a view of part of its argument ``self``.

    Parameters
    ----------
    name
        The operator's name in the catalogue.
    look
        Called as ``look(whole, ...)``; returns the same view of another tensor. Further
        parameters are as in formulas.
    span
        Called as ``span(self_shape, ...)``; returns ``(dim, start, end)``, or None if the part
        is not a slice along one dimension.
    """
    part = {"look": look} if span is None else {"look": look, "span": span}
    ROWS[name] = Row(name, {"self": look}, title=title_of(name), part=part)


def autograd_function(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a hand-written autograd function of operator `name`, for inputs that are lists."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        WRITTEN[name] = function
        return function

    return enter


def title_of(name: str) -> str:
    """Return an operator's name in camel case: ``log_softmax`` becomes ``LogSoftmax``."""
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))
