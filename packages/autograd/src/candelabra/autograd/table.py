"""The table of formulas: one row an operator.

``derivative("mul", broadcast=True, self=lambda grad, other: grad * conj(other), ...)`` gives, for
each input that has a gradient, a function from the gradient of the result to the gradient of that
input. The names of its parameters say what the tape keeps:

========================  ===================================================================
``grad``                  the gradient of the (first) result; always the first parameter
an argument of the        its value: tensors are kept with their version, other values as they are
operator, by name
``result``, ``result1``   the result, or one of several
``self_shape``            sizes of tensor argument ``self``; likewise ``_dtype``, ``_strides``,
                          ``_offset`` and ``_like`` (all that :func:`~.fitting.fit` needs)
``needs``                 in a joint formula: which of the inputs need a gradient, a tuple of bools
========================  ===================================================================

What a formula does not name is not kept alive. Formulas use ordinary operators, so that they can be
differentiated again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Formula = Callable[..., Any]


class Row:
    """The formulas of one operator.

    ``joint`` is one function for all of ``inputs``, which returns a tuple; else ``formulas`` has
    one for each of them. ``broadcast``: gradients are summed to the sizes of the inputs, and
    converted to their dtype. ``may_return_self``: the result may be the first argument itself, and
    then there is nothing to record. ``part``: of a view of a part of its input, the functions
    ``look`` and ``span`` of :class:`~.assembly.PartNode`.
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


#: Rows by the name of the operator.
ROWS: dict[str, Row] = {}
#: Autograd functions written by hand, by the name of the operator: ``autograd_function(result,
#: *arguments) -> result``.
WRITTEN: dict[str, Callable[..., Any]] = {}


def derivative(
    name: str, /, *, broadcast: bool = False, title: str = "", may_return_self: bool = False, **formulas: Formula
) -> None:
    """Enter the formulas of operator `name`.

    Parameters
    ----------
    name
        The operator, as in the catalogue.
    broadcast
        Whether inputs may have been broadcast or promoted: their gradients are then brought back to
        their sizes and dtypes.
    title
        Name of the node without ``Backward0``; the operator's in camel case by default.
    may_return_self
        Whether the operator returns its argument where nothing is to be done.
    formulas
        By input: the function that gives its gradient.
    """
    ROWS[name] = Row(
        name, formulas, broadcast=broadcast, title=title or title_of(name), may_return_self=may_return_self
    )


def joint_derivative(
    name: str, inputs: tuple[str, ...], formula: Formula, *, broadcast: bool = False, title: str = ""
) -> None:
    """Enter one formula that gives the gradients of several inputs of operator `name` at once, as a
    tuple.
    """
    ROWS[name] = Row(name, {}, formula, inputs, broadcast, title or title_of(name))


def part_derivative(name: str, look: Formula, span: Formula | None = None) -> None:
    """Enter how operator `name`, a view of a part of its argument ``self``, finds that part.

    Parameters
    ----------
    name
        The operator, as in the catalogue.
    look
        ``look(whole, ...)``, the same view of another tensor; further parameters as in formulas.
    span
        ``span(self_shape, ...)``: the dimension that is cut and from where to where, or None if the
        part is nothing so simple.
    """
    part = {"look": look} if span is None else {"look": look, "span": span}
    ROWS[name] = Row(name, {"self": look}, title=title_of(name), part=part)


def autograd_function(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the decorated function the autograd function of operator `name`: for those whose inputs
    are lists.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        WRITTEN[name] = function
        return function

    return enter


def title_of(name: str) -> str:
    """Give an operator's name in camel case: ``log_softmax`` becomes ``LogSoftmax``."""
    return "".join(part[:1].upper() + part[1:] for part in name.strip("_").split("_"))
