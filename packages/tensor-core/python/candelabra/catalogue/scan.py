"""Running sums and products along one dimension."""

from .declaration import COMPOSITE, HIDDEN, INPLACE, NO_OUT, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_SCAN = (
    "self has the dtype of the output: integers became int64 unless dtype, out= or an in-place self says otherwise."
    " dim is wrapped; tensors without dimensions are seen as one-dimensional of size 1. Half precisions are "
    "accumulated in float32."
)

for name, sentence, shown, *facts in (
    (
        "cumsum",
        "Add up the elements so far along a dimension; integers and bools as int64.",
        "tensor([1, 3, 6])",
        dict(out="whole", autocast="float32 on accelerators", linear=("self",), batching="along", tier="required"),
    ),
    (
        "cumprod",
        "Multiply the elements so far along a dimension; integers and bools as int64.",
        "tensor([1, 2, 6])",
        dict(out="whole", autocast="float32 on accelerators", batching="along"),
    ),
):
    operator(
        f"{name}(Tensor self, int dim, *, dtype? dtype=None) -> Tensor", shape="scan", **dict(*facts), tags=INPLACE,
        sees=_SEES_SCAN,
        doc=document(
            sentence, f">>> candelabra.{name}(candelabra.tensor([1, 2, 3]), 0)\n{shown}",
            input="Tensor: of any shape", dim="int: the dimension", dtype="dtype, optional: `input` is converted to it first",
            returns="Tensor: of the shape of `input`",
        ),
    )  # fmt: skip
operator(
    "logcumsumexp(Tensor self, int dim) -> Tensor", shape="logcumsumexp", tags=COMPOSITE,
    out="exact whole",
    sees=(
        "self has the dtype of the output, floating point or complex; dim is wrapped, and tensors without "
        "dimensions are seen as one-dimensional of size 1."
    ),
    doc=document(
        "Compute the logarithm of cumulative sums of exponentials along a dimension, without overflow or underflow.",
        ">>> candelabra.logcumsumexp(candelabra.tensor([0.0, 0.0, 1000.0]), 0)\ntensor([0.0000e+00, 6.9315e-01, 1.0000e+03])",
        input="Tensor: floating point or complex", dim="int: the dimension",
        returns="Tensor: of the shape of `input`; the angles of complex numbers are continuous from one sum to the next",
    ),
)  # fmt: skip
operator(
    "_cummax_cummin(Tensor self, int dim, bool larger) -> Tensor", shape="_cummax_cummin",
    tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    sees=(
        "self has any dtype but a complex one, not converted, and the output holds int64 indices; dim is wrapped, "
        "and tensors without dimensions are seen as one-dimensional of size 1. NaN counts as maximum and as minimum."
    ),
    doc=document(
        "Return the index of the cumulative maximum (or minimum) along a dimension, the last among equals.",
        ">>> candelabra.ops._cummax_cummin(candelabra.tensor([1, 3, 2]), 0, True)\ntensor([0, 1, 1])",
        input="Tensor: of any shape, not complex", dim="int: the dimension", larger="bool: whether to select the largest, else the smallest",
        returns="Tensor: indices of dtype int64, of the shape of `input`", out="", notes="NaN counts as maximum and as minimum.",
    ),
)  # fmt: skip
