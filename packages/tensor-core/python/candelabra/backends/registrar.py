"""The registrar, with which a backend plugin registers its kernels."""

from __future__ import annotations

import os

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Registrar:
    """Collects the kernels of one plugin, and passes them to the core when the plugin's hook has
    returned.

    A plugin that fails halfway registers nothing.

    Parameters
    ----------
    device_type
        The device type that is being loaded: the name of the entry point.
    distribution
        Name and version of the plugin's distribution, for messages.
    """

    def __init__(self, device_type: str, distribution: str) -> None:
        self.device_type = device_type
        self.distribution = distribution
        self._library: str | None = None
        self._kernels: dict[str, Callable[..., Any]] = {}
        self._has_cpu_fallback = False

    def library(self, path: str | os.PathLike[str]) -> None:
        """Register a shared library that exports ``candelabra_backend`` (see backend.h).

        Parameters
        ----------
        path
            The path of the library. A device type has at most one.

        Raises
        ------
        BackendError
            If there is no such file, or a library was registered before.
        """
        if self._library is not None:
            raise _C.BackendError(
                f"{self.distribution} registers two libraries for device '{self.device_type}': {self._library} and {path}"
            )
        text = os.fspath(path)
        if not os.path.exists(text):
            raise _C.BackendError(
                f"the library of {self.distribution} for device '{self.device_type}' is missing: {text}; reinstall the distribution"
            )
        self._library = text

    def kernel(self, operator_name: str, function: Callable[..., Any]) -> None:
        """Register a Python callable as the kernel of an operator on this device type.

        Parameters
        ----------
        operator_name
            The operator's name in the catalogue. An in-place variant uses the kernel of its
            operator.
        function
            Called as ``function(out, *arguments)``, see docs/backends.md. It takes precedence over
            the library's kernel.

        Warns
        -----
        RuntimeWarning
            If the core has no operator of that name. The plugin may have been written for a newer
            version.
        """
        if not callable(function):
            raise TypeError(
                f"registrar.kernel('{operator_name}', ...): expected a callable, but got {type(function).__name__}"
            )
        from candelabra.catalogue import OPERATORS

        if operator_name not in OPERATORS:
            _C.warn(
                f"{self.distribution} registers a kernel for '{operator_name}', which this tensor-core does not have; it is left out. "
                "If the backend is newer: pip install --upgrade candelabra-tensor-core",
                RuntimeWarning,
            )
            return
        self._kernels[operator_name] = function

    def cpu_fallback(self, enabled: bool = True) -> None:
        """Compute on the CPU what the backend has neither a kernel nor a decomposition for.

        Without it, such operators raise NotImplementedError; users can switch it on and off by
        `candelabra.backends.cpu_fallback` and ``CANDELABRA_CPU_FALLBACK``.
        """
        self._has_cpu_fallback = enabled

    def commit(self) -> None:
        """Register everything with the core."""
        if self._library is None and not self._kernels:
            raise _C.BackendError(
                f"{self.distribution} registered neither a library nor a kernel for device '{self.device_type}': "
                "its candelabra_register_backend must call registrar.library or registrar.kernel"
            )
        # In one call, so that no thread sees the device before all its kernels are registered.
        _C.register_backend(self.device_type, self.distribution, self._library, self._kernels)
        from .fallback import wanted_by_environment

        if (self._has_cpu_fallback and self.device_type != "cpu") or wanted_by_environment(self.device_type):
            _C.set_cpu_fallback(self.device_type, True)
