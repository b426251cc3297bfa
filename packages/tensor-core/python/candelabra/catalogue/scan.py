"""Running sums and products along one dimension."""

from .declaration import INPLACE, document, operator

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
