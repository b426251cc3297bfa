"""Joining and rearranging tensors into new memory."""

from .declaration import COMPOSITE, FUNCTION_ONLY, INPLACE, document, operator

operator(
    "cat(Tensor[] tensors, int dim=0) -> Tensor", shape="cat", tags=FUNCTION_ONLY,
    doc=document(
        "Join tensors along a dimension they have.",
        ">>> candelabra.cat([candelabra.tensor([1, 2]), candelabra.tensor([3])])\ntensor([1, 2, 3])",
        tensors="sequence of Tensor: of equal sizes but in that dimension", dim="int: the dimension",
        returns="Tensor: of the dtype that they promote to",
    ),
)  # fmt: skip
operator(
    "stack(Tensor[] tensors, int dim=0) -> Tensor", shape="stack", tags=FUNCTION_ONLY | COMPOSITE,
    doc=document(
        "Join tensors of one shape along a new dimension.",
        ">>> candelabra.stack([candelabra.tensor([1, 2]), candelabra.tensor([3, 4])])\ntensor([[1, 2],\n        [3, 4]])",
        tensors="sequence of Tensor: of equal sizes", dim="int: where the new dimension is in the result",
        returns="Tensor: of the dtype that they promote to",
    ),
)  # fmt: skip
operator(
    "flip(Tensor self, int[] dims) -> Tensor", shape="flip",
    doc=document(
        "Reverse dimensions, into new memory.",
        ">>> candelabra.flip(candelabra.tensor([1, 2, 3]), (0,))\ntensor([3, 2, 1])",
        input="Tensor: of any shape", dims="sequence of int: the dimensions", returns="Tensor: of the shape of `input`",
    ),
)  # fmt: skip
for name, kept, shown in (
    ("tril", "on and below", "tensor([[1, 0],\n        [3, 4]])"),
    ("triu", "on and above", "tensor([[1, 2],\n        [0, 4]])"),
):
    operator(
        f"{name}(Tensor self, int diagonal=0) -> Tensor", shape="triangle", tags=INPLACE,
        doc=document(
            f"Keep the elements {kept} a diagonal of matrices, and set the others to zero.",
            f">>> candelabra.{name}(candelabra.tensor([[1, 2], [3, 4]]))\n{shown}",
            input="Tensor: of at least two dimensions; the last two are the matrices",
            diagonal="int: which one: 0 the main one, positive above it", returns="Tensor: of the shape of `input`",
        ),
    )  # fmt: skip
