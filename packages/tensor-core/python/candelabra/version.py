"""The version of tensor-core, which pyproject.toml reads from here, and the check on import that
the versions of Candelabra's distributions work together.

pip checks this when it installs. Environments that were put together otherwise (``--no-deps``, a
path, an upgrade of one package by hand) reach an import.
"""

from __future__ import annotations

__version__ = "0.1.0"

CORE = "candelabra-tensor-core"

#: The distributions that are imported, and their versions.
_imported = {CORE: __version__}
#: What imported distributions need: who, the requirement and its parts.
_needs: list[tuple[str, str, str, str, str]] = []


class VersionError(ImportError):
    """Distributions are imported together that do not work together."""


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without what follows them: ``0.2.0rc1`` is (0, 2, 0).

    Examples
    --------
    >>> from candelabra.version import release
    >>> release("0.2.0rc1")
    (0, 2, 0)
    """
    numbers = []
    for part in version.split("+")[0].split("."):
        digits = part[: next((i for i, character in enumerate(part) if not character.isdigit()), len(part))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    while len(numbers) < 3:
        numbers.append(0)
    return tuple(numbers)


def parts(need: str) -> tuple[str, str, str]:
    """Return the name of a requirement, its least version and the one that it is below.

    Examples
    --------
    >>> from candelabra.version import parts
    >>> parts("candelabra-nn>=0.1,<0.2"), parts("candelabra-nn<0.2,>=0.1")
    (('candelabra-nn', '0.1', '0.2'), ('candelabra-nn', '0.1', '0.2'))
    """
    name = need.partition("<")[0].partition(">")[0]
    limits = {limit[:1]: limit.lstrip("<>=") for limit in need[len(name) :].split(",")}
    return name, limits.get(">", "0"), limits.get("<", str(2**31))


def fits(version: str, least: str, below: str) -> bool:
    """Return whether a version is at least one and below another."""
    return release(least) <= release(version) < release(below)


def register(distribution: str, version: str, *needs: str) -> None:
    """State that a distribution is imported, and what others it works with.

    The first statement of each package of Candelabra. Its requirements are those of its
    ``pyproject.toml``, optional ones included: these hold for what is imported beside it.

    Parameters
    ----------
    distribution : str
        Its name: ``"candelabra-nn"``.
    version : str
        Its version.
    *needs : str
        Requirements ``"NAME>=VERSION,<VERSION"``.

    Raises
    ------
    VersionError
        If an imported distribution is not of a version that another needs.

    Examples
    --------
    >>> from candelabra.version import register
    >>> register("my-layers", "1.0", "candelabra-tensor-core>=0.1,<99")
    """
    for need in needs:
        row = (f"{distribution} {version}", need, *parts(need))
        _check(row)
        _needs.append(row)
    _imported[distribution] = version
    for row in _needs:
        if row[2] == distribution:
            _check(row)


def _check(row: tuple[str, str, str, str, str]) -> None:
    who, need, name, least, below = row
    found = _imported.get(name)
    if found is None or fits(found, least, below):
        return
    if release(found) >= release(below):
        command = f"pip install --upgrade {who.split()[0]}"
    else:
        command = f"pip install --upgrade '{need}'"
    raise VersionError(f"{who} needs {need}, but {name} {found} is installed: {command}")
