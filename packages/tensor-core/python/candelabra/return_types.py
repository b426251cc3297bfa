"""Named results: tuples such as ``candelabra.return_types.max(values=..., indices=...)``."""

from __future__ import annotations

import sys
from collections import namedtuple

from candelabra import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def print_as(result_type: Any, name: str, fields: tuple[str, ...]) -> None:
    """Make results of this type print one field per line, under their public name."""

    def represent(self: Any) -> str:
        # For programs that import torch, the name is PyTorch's.
        package = "torch" if getattr(sys.modules.get("torch"), "Tensor", None) is _C.Tensor else "candelabra"
        return f"{package}.return_types.{name}(\n" + ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self)) + ")"

    result_type.__repr__ = represent


def _result_type(name: str, *fields: str) -> Any:
    made: Any = namedtuple(name, fields, module=__name__)  # type: ignore[misc]  # the name is a variable
    print_as(made, name, fields)
    made.__doc__ = f"The results of candelabra.{name}: {' and '.join(fields)}."
    return made


max = _result_type("max", "values", "indices")
min = _result_type("min", "values", "indices")
median = _result_type("median", "values", "indices")
nanmedian = _result_type("nanmedian", "values", "indices")
mode = _result_type("mode", "values", "indices")
kthvalue = _result_type("kthvalue", "values", "indices")
cummax = _result_type("cummax", "values", "indices")
cummin = _result_type("cummin", "values", "indices")
aminmax = _result_type("aminmax", "min", "max")
histogram = _result_type("histogram", "hist", "bin_edges")
histogramdd = _result_type("histogramdd", "hist", "bin_edges")

linalg_eig = _result_type("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _result_type("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_ldl_factor = _result_type("linalg_ldl_factor", "LD", "pivots")
linalg_lstsq = _result_type("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = _result_type("linalg_lu", "P", "L", "U")
linalg_lu_factor = _result_type("linalg_lu_factor", "LU", "pivots")
linalg_svd = _result_type("linalg_svd", "U", "S", "Vh")
lu_unpack = _result_type("lu_unpack", "P", "L", "U")
qr = _result_type("qr", "Q", "R")
slogdet = _result_type("slogdet", "sign", "logabsdet")
svd = _result_type("svd", "U", "S", "V")
triangular_solve = _result_type("triangular_solve", "solution", "cloned_coefficient")
