"""Joining and rearranging tensors into new memory."""

from .declaration import COMPOSITE, FUNCTION_ONLY, INPLACE, NO_OUT, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_REARRANGED = "self has any strides; the output is contiguous or, where self is channels-last, channels-last."
_SEES_TRIANGLE = "self has any strides and at least two dimensions; the output is contiguous."

operator(
    "cat(Tensor[] tensors, int dim=0) -> Tensor", shape="cat", tier="fast", jvp="cat", tags=FUNCTION_ONLY,
    out="apart", batching="join",
    sees=(
        "tensors have the dtype of the output, without the empty one-dimensional ones that PyTorch skips, so that "
        "there may be none; dim is wrapped. The output is contiguous or, where all tensors are channels-last, "
        "channels-last."
    ),
    doc=document(
        "Concatenate tensors along a dimension.",
        ">>> candelabra.cat([candelabra.tensor([1, 2]), candelabra.tensor([3])])\ntensor([1, 2, 3])",
        tensors="sequence of Tensor: of equal sizes except in that dimension", dim="int: the dimension",
        returns="Tensor: of the dtype that they promote to",
    ),
)  # fmt: skip
operator(
    "stack(Tensor[] tensors, int dim=0) -> Tensor", shape="stack", jvp="composite", tags=FUNCTION_ONLY | COMPOSITE,
    out="apart", batching="join",
    sees=(
        "tensors have the dtype of the output and equal sizes; dim is wrapped. The output is contiguous, unless all"
        " tensors are channels-last."
    ),
    doc=document(
        "Stack tensors of one shape along a new dimension.",
        ">>> candelabra.stack([candelabra.tensor([1, 2]), candelabra.tensor([3, 4])])\ntensor([[1, 2],\n        [3, 4]])",
        tensors="sequence of Tensor: of equal sizes", dim="int: the index of the new dimension",
        returns="Tensor: of the dtype that they promote to",
    ),
)  # fmt: skip
operator(
    "flip(Tensor self, int[] dims) -> Tensor", shape="flip",
    linear=("self",), batching="along",
    sees=(
        "self has any strides; dims are wrapped, distinct and ascending. The output has the memory order of self."
    ),
    doc=document(
        "Reverse dimensions, into new memory.",
        ">>> candelabra.flip(candelabra.tensor([1, 2, 3]), (0,))\ntensor([3, 2, 1])",
        input="Tensor: of any shape", dims="sequence of int: the dimensions", returns="Tensor: of the shape of `input`",
    ),
)  # fmt: skip
for name, kept, shown, *facts in (
    (
        "tril",
        "on and below",
        "tensor([[1, 0],\n        [3, 4]])",
        dict(out="exact", linear=("self",), batching="leading"),
    ),
    (
        "triu",
        "on and above",
        "tensor([[1, 2],\n        [0, 4]])",
        dict(out="exact", linear=("self",), batching="leading"),
    ),
):
    operator(
        f"{name}(Tensor self, int diagonal=0) -> Tensor", shape="triangle", **dict(*facts), tags=INPLACE,
        sees=_SEES_TRIANGLE,
        doc=document(
            f"Keep the elements {kept} a diagonal of matrices, and set the others to zero.",
            f">>> candelabra.{name}(candelabra.tensor([[1, 2], [3, 4]]))\n{shown}",
            input="Tensor: of at least two dimensions; the last two are the matrices",
            diagonal="int: 0 is the main diagonal, positive ones are above it", returns="Tensor: of the shape of `input`",
        ),
    )  # fmt: skip
_REARRANGED = "Tensor: new memory, in the memory format of `input`"
operator(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", shape="pixel_shuffle", tags=FUNCTION_ONLY | COMPOSITE | NO_OUT,
    sees=_SEES_REARRANGED,
    doc=document(
        "Rearrange groups of ``r * r`` channels into blocks of r by r pixels. Shapes: (..., C * r * r, H, W) to (..., C, H * r, W * r).",
        ">>> candelabra.pixel_shuffle(candelabra.arange(4).reshape(4, 1, 1), 2)\ntensor([[[0, 1],\n         [2, 3]]])",
        input="Tensor: of at least three dimensions", upscale_factor="int: r", returns=_REARRANGED, out="",
        raises="RuntimeError: if the number of channels is not a multiple of ``r * r``",
    ),
)  # fmt: skip
operator(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", shape="pixel_unshuffle", tags=FUNCTION_ONLY | COMPOSITE | NO_OUT,
    sees=_SEES_REARRANGED,
    doc=document(
        "Rearrange blocks of r by r pixels into channels: the inverse of :func:`pixel_shuffle`.",
        ">>> candelabra.pixel_unshuffle(candelabra.arange(4).reshape(1, 2, 2), 2).flatten()\ntensor([0, 1, 2, 3])",
        input="Tensor: of at least three dimensions", downscale_factor="int: r", returns=_REARRANGED, out="",
        raises="RuntimeError: if height or width is not a multiple of ``r``",
    ),
)  # fmt: skip
operator(
    "channel_shuffle(Tensor self, int groups) -> Tensor", shape="channel_shuffle", tags=FUNCTION_ONLY | COMPOSITE | NO_OUT,
    sees=_SEES_REARRANGED,
    doc=document(
        "Take channels in turns from `groups` groups. Shapes: (N, C, ...).",
        ">>> candelabra.channel_shuffle(candelabra.arange(4).reshape(1, 4, 1), 2).flatten()\ntensor([0, 2, 1, 3])",
        input="Tensor: of at least three dimensions", groups="int: a divisor of the channels", returns=_REARRANGED, out="",
        raises="RuntimeError: if the number of channels is not a multiple of `groups`",
    ),
)  # fmt: skip
