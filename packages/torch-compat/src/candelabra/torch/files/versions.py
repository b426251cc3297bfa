"""Versions of other modules that a file needs."""

from __future__ import annotations

from typing import Any

from candelabra import _C

_DILL = (0, 3, 1)


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True
) -> bool:
    """Return whether the version of a module is at least the given one.

    Raises
    ------
    RuntimeError
        If the version cannot be read, and `error_if_malformed`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from candelabra.torch.files.versions import check_module_version_greater_or_equal
    >>> check_module_version_greater_or_equal(SimpleNamespace(__version__="1.10.2"), (1, 9))
    True
    """
    try:
        parts = module.__version__.split(".")
        found = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False))
        return bool(found >= req_version_tuple)
    except Exception as error:
        message = (
            f"'{module.__name__}' module version string is malformed '{getattr(module, '__version__', None)}' and cannot be "
            f"compared with tuple {req_version_tuple!s}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        _C.warn(f"{message}, but continuing assuming that requirement is met")
        return True


def check_dill_version(pickle_module: Any) -> None:
    """Raise ValueError if a pickle module is a dill that cannot write persistent ids."""
    if getattr(pickle_module, "__name__", "") == "dill" and not check_module_version_greater_or_equal(
        pickle_module, _DILL, False
    ):
        raise ValueError(
            "'torch' supports dill >= {}, but you have dill {}. Please upgrade dill or switch to 'pickle'".format(
                ".".join(map(str, _DILL)), pickle_module.__version__
            )
        )
