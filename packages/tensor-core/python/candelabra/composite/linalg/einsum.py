"""einsum: sums of products in index notation, by transposed views and matrix products."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from candelabra import _C
from candelabra.catalogue import OPERATORS

from ..movement.views import reshape
from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from candelabra._C import Tensor

    Labels: TypeAlias = tuple[Any, ...]

_permute = OPERATORS["permute"]
_sum = OPERATORS["sum"]
_mm = OPERATORS["mm"]
_bmm = OPERATORS["bmm"]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@function(method=False)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sum products of the elements of tensors in Einstein notation.

    Parameters
    ----------
    equation : str
        One letter per dimension, with commas between operands, and ``->`` before the result.
        Letters that are not in the result are summed over. Without ``->``, the result has the
        letters that occur once, in alphabetical order. ``...`` stands for any further dimensions,
        which are broadcast. A letter that occurs twice in an operand takes its diagonal.
    *operands : Tensor
        Also as one list, or alternating with lists of indices: ``einsum(a, [0, 1], b, [1, 2], [0,
        2])``.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the equation does not fit the operands.

    Notes
    -----
    Operands are multiplied from left to right, each pair as one batched matrix product.

    Examples
    --------
    >>> import candelabra
    >>> a = candelabra.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> candelabra.einsum("ij,jk->ik", a, a)
    tensor([[ 7., 10.],
            [15., 22.]])
    """
    if not isinstance(equation, (str, _C.Tensor)):
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    # Overrides get the operands one by one, however they were given.
    if _C.has_torch_function(operands):
        return _C.handle_torch_function(einsum, operands, equation, *operands)
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    try:
        dims = tuple([t.ndim for t in operands])
    except AttributeError:
        for i, given in enumerate(operands):
            if not isinstance(given, _C.Tensor):
                raise TypeError(
                    f"einsum(): expected Tensor as element {i} in argument 1, but got {type(given).__name__}"
                ) from None
        raise
    inputs, output = _parsed(equation, dims)
    terms = [_diagonals(t, labels) for t, labels in zip(operands, inputs)]
    sizes = _sizes(terms)
    # Sizes of 1 are broadcast: they are ignored if another operand has a larger size.
    terms = [_without_ones(t, labels, sizes) for t, labels in terms]
    current, labels = terms[0]
    for position, (t, its) in enumerate(terms[1:], 1):
        later = {label for _, others in terms[position + 1 :] for label in others}
        current, labels = _product(current, labels, t, its, (*later, *output))
    return _finished(current, labels, output)


def _from_lists(arguments: Any) -> Any:
    operands, lists = [], []
    output = list(arguments[-1]) if len(arguments) % 2 else None
    for i in range(0, len(arguments) - len(arguments) % 2, 2):
        operands.append(arguments[i])
        lists.append(arguments[i + 1])

    def letters(indices: Any) -> Any:
        parts = []
        for index in indices:
            if index is Ellipsis:
                parts.append("...")
            elif isinstance(index, int) and 0 <= index < len(_LETTERS):
                parts.append(_LETTERS[index])
            else:
                raise RuntimeError(
                    f"einsum(): expected subscripts to be within the range [0, {len(_LETTERS)}), but got {index}"
                )
        return "".join(parts)

    equation = ",".join(letters(one) for one in lists)
    return equation if output is None else f"{equation}->{letters(output)}", tuple(operands)


@lru_cache(maxsize=512)
def _parsed(equation: str, ndims: tuple[int, ...]) -> Any:
    """Return the labels of each operand and of the result. The dimensions of an ellipsis are
    numbers, counted from the end.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(ndims):
        more = "more" if len(texts) < len(ndims) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    inputs = []
    for i, (text, ndim) in enumerate(zip(texts, ndims)):
        front, dots, back = text.partition("...")
        for letter in front + back:
            if letter not in _LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {equation.find(letter)} in the equation string, subscripts must be in [a-zA-Z]"
                )
        hidden = ndim - len(front) - len(back)
        if hidden < 0 or (hidden and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(front) + len(back)}) "
                f"{'is more than' if hidden < 0 else 'does not match'} the number of dimensions ({ndim}) for operand {i}"
                + (" and no ellipsis was given" if not dots else "")
            )
        inputs.append((*front, *range(hidden, 0, -1), *back))
    dotted = max((label for labels in inputs for label in labels if isinstance(label, int)), default=0)
    if arrow:
        front, dots, back = right.partition("...")
        output = (*front, *(range(dotted, 0, -1) if dots else ()), *back)
        for letter in front + back:
            if letter not in _LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given for the output: '{letter}', subscripts must be in [a-zA-Z]"
                )
            if output.count(letter) > 1:
                raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
            if not any(letter in labels for labels in inputs):
                raise RuntimeError(
                    f"einsum(): output subscript {letter} does not appear in the equation for any input operand"
                )
    else:
        every = [label for labels in inputs for label in labels]
        once = sorted(label for label in set(every) if isinstance(label, str) and every.count(label) == 1)
        output = (*range(dotted, 0, -1), *once)
    return inputs, output


def _sizes(terms: list[tuple[Tensor, Labels]]) -> Any:
    sizes: dict[Any, int] = {}
    for i, (t, labels) in enumerate(terms):
        for label, n in zip(labels, t.shape):
            known = sizes.setdefault(label, n)
            if known != n and 1 not in (known, n):
                name = f"subscript {label}" if isinstance(label, str) else "a dimension of '...'"
                raise RuntimeError(
                    f"einsum(): {name} has size {n} for operand {i} which does not broadcast with previously seen size {known}"
                )
            if known == 1:
                sizes[label] = n
    return sizes


def _diagonals(t: Tensor, labels: Labels) -> tuple[Tensor, Labels]:
    """Take the diagonal of dimensions with the same label."""
    if len(set(labels)) == len(labels):
        return t, labels
    kept = list(labels)
    for label in [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        while kept.count(label) > 1:
            first = kept.index(label)
            second = kept.index(label, first + 1)
            if t.shape[first] != t.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for one operand but the sizes don't match, "
                    f"{t.shape[second]} != {t.shape[first]}"
                )
            t = OPERATORS["diagonal"](t, 0, first, second)
            kept = [x for i, x in enumerate(kept) if i not in (first, second)] + [label]
    return t, tuple(kept)


def _without_ones(t: Tensor, labels: Labels, sizes: dict[Any, int]) -> tuple[Tensor, Labels]:
    ones = [d for d, n in enumerate(t.shape) if n == 1 and sizes[labels[d]] != 1]
    if not ones:
        return t, labels
    for d in reversed(ones):
        t = OPERATORS["squeeze"](t, d)
    return t, tuple([label for d, label in enumerate(labels) if d not in ones])


class _Plan:
    """The plan of one batched matrix product: how to multiply two terms and sum over labels that no
    other term needs.
    """

    def __init__(self, labels_a: Labels, labels_b: Labels, needed: Labels) -> None:
        #: Dimensions that only one of the two terms has and no other needs: summed first.
        self.summed_a = [d for d, x in enumerate(labels_a) if x not in labels_b and x not in needed]
        self.summed_b = [d for d, x in enumerate(labels_b) if x not in labels_a and x not in needed]
        left = [x for d, x in enumerate(labels_a) if d not in self.summed_a]
        right = [x for d, x in enumerate(labels_b) if d not in self.summed_b]
        batch = [x for x in left if x in right and x in needed]
        common = [x for x in left if x in right and x not in needed]
        free_a = [x for x in left if x not in right]
        free_b = [x for x in right if x not in left]
        self.counts = (len(batch), len(free_a), len(common), len(free_b))
        self.result = tuple(batch + free_a + free_b)
        if common:
            self.order_a: list[int] | None = _order(left, batch + free_a + common)
            self.order_b: list[int] | None = _order(right, batch + common + free_b)
        else:
            # Nothing to sum: an elementwise product of terms with inserted sizes of 1.
            self.order_a = _order(left, [x for x in self.result if x in left])
            self.order_b = _order(right, [x for x in self.result if x in right])
            self.there_a = [x in left for x in self.result]
            self.there_b = [x in right for x in self.result]


def _order(labels: list[Any], wanted: list[Any]) -> list[int] | None:
    """Return the permutation between two orders; None if they are equal."""
    return None if labels == wanted else [labels.index(x) for x in wanted]


_plan = lru_cache(maxsize=512)(_Plan)


def _product(a: Tensor, labels_a: Labels, b: Tensor, labels_b: Labels, needed: Labels) -> tuple[Tensor, Labels]:
    plan = _plan(labels_a, labels_b, needed)
    if plan.summed_a:
        a = _sum(a, plan.summed_a)
    if plan.summed_b:
        b = _sum(b, plan.summed_b)
    if a.dtype is not b.dtype:  # sums of integers are int64
        a, b = a.to(_C.int64), b.to(_C.int64)
    if plan.order_a is not None:
        a = _permute(a, plan.order_a)
    if plan.order_b is not None:
        b = _permute(b, plan.order_b)
    batch, free_a, common, free_b = plan.counts
    if not common:
        return _aligned(a, plan.there_a) * _aligned(b, plan.there_b), plan.result
    if batch <= 1 and free_a == common == free_b == 1:
        return (_bmm(a, b) if batch else _mm(a, b)), plan.result
    sizes_a, sizes_b = a.shape, b.shape
    outer = [prod(sizes_a[:batch])] if batch else []
    rows, inner, columns = (
        prod(sizes_a[batch : batch + free_a]),
        prod(sizes_a[batch + free_a :]),
        prod(sizes_b[batch + common :]),
    )
    left, right = reshape(a, [*outer, rows, inner]), reshape(b, [*outer, inner, columns])
    product = _bmm(left, right) if batch else _mm(left, right)
    return reshape(product, [*sizes_a[: batch + free_a], *sizes_b[batch + common :]]), plan.result


def _aligned(t: Tensor, there: list[bool]) -> Tensor:
    if all(there):
        return t
    sizes = iter(t.shape)
    return reshape(t, [next(sizes) if present else 1 for present in there])


def _finished(t: Tensor, labels: Labels, output: Labels) -> Tensor:
    if labels == output:
        return t
    gone = [d for d, x in enumerate(labels) if x not in output]
    if gone:
        t = _sum(t, gone)
        labels = tuple([x for x in labels if x in output])
    return t if labels == output else _permute(t, [labels.index(x) for x in output])
