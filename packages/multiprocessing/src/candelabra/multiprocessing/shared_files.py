"""Files of shared memory that are released with their Python object."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable
from typing import Any


class SharedFile:
    """The file behind a shared storage. `_release` is called with no arguments when it is freed."""

    descriptor: int | None = None
    path: str | None = None
    _release: Callable[[], Any]

    # The finalizer runs without a Python frame. A KeyboardInterrupt raised in one would be lost,
    # because exceptions in finalizers are not propagated.
    __del__ = property(operator.attrgetter("_release"))


class AnonymousFile(SharedFile):
    """An unnamed file, which exists while any process has a descriptor or a mapping of it.

    The descriptor is closed with this object.
    """

    descriptor: int

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._release = functools.partial(os.close, descriptor)
