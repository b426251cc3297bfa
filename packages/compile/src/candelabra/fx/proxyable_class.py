"""Classes whose construction is a call in a graph."""

from __future__ import annotations

from typing import Any

from .node import map_aggregate
from .proxy import Proxy

#: All of them: an instance that was made before is an attribute of the traced module.
proxyable_classes: set[type] = set()


class ProxyableClassMeta(type):
    """A metaclass: with proxies among the arguments, calling the class is a call in the graph.

    Examples
    --------
    >>> from candelabra import fx
    >>> class Pair(metaclass=fx.ProxyableClassMeta):
    ...     def __init__(self, left, right):
    ...         self.left, self.right = left, right
    ...     def sum(self):
    ...         return self.left + self.right
    >>> fx.symbolic_trace(lambda x, y: Pair(x, y).sum())(1, 2)
    3
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        proxyable_classes.add(cls)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []

        def note(value: Any) -> Any:
            if isinstance(value, Proxy):
                found.append(value)
            return value

        map_aggregate((args, kwargs), note)
        if not found:
            return super().__call__(*args, **kwargs)
        return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
