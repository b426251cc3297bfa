"""einsum: sums of products in index notation, made of transposed views and matrix products."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from .linalg import matmul
from .registration import function
from .views import reshape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from candelabra._C import Tensor

_permute = OPERATORS["permute"]
_sum = OPERATORS["sum"]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@function(method=False)
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sum products of the elements of tensors, in index notation.

    Parameters
    ----------
    equation : str
        A letter a dimension, operands separated by commas, ``->`` before the result. Letters that the result lacks are summed
        over; without ``->`` the result has the letters that occur once, in alphabetical order. ``...`` stands for any further
        dimensions, which are broadcast. A letter that occurs twice in one operand means its diagonal.
    *operands : Tensor
        Also as one list, or alternating with lists of indices: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        Where the equation does not fit the operands.

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
    if not isinstance(equation, str):
        equation, operands = _from_lists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    inputs, output = _parsed(equation, operands)
    terms = [_diagonals(t, labels) for t, labels in zip(operands, inputs)]
    sizes = _sizes(terms)
    # Sizes of 1 are broadcast: they take no part where another operand has more.
    terms = [_without_ones(t, labels, sizes) for t, labels in terms]
    current, labels = terms[0]
    for position, (t, its) in enumerate(terms[1:], 1):
        later = {label for _, others in terms[position + 1 :] for label in others}
        current, labels = _product(current, labels, t, its, later | set(output))
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
                raise RuntimeError(f"einsum(): expected subscripts to be within the range [0, {len(_LETTERS)}), but got {index}")
        return "".join(parts)

    equation = ",".join(letters(one) for one in lists)
    return equation if output is None else f"{equation}->{letters(output)}", tuple(operands)


def _parsed(equation: str, operands: Any) -> Any:
    """Return the labels of each operand and of the result. The dimensions of an ellipsis are numbers, counted from the end."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        more = "more" if len(texts) < len(operands) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    inputs = []
    for i, (text, t) in enumerate(zip(texts, operands)):
        front, dots, back = text.partition("...")
        for letter in front + back:
            if letter not in _LETTERS:
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {equation.find(letter)} in the equation string, subscripts must be in [a-zA-Z]"
                )
        hidden = t.ndim - len(front) - len(back)
        if hidden < 0 or (hidden and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(front) + len(back)}) "
                f"{'is more than' if hidden < 0 else 'does not match'} the number of dimensions ({t.ndim}) for operand {i}"
                + (" and no ellipsis was given" if not dots else "")
            )
        inputs.append([*front, *range(hidden, 0, -1), *back])
    dotted = max((label for labels in inputs for label in labels if isinstance(label, int)), default=0)
    if arrow:
        front, dots, back = right.partition("...")
        output = [*front, *(range(dotted, 0, -1) if dots else ()), *back]
        for letter in front + back:
            if letter not in _LETTERS:
                raise RuntimeError(f"einsum(): invalid subscript given for the output: '{letter}', subscripts must be in [a-zA-Z]")
            if output.count(letter) > 1:
                raise RuntimeError(f"einsum(): output subscript {letter} appears more than once in the output")
            if not any(letter in labels for labels in inputs):
                raise RuntimeError(f"einsum(): output subscript {letter} does not appear in the equation for any input operand")
    else:
        every = [label for labels in inputs for label in labels]
        once = sorted(label for label in set(every) if isinstance(label, str) and every.count(label) == 1)
        output = [*range(dotted, 0, -1), *once]
    return inputs, output


def _sizes(terms: list[tuple[Tensor, list[Any]]]) -> Any:
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


def _diagonals(t: Tensor, labels: list[Any]) -> Any:
    """Take the diagonal where a label occurs twice."""
    labels = list(labels)
    for label in [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if t.shape[first] != t.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for one operand but the sizes don't match, {t.shape[second]} != {t.shape[first]}"
                )
            t = OPERATORS["diagonal"](t, 0, first, second)
            labels = [x for i, x in enumerate(labels) if i not in (first, second)] + [label]
    return t, labels


def _without_ones(t: Tensor, labels: list[Any], sizes: Any) -> Any:
    ones = [d for d, label in enumerate(labels) if t.shape[d] == 1 and sizes[label] != 1]
    for d in reversed(ones):
        t = OPERATORS["squeeze"](t, d)
    return t, [label for d, label in enumerate(labels) if d not in ones]


def _product(a: Tensor, labels_a: list[Any], b: Tensor, labels_b: list[Any], needed: set[Any]) -> Any:
    """Multiply two terms and sum over what nothing else needs: one batched matrix product."""
    a, labels_a = _summed(a, labels_a, [x for x in labels_a if x not in labels_b and x not in needed])
    b, labels_b = _summed(b, labels_b, [x for x in labels_b if x not in labels_a and x not in needed])
    shared = [x for x in labels_a if x in labels_b]
    batch = [x for x in shared if x in needed]
    common = [x for x in shared if x not in needed]
    free_a = [x for x in labels_a if x not in shared]
    free_b = [x for x in labels_b if x not in shared]
    result_labels = batch + free_a + free_b
    if not common:
        # Nothing to sum: an elementwise product.
        left = _aligned(a, labels_a, result_labels)
        right = _aligned(b, labels_b, result_labels)
        return left * right, result_labels
    size = dict(zip(labels_a, a.shape)) | dict(zip(labels_b, b.shape))

    def count(labels: list[Any]) -> int:
        total = 1
        for label in labels:
            total *= size[label]
        return total

    groups_a = _permute(a, [labels_a.index(x) for x in batch + free_a + common])
    groups_b = _permute(b, [labels_b.index(x) for x in batch + common + free_b])
    outer = [count(batch)] if batch else []
    left = reshape(groups_a, [*outer, count(free_a), count(common)])
    right = reshape(groups_b, [*outer, count(common), count(free_b)])
    return reshape(matmul(left, right), [size[x] for x in result_labels]), result_labels


def _summed(t: Tensor, labels: list[Any], gone: list[Any]) -> Any:
    if not gone:
        return t, list(labels)
    kept = [x for x in labels if x not in gone]
    return _sum(t, [labels.index(x) for x in gone], dtype=t.dtype), kept


def _aligned(t: Tensor, labels: list[Any], result: list[Any]) -> Tensor:
    order = [labels.index(x) for x in result if x in labels]
    t = _permute(t, order)
    sizes = iter(t.shape)
    return reshape(t, [next(sizes) if x in labels else 1 for x in result])


def _finished(t: Tensor, labels: list[Any], output: Any) -> Tensor:
    t, labels = _summed(t, labels, [x for x in labels if x not in output])
    return _permute(t, [labels.index(x) for x in output])
