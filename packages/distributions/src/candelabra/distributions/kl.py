"""Kullback–Leibler divergences: registry and dispatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra import _C, Tensor

from .distribution import Distribution

#: Registered functions by pairs of distribution classes.
_KL_REGISTRY: dict[tuple[type, type], Callable[..., Any]] = {}
#: Cache of dispatch results by pairs of distribution classes.
_KL_MEMOIZE: dict[tuple[type, type], Callable[..., Any] | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that computes the KL divergence of a pair of classes, as a decorator.

    Dispatch selects the function of the most specific pair of base classes. It warns if that pair
    is ambiguous.

    Parameters
    ----------
    type_p, type_q : type
        Distribution classes, or other base classes of these.

    Raises
    ------
    TypeError
        If an argument is not a class.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.distributions import Normal, kl_divergence, register_kl
    >>> class Own(Normal):
    ...     pass
    >>> @register_kl(Own, Own)
    ... def kl_own_own(p, q):
    ...     return candelabra.tensor(42.0)
    >>> kl_divergence(Own(0.0, 1.0), Own(0.0, 1.0))
    tensor(42.)
    """
    # A mixin of distributions need not be one.
    if not isinstance(type_p, type):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _closer(one: tuple[type, type], two: tuple[type, type], which: int) -> bool:
    """Return whether pair `one` is at least as specific as pair `two`.

    Classes at index `which` are compared first.
    """
    first, second = (one[which], two[which]), (one[1 - which], two[1 - which])
    return issubclass(*second) if first[0] is first[1] else issubclass(*first)


def _look_up(type_p: type, type_q: type) -> Callable[..., Any] | None:
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return None
    best = []
    for which in (0, 1):
        found = matches[0]
        for pair in matches[1:]:
            if _closer(pair, found, which):
                found = pair
        best.append(_KL_REGISTRY[found])
        if which == 0:
            left = found
        else:
            right = found
    if best[0] is not best[1]:
        _C.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
        )
    return best[0]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the KL divergence ``KL(p | q)``: the mean of ``log p - log q`` under p, batchwise.

    Parameters
    ----------
    p, q : Distribution

    Raises
    ------
    NotImplementedError
        If no function is registered for the two classes.

    Examples
    --------
    >>> from candelabra.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    pair = (type(p), type(q))
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _look_up(*pair)
    function = _KL_MEMOIZE[pair]
    if function is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    result: Tensor = function(p, q)
    return result


__all__ = ["kl_divergence", "register_kl"]
