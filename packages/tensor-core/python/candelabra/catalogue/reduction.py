"""Reductions over some or all dimensions. A kernel gets `dim` as sorted non-negative dimensions,
all of them when none were given.
"""

from __future__ import annotations

from .declaration import COMPOSITE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What a row of a loop states beside the columns that all rows have.
facts: list[dict[str, Any]]

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_SUM = (
    "self has the dtype of the output: for sum and prod, integers became int64 unless dtype or out= says otherwise. "
    "dim lists the reduced dimensions. Half precisions are accumulated in float32."
)
_SEES_EXTREMUM = "dim lists the reduced dimensions, none of them empty; self is not complex."
_SEES_INDICES = (
    "dim is one dimension that is not empty; a self without dimensions is seen as one-dimensional of size 1. The "
    "first among equals wins, and NaN wins over all."
)
_SEES_BOOL = "dim lists the reduced dimensions; self has any dtype; the output is bool, or uint8 if self or out= is."
_SEES_VARIANCE = (
    "dim lists the reduced dimensions; correction is a number of kind float; a complex self has a real output."
)
_SEES_ARG = (
    "dim is one dimension that is not empty; a self without dimensions is seen as one-dimensional of size 1. Over "
    "all elements, self is contiguous and flattened, with leading dimensions of size 1 if keepdim is set. The "
    "first of equal elements is selected, and NaN before all others."
)

_X = ">>> x = candelabra.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
_DIMS = "int or sequence of int, optional: the dimensions that are reduced; all by default"
_DIM = "int, optional: the dimension that is reduced; all by default"
_KEEPDIM = "bool: whether reduced dimensions stay, with size 1"
_DTYPE = "dtype, optional: `input` is converted to it first"
_RETURNS = "Tensor: without the reduced dimensions"


def _reduced(call: str, sentence: str, shown: str, dim: str = _DIMS, **parameters: str) -> str:
    return document(
        sentence, f"{_X}>>> candelabra.{call}\n{shown}",
        input="Tensor: of any shape", dim=dim, keepdim=_KEEPDIM, **parameters, returns=_RETURNS,
    )  # fmt: skip


for name, sentence, shown, *facts in (
    (
        "sum",
        "Add up elements; integers and bools as int64.",
        "tensor([4., 6.])",
        dict(autocast="float32 on accelerators", linear=("self",), batching="along", tier="required"),
    ),
    (
        "mean",
        "Compute the mean of elements, which must be floating point or complex.",
        "tensor([2., 3.])",
        dict(linear=("self",), batching="along", tier="fast"),
    ),
):
    operator(
        f"{name}(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", shape=name, **dict(*facts),
        sees=_SEES_SUM,
        doc=_reduced(f"{name}(x, 0)", sentence, shown, dtype=_DTYPE),
    )  # fmt: skip
operator(
    "_nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", shape="sum", title="nansum", tags=HIDDEN | COMPOSITE,
    sees="As sum; NaN counts as zero.",
    doc=document(
        "Sum elements, with NaN as zero: `nansum` of floating-point dtypes.",
        '>>> candelabra.ops._nansum(candelabra.tensor([1.0, float("nan"), 2.0]))\ntensor(3.)',
        input="Tensor: floating point", dim=_DIMS, keepdim=_KEEPDIM, dtype=_DTYPE, returns=_RETURNS,
    ),
)  # fmt: skip
operator(
    "count_nonzero(Tensor self, int[]? dim=None) -> Tensor", shape="count_nonzero", tags=COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees="dim lists the reduced dimensions; self has any dtype; the output is int64.",
    doc=document(
        "Count the elements that are not zero, of all or along dimensions.",
        ">>> candelabra.count_nonzero(candelabra.tensor([0, 1, 2]))\ntensor(2)",
        input="Tensor: of any shape", dim=_DIMS, returns="Tensor: of dtype int64, without the reduced dimensions", out="",
    ),
)  # fmt: skip
operator(
    "prod(Tensor self, int? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor", kernel_types={"dim": "int[]"}, shape="prod", tier="required",
    autocast="float32", batching="along",
    sees=f"{_SEES_SUM} dim is a list here, too, although the schema takes one dimension.",
    doc=_reduced("prod(x, 0)", "Multiply elements; integers and bools as int64.", "tensor([3., 8.])", _DIM, dtype=_DTYPE),
)  # fmt: skip
for name, word, shown in (("amax", "largest", "tensor([3., 4.])"), ("amin", "smallest", "tensor([1., 2.])")):
    operator(
        f"{name}(Tensor self, int[] dim=(), bool keepdim=False) -> Tensor", shape="extremum", tier="required", out="exact", batching="along",
        sees=_SEES_EXTREMUM,
        doc=_reduced(f"{name}(x, 0)", f"Return the {word} elements; NaN propagates. Equal elements share the gradient.", shown),
    )  # fmt: skip
operator(
    "_aminmax(Tensor self, int[] dim=(), bool keepdim=False) -> (Tensor min, Tensor max)", shape="_aminmax", title="aminmax", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        "As amin and amax: dim lists the reduced dimensions, none of them empty, and self is not complex. Both "
        "outputs have the same strides."
    ),
    doc=document(
        "Return the minimum and the maximum in one pass; NaN propagates.",
        f"{_X}>>> candelabra.ops._aminmax(x, 0).max\ntensor([3., 4.])",
        input="Tensor: of any shape, not complex", dim=_DIMS, keepdim=_KEEPDIM, returns="(min, max): without the reduced dimensions", out="",
    ),
)  # fmt: skip
for name, word, shown in (
    ("max_with_indices", "largest", "tensor([1, 1])"),
    ("min_with_indices", "smallest", "tensor([0, 0])"),
):
    operator(
        f"{name}(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", shape="extremum_indices", title=name.removesuffix("_with_indices"), tags=HIDDEN,
        out="exact whole", batching="along", jvp="gather",
        sees=_SEES_INDICES,
        doc=document(
            f"Return the {word} elements along a dimension and their indices, the first among equals. NaN counts as the {word}.",
            f"{_X}>>> candelabra.ops.{name}(x, 1).indices\n{shown}",
            input="Tensor: of any shape", dim="int: the dimension to reduce", keepdim=_KEEPDIM,
            returns="(values, indices): without the reduced dimension; indices are int64", out="",
        ),
    )  # fmt: skip
for name, word, shown, tier in (
    ("argmax", "largest", "tensor([1, 1])", "required"),
    ("argmin", "smallest", "tensor([0, 0])", ""),
):
    operator(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", shape="arg_extremum", tier=tier, tags=NONDIFFERENTIABLE,
        out="exact", batching="along",
        sees=_SEES_ARG,
        doc=_reduced(
            f"{name}(x, 1)", f"Return the position of the {word} element, the first among equals; without `dim`, in the flattened tensor.", shown, _DIM
        ),
    )  # fmt: skip
for name, sentence, shown, *facts in (
    ("all", "Test whether all elements are nonzero.", "tensor([False,  True])", dict(batching="along", tier="fast")),
    (
        "any",
        "Test whether at least one element is nonzero.",
        "tensor([True, True])",
        dict(batching="along", tier="fast"),
    ),
):
    operator(
        f"{name}(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", shape="reduce_bool", **dict(*facts), tags=NONDIFFERENTIABLE,
        sees=_SEES_BOOL,
        doc=_reduced(f"{name}(x > 1, 0)", sentence, shown),
    )  # fmt: skip
for name, sentence, shown, *facts in (
    ("var", "Compute variances: sums of squared differences to the mean, divided by the number of elements less the correction.", "tensor([2., 2.])", dict(batching="along", tier="fast")),
    ("std", "Compute standard deviations: square roots of variances.", "tensor([1.4142, 1.4142])", dict(batching="along")),
):  # fmt: skip
    operator(
        f"{name}(Tensor self, int[]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor", shape="variance", **dict(*facts),
        sees=_SEES_VARIANCE,
        doc=_reduced(
            f"{name}(x, 0)", sentence, shown,
            correction="number, optional: 1 by default (Bessel's); the older ``unbiased=False`` means 0",
        ),
    )  # fmt: skip
# The vector norm of order ord: (sum |x|^ord)^(1/ord), with inf, -inf and 0 as in numpy.linalg.norm.
operator(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    shape="vector_norm", title="linalg.vector_norm", tags=HIDDEN,
    out="exact whole", autocast="float32 on accelerators", batching="along",
    sees=(
        "dim lists the reduced dimensions; ord is a number of kind float; self has been converted to dtype, and a "
        "complex self has a real output."
    ),
    doc=document(
        "Compute vector norms: ``(sum |x|^ord)^(1/ord)``.",
        f"{_X}>>> candelabra.ops.linalg_vector_norm(x, 1)\ntensor(10.)",
        input="Tensor: floating point or complex",
        ord="number: the order; inf and -inf give the largest and smallest magnitude, 0 the number of nonzero elements",
        dim=_DIMS, keepdim=_KEEPDIM, dtype=_DTYPE, returns="Tensor: real, without the reduced dimensions",
    ),
)  # fmt: skip
operator(
    "logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor", shape="logsumexp", jvp="logsumexp", tags=COMPOSITE,
    autocast="float32 on accelerators", batching="along",
    sees=(
        "dim lists the reduced dimensions; self has the dtype of the output, integers and bools having become the "
        "default dtype."
    ),
    doc=_reduced(
        "logsumexp(x * 1000, 1)", "Compute ``log(sum(exp(x)))`` without overflow on the way.", "tensor([2000., 4000.])",
        "int or sequence of int: the dimensions that are reduced",
    ),
)  # fmt: skip
