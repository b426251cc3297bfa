"""Running sums and products along one dimension."""

from .declaration import INPLACE, operator

for name in ("cumsum", "cumprod"):
    operator(f"{name}(Tensor self, int dim, *, dtype? dtype=None) -> Tensor", shape="scan", tags=INPLACE)
