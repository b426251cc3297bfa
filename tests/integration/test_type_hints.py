"""Test that the type hints of all public functions, classes and methods are objects that exist."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import candelabra
from candelabra.type_hints import get_type_hints

#: Modules that need packages which this suite does not have.
OPTIONAL = ("candelabra.utils.tensorboard", "candelabra.utils.tensorboard_parts", "candelabra.torch")


def modules() -> Iterator[ModuleType]:
    yield candelabra
    for info in pkgutil.walk_packages(candelabra.__path__, "candelabra."):
        if "._" not in info.name and not info.name.startswith(OPTIONAL):
            yield importlib.import_module(info.name)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        found = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(found):
            yield name, found


def public_objects() -> Iterator[tuple[str, Any]]:
    for module in modules():
        for name in getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]:
            value = getattr(module, name, None)
            if not str(getattr(value, "__module__", "")).startswith("candelabra"):
                continue
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
                yield from ((f"{module.__name__}.{name}.{member}", found) for member, found in members(value))


def test_all_type_hints_resolve():
    failures: dict[str, str] = {}
    seen: set[int] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in public_objects():
            if id(value) in seen:
                continue
            seen.add(id(value))
            try:
                get_type_hints(value)
            except (NameError, TypeError) as error:
                failures[name] = f"{type(error).__name__}: {error}"
    assert failures == {}
    assert len(seen) > 4000


def test_what_is_not_known_is_told():
    def unresolved(x: no_such_type) -> None:  # noqa: F821
        """Has a hint that nothing resolves."""

    with pytest.raises(NameError, match="no_such_type"):
        get_type_hints(unresolved)
