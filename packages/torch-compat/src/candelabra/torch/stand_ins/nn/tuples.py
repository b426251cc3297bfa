"""``torch.nn.modules.utils``: expansion of a number to a tuple with one entry per dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

__all__ = [
    "_list_with_default", "_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple",
]  # fmt: skip

T = TypeVar("T")


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that converts iterables to tuples, and repeats other values `n` times.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.nn.tuples import _ntuple
    >>> _ntuple(2)(3), _ntuple(2)([1, 2])
    ((3, 3), (1, 2))
    """

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single, _pair, _triple, _quadruple = (
    _ntuple(n, name) for n, name in enumerate(("_single", "_pair", "_triple", "_quadruple"), 1)
)


def _reverse_repeat_tuple(t: Sequence[T], n: int) -> tuple[T, ...]:
    """Return the entries from the last to the first, each `n` times: the padding of a convolution
    as that of `pad`.
    """
    return tuple(entry for entry in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Return sizes with those that are None replaced; a number as it is.

    Raises
    ------
    ValueError
        If there are as many sizes as `defaults`, or more.
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [
        default if size is None else size for size, default in zip(out_size, defaults[-len(out_size) :], strict=True)
    ]
