"""Alternative keyword names that PyTorch's parser accepts beside the documented ones."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])


def also_named(**names: str) -> Callable[[Function], Function]:
    """Accept further keyword names for a function's arguments: ``also_named(input="A")`` accepts
    ``input=`` for ``A=``.
    """

    def take(function: Function) -> Function:
        @functools.wraps(function)
        def renamed(*arguments: Any, **keywords: Any) -> Any:
            if keywords:
                for other in names.keys() & keywords.keys():
                    if names[other] in keywords:
                        raise TypeError(
                            f"{function.__name__}() got both '{other}' and '{names[other]}', which name one argument"
                        )
                    keywords[names[other]] = keywords.pop(other)
            return function(*arguments, **keywords)

        return renamed  # type: ignore[return-value]  # of the same signature, and more

    return take
