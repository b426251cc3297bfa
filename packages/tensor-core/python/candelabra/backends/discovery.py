"""Installed backend plugins: which there are, and which one provides a device type."""

from __future__ import annotations

import os
import sys

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any

#: The entry-point group of backend plugins.
GROUP = "candelabra.backends"
#: The entry-point group in which a distribution declares that a device type is an accelerator: one
#: with memory of its own.
ACCELERATORS = "candelabra.accelerators"
#: Distributions of ours by device type: they provide it where several claim it and nobody chose.
KNOWN_DISTRIBUTIONS = {"cpu": "candelabra-backend-cpu", "cuda": "candelabra-backend-cuda"}

_selected: dict[str, str] = {}
_declared: dict[str, EntryPoint] | None = None
#: The plugins that were found, and the state of the path at that time.
_found: tuple[Any, dict[str, list[EntryPoint]]] = (None, {})


def _state_of_path() -> list[tuple[str, int]]:
    """Return what changes where a distribution is installed or removed."""
    state = []
    for folder in sys.path:
        try:
            state.append((folder, os.stat(folder or ".").st_mtime_ns))
        except OSError:
            continue
    return state


def installed() -> dict[str, list[EntryPoint]]:
    """Return the installed plugins by device type, without loading any.

    Returns
    -------
    dict
        Device type to entry points: one, or several where distributions claim the same device type.

    Examples
    --------
    >>> import candelabra
    >>> sorted(candelabra.backends.installed()) != []
    True
    """
    global _found
    state = _state_of_path()
    if _found[0] == state:
        return {name: list(entries) for name, entries in _found[1].items()}
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    seen = set()
    for entry in entry_points(group=GROUP):
        # An editable install may be on the path twice; it is the same claim.
        claim = (entry.name, entry.value, distribution_name(entry))
        if claim not in seen:
            seen.add(claim)
            found.setdefault(entry.name, []).append(entry)
    _found = state, {name: list(entries) for name, entries in found.items()}
    return found


def declared_accelerators() -> dict[str, EntryPoint]:
    """Return the declarations of accelerators by device type. They are read once.

    Where several distributions declare one device type, the chosen one counts, or else the first.
    """
    global _declared
    if _declared is None:
        from importlib.metadata import entry_points

        found: dict[str, EntryPoint] = {}
        for entry in entry_points(group=ACCELERATORS):
            wanted = _selected.get(entry.name) or os.environ.get(variable(entry.name))
            if entry.name not in found or distribution_name(entry) == normalized(wanted or ""):
                found[entry.name] = entry
        _declared = found
    return _declared


def has_device(device_type: str) -> bool:
    """Tell whether a device type is installed and has a device, without loading its backend.

    A declaration that names a function (``module:function``) is a probe: it returns the number of
    devices. A declaration without one, and none at all, promise a device. A probe that fails warns,
    and counts as no device.
    """
    if device_type not in installed():
        return False
    entry = declared_accelerators().get(device_type)
    if entry is None or not entry.attr:
        return True
    try:
        return int(entry.load()()) > 0
    except Exception as error:
        _C.warn(
            f"the probe {entry.value} of {distribution_text(entry)} for device '{device_type}' failed: "
            f"{type(error).__name__}: {error}; the device counts as absent",
            RuntimeWarning,
        )
        return False


def normalized(name: str) -> str:
    """Return the name of a distribution as package indexes compare it."""
    return name.lower().replace("_", "-").replace(".", "-")


def distribution_name(entry: EntryPoint) -> str:
    """Return the normalized name of the distribution of a plugin."""
    return normalized(entry.dist.name if entry.dist is not None else entry.module)


def distribution_text(entry: EntryPoint) -> str:
    """Return name and version of the distribution of a plugin."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.module


def variable(device_type: str) -> str:
    """Return the environment variable that chooses the distribution of a device type."""
    return f"CANDELABRA_BACKEND_{device_type.upper()}"


def select(device_type: str, distribution: str | None) -> None:
    """Choose which distribution provides a device type that several claim.

    The environment variable ``CANDELABRA_BACKEND_TYPE`` does the same for a whole program
    (``CANDELABRA_BACKEND_CPU=my-backend``). Without a choice, Candelabra's own distribution
    provides ``cpu`` and ``cuda``; for other device types, several claims are an error.

    Parameters
    ----------
    device_type : str
        The device type, for instance ``"cpu"``.
    distribution : str or None
        The name of an installed distribution that has an entry point for it. None removes the
        choice.

    Raises
    ------
    BackendError
        If the distribution does not provide the device type.
    RuntimeError
        If the device type is loaded already: choose before its first use.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.backends.select("nowhere", "my-backend")
    Traceback (most recent call last):
        ...
    candelabra.BackendError: 'my-backend' provides no device 'nowhere': no distribution does
    """
    if device_type in _C.loaded_device_types():
        raise RuntimeError(f"select(): the backend of '{device_type}' is loaded already; choose before its first use")
    global _declared
    _declared = None
    if distribution is None:
        _selected.pop(device_type, None)
        return
    _claim_of(device_type, distribution, installed().get(device_type, []), "")
    _selected[device_type] = distribution


def entry_of(device_type: str) -> EntryPoint:
    """Return the plugin that provides a device type.

    Raises
    ------
    BackendError
        If there is none, or several of which the user has not chosen one.
    """
    found = installed()
    entries = found.get(device_type, [])
    if not entries:
        raise _C.BackendError(_missing(device_type, sorted(found)))
    if device_type in _selected:
        return _claim_of(device_type, _selected[device_type], entries, "")
    if wanted := os.environ.get(variable(device_type)):
        return _claim_of(device_type, wanted, entries, f"{variable(device_type)}: ")
    if len(entries) == 1:
        return entries[0]
    claims = (
        f"the device '{device_type}' is claimed by {len(entries)} distributions: "
        f"{', '.join(map(distribution_text, entries))}"
    )
    choice = f"choose one by {variable(device_type)}=NAME or candelabra.backends.select('{device_type}', NAME)"
    for entry in entries:
        if distribution_name(entry) == KNOWN_DISTRIBUTIONS.get(device_type):
            _C.warn(f"{claims}; {distribution_name(entry)} is used; {choice}", RuntimeWarning)
            return entry
    last = sorted(map(distribution_name, entries))[-1]
    raise _C.BackendError(f"{claims}; {choice}, or uninstall the others: pip uninstall {last}")


def _claim_of(device_type: str, distribution: str, entries: list[EntryPoint], origin: str) -> EntryPoint:
    for entry in entries:
        if distribution_name(entry) == normalized(distribution):
            return entry
    others = f"{', '.join(map(distribution_text, entries))} does" if entries else "no distribution does"
    raise _C.BackendError(f"{origin}'{distribution}' provides no device '{device_type}': {others}")


def _missing(device_type: str, others: list[str]) -> str:
    known = KNOWN_DISTRIBUTIONS.get(device_type)
    if known is None and isinstance(getattr(_C, device_type, None), _C.dtype):
        return f"'{device_type}' is no device but the name of a dtype: write candelabra.{device_type}, without quotes"
    installed_text = f"installed device types: {', '.join(others)}" if others else "no backend is installed"
    if known is not None:
        return f"no backend for device '{device_type}' is installed: pip install {known} ({installed_text})"
    shown = device_type if len(device_type) <= 64 else f"{device_type[:64]}... ({len(device_type)} characters)"
    absent = [
        f"'{name}' (pip install {distribution})"
        for name, distribution in KNOWN_DISTRIBUTIONS.items()
        if name not in others
    ]
    valid = ", ".join([*(f"'{name}'" for name in others), "'meta'", *absent])
    return (
        f"no backend for device '{shown}' is installed ({installed_text}); valid names are {valid}, and those of other backends: "
        "distributions with an entry point of that name in the group candelabra.backends"
    )
