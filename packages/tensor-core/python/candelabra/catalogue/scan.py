"""Running sums and products along one dimension."""

from .declaration import COMPOSITE, INPLACE, document, operator

for name, sentence, shown in (
    ("cumsum", "Add up the elements so far along a dimension; integers and bools as int64.", "tensor([1, 3, 6])"),
    ("cumprod", "Multiply the elements so far along a dimension; integers and bools as int64.", "tensor([1, 2, 6])"),
):
    operator(
        f"{name}(Tensor self, int dim, *, dtype? dtype=None) -> Tensor", shape="scan", tags=INPLACE,
        doc=document(
            sentence, f">>> candelabra.{name}(candelabra.tensor([1, 2, 3]), 0)\n{shown}",
            input="Tensor: of any shape", dim="int: along which is gone", dtype="dtype, optional: to which `input` is converted first",
            returns="Tensor: of the shape of `input`",
        ),
    )  # fmt: skip
operator(
    "logcumsumexp(Tensor self, int dim) -> Tensor", shape="running_log", tags=COMPOSITE,
    doc=document(
        "Compute the logarithm of the running sums of exponentials along a dimension, without overflow or underflow.",
        ">>> candelabra.logcumsumexp(candelabra.tensor([0.0, 0.0, 1000.0]), 0)\ntensor([0.0000e+00, 6.9315e-01, 1.0000e+03])",
        input="Tensor: floating point or complex", dim="int: along which is gone",
        returns="Tensor: of the shape of `input`; of complex numbers, the angle goes on from one sum to the next",
    ),
)  # fmt: skip
