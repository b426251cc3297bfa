"""Device type ``numpy``: tensors are in host memory, which the core allocates; the kernels are
NumPy functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from candelabra.backends import Registrar

hookimpl = pluggy.HookimplMarker("candelabra")


@hookimpl
def candelabra_register_backend(registrar: Registrar) -> None:
    """Register every kernel of this package."""
    from candelabra_numpy import (
        convolution,
        elementwise,
        factorization,
        fft,
        indexing,
        linalg,
        loss,
        optimizer,
        pooling,
        random,
        reduction,
        solving,
        special,
        spectral,
    )
    from candelabra_numpy.kernels import KERNELS

    modules = (
        elementwise, special, reduction, indexing, linalg, factorization, spectral, solving, fft, loss, convolution, pooling, random,
        optimizer,
    )  # fmt: skip
    assert all(module.__name__.startswith(__name__) for module in modules)  # the import filled KERNELS
    for name, kernel in KERNELS.items():
        registrar.kernel(name, kernel)
