"""Run the gradient checks on sample calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samples import samples

from candelabra import Tensor
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra.catalogue import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable


def as_function(
    operator: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function of the arguments that require grad, at any depth, and those tensors."""
    found: list[Tensor] = []

    def collect(value: Any) -> None:
        if isinstance(value, Tensor) and value.requires_grad:
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for entry in value:
                collect(entry)

    collect((*arguments, *keywords.values()))

    def function(*tensors: Tensor) -> Any:
        replacements = iter(tensors)

        def replace(value: Any) -> Any:
            if isinstance(value, Tensor) and value.requires_grad:
                return next(replacements)
            if isinstance(value, (list, tuple)):
                return type(value)([replace(entry) for entry in value])
            return value

        replaced = [replace(value) for value in arguments]
        made = operator(*replaced, **{name: replace(value) for name, value in keywords.items()})
        if isinstance(made, (tuple, list)):
            return tuple(one for one in made if one.requires_grad)
        return made

    return function, tuple(found)


def check_operator(name: str, dtype: Any, second: bool = True, **options: Any) -> int:
    """Check first and second derivatives of an operator on all samples. Return the number of
    checks.
    """
    checks = 0
    for arguments, keywords in samples(name, dtype):
        function, tensors = as_function(OPERATORS[name], arguments, keywords)
        assert tensors, f"a sample of {name} has no tensor that requires grad"
        assert gradcheck(function, tensors, **options)
        if second:
            assert gradgradcheck(function, tensors, **options)
        checks += 1
    return checks
