"""Matrix and vector products."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_numpy.kernels import kernel

Array = Any

kernel("mm", "bmm", "dot")(np.matmul)


@kernel("addmm", "baddbmm")
def addmm(a: Array, b: Array, c: Array, beta: Any, alpha: Any) -> Array:
    product = np.asarray(alpha, a.dtype) * np.matmul(b, c)
    return product if beta == 0 else np.asarray(beta, a.dtype) * a + product
