"""``torch.version`` and ``torch.torch_version``: no accelerator toolkit is compiled in, because
backends bring their own.
"""

from __future__ import annotations

import re
from typing import Any

from candelabra.version import __version__ as _candelabra_version

__all__ = ["TorchVersion", "__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

_STAGES = {"dev": -1, "a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "": 3, "post": 4}
_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)[-_.]?(?:(?P<stage>dev|alpha|a|beta|b|rc|c|post)[-_.]?(?P<number>\d*))?(?P<rest>[-_.a-z0-9]*)"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)


def _order(version: str) -> tuple[Any, ...] | None:
    """Return what versions are ordered by, or None for text that is none."""
    found = _VERSION.fullmatch(version.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    local = re.split(r"[-_.]", found["local"]) if found["local"] else []
    return (
        release,
        _STAGES[(found["stage"] or "").lower()],
        int(found["number"] or 0),
        [(1, int(part)) if part.isdigit() else (0, part.lower()) for part in local],
    )


class TorchVersion(str):
    """A version as text that is compared as a version: with text, or an iterable of numbers.

    Examples
    --------
    >>> from candelabra.torch.stand_ins.version import TorchVersion
    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13), TorchVersion("2.13.0a1") < "2.13"
    (True, True, True)
    """

    def _compared(self, other: Any, name: str) -> Any:
        if not isinstance(other, str):
            try:
                other = ".".join(map(str, other))
            except TypeError:
                return NotImplemented
        ours, theirs = _order(self), _order(other)
        if ours is None or theirs is None:
            return getattr(str, name)(str(self), str(other))
        return getattr(ours, name)(theirs)

    def __lt__(self, other: Any) -> bool:
        return self._compared(other, "__lt__")

    def __le__(self, other: Any) -> bool:
        return self._compared(other, "__le__")

    def __eq__(self, other: object) -> bool:
        return self._compared(other, "__eq__")

    def __ne__(self, other: object) -> bool:
        return self._compared(other, "__ne__")

    def __ge__(self, other: Any) -> bool:
        return self._compared(other, "__ge__")

    def __gt__(self, other: Any) -> bool:
        return self._compared(other, "__gt__")

    __hash__ = str.__hash__


#: The PyTorch version whose API this follows, with Candelabra's version as the local part.
__version__ = TorchVersion(f"2.13.0+candelabra.{_candelabra_version}")
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug = False
git_version = ""
