"""Control flow as functions: cond and while_loop, which run immediately; autograd records the
operators that they call.
"""

from __future__ import annotations

from candelabra import _C

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_Tensor = _C.Tensor


@function(method=False)
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Call one of two functions, selected by a condition.

    Parameters
    ----------
    pred : bool or Tensor
        A tensor must have one element.
    true_fn, false_fn : callable
        Only the selected function is called.
    operands : tuple or list
        The arguments: tensors, and nested tuples, lists and dicts of tensors.

    Returns
    -------
    Any
        The result of the function.

    Raises
    ------
    RuntimeError
        If `pred` is neither a bool nor a tensor of one element, a function is not callable, or
        `operands` is not a tuple or list.

    Examples
    --------
    >>> import candelabra
    >>> x = candelabra.tensor([1.0, 2.0])
    >>> candelabra.cond(x.sum() > 2, lambda x: x * 2, lambda x: -x, (x,))
    tensor([2., 4.])
    """
    if not (isinstance(pred, (bool, int)) or (isinstance(pred, _Tensor) and pred.numel() == 1)):
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"Expect operands to be a tuple of what the branches take, but got {type(operands).__name__}."
        )
    return (true_fn if pred else false_fn)(*operands)


@function(method=False)
def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Call a function on its own results while a condition holds.

    Parameters
    ----------
    cond_fn : callable
        Takes the carried values; returns a bool or a tensor of one element.
    body_fn : callable
        Takes the carried values; returns as many, as a tuple or list.
    carried_inputs : tuple or list
        The initial values: tensors and numbers, possibly nested.

    Returns
    -------
    tuple
        The first values for which the condition does not hold.

    Raises
    ------
    RuntimeError
        If a function is not callable, `carried_inputs` is not a tuple or list, the condition is not
        a single bool, or `body_fn` returns another number of values.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (candelabra.tensor(0), candelabra.tensor(1.0)))
    (tensor(3), tensor(8.))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of tensors, but got {type(carried_inputs).__name__}.")
    carried = tuple(carried_inputs)
    while _holds(cond_fn(*carried)):
        made = body_fn(*carried)
        if not isinstance(made, (tuple, list)) or len(made) != len(carried):
            count = f"{len(made)} values" if isinstance(made, (tuple, list)) else type(made).__name__
            raise RuntimeError(
                f"body_fn must return a tuple of {len(carried)} values, as many as it takes, but returned {count}."
            )
        carried = tuple(made)
    return carried


def _holds(condition: Any) -> bool:
    if isinstance(condition, _Tensor) and condition.dtype is _C.bool and condition.numel() == 1:
        return bool(condition)
    if not isinstance(condition, bool):
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {condition}.")
    return condition
