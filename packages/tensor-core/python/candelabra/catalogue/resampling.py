"""Resampling and grid sampling of signals, images and volumes, and padding by reflection,
replication or circularly.

Batches are (N, C, spatial...), with one to three spatial dimensions; the public functions are in
`candelabra.nn.functional`.
"""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_RESAMPLE = (
    "The batch is (N, C, spatial...), contiguous or channels-last (of volumes, too), and the output has the same "
    "layout. mode is nearest, nearest-exact, linear or cubic for any number of spatial dimensions. scales is empty "
    "or has one entry for each of them, 0 if the sizes determine the scale."
)
_SEES_GRID = "self and grid have any strides and one floating-point dtype."
_SEES_COLUMNS = "Images (N, C, H, W) and columns (N, C * KH * KW, L) are contiguous; the lists are pairs of numbers."
_SEES_EDGES = (
    "The tensor is contiguous or, where all spatial dimensions of images or volumes are padded and mode is not "
    "circular, channels-last; the output has the same layout. padding is in pairs from the last dimension on, for "
    "one to three dimensions, and fits the sizes."
)

_BATCH = "Tensor: of shape (N, C, spatial...)"
_FILTER = {
    "scales": "sequence of float: the scale factor of each dimension, for coordinates; 0, or an empty list, if they follow "
    "from the sizes",
    "mode": 'str: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` or ``"cubic"``',
    "align_corners": "bool: whether the outermost elements are aligned",
    "antialias": "bool: whether to widen the filter for downsampling",
}
operator(
    "_upsample(Tensor self, int[] output_size, float[] scales, str mode, bool align_corners, bool antialias) -> Tensor",
    shape="_upsample", title="interpolate", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="float32 on accelerators",
    sees=f"{_SEES_RESAMPLE} self is floating point or uint8, or in the nearest modes any real dtype.",
    doc=document(
        "Resample the spatial dimensions to other sizes.",
        ">>> x = candelabra.tensor([[[1.0, 3.0]]])\n"
        ">>> candelabra.ops._upsample(x, [4], [], \"linear\", False, False)\ntensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])",
        input=_BATCH, output_size="sequence of int: the new spatial sizes", **_FILTER, returns="Tensor: of shape (N, C, *output_size)", out="",
        notes="Cubic weights are Keys' (1981) with a = -0.75, with antialiasing a = -0.5. Positions are those of PyTorch.",
    ),
)  # fmt: skip
operator(
    "_upsample_backward(Tensor grad, int[] input_size, float[] scales, str mode, bool align_corners, bool antialias) -> Tensor",
    shape="_upsample_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_RESAMPLE} grad is floating point.",
    doc=document(
        "Compute the gradient of resampling.",
        ">>> candelabra.ops._upsample_backward(candelabra.ones(1, 1, 4), [1, 1, 2], [], \"nearest\", False, False)\ntensor([[[2., 2.]]])",
        grad="Tensor: the gradient of the result", input_size="sequence of int: the sizes of the input", **_FILTER,
        returns="Tensor: of the sizes of the input", out="",
    ),
)  # fmt: skip
_PLACES = {
    "grid": "Tensor: of shape (N, spatial..., number of spatial dimensions): coordinates from -1 to 1, the last dimension first",
    "mode": 'str: ``"bilinear"``, ``"nearest"`` or, for images, ``"bicubic"``',
    "padding_mode": 'str: the values outside: ``"zeros"``, the nearest element of the ``"border"``, or a ``"reflection"``',
    "align_corners": "bool: whether -1 and 1 are the centres of the outermost elements, or their outer edges",
}
operator(
    "grid_sampler(Tensor self, Tensor grid, str mode, str padding_mode, bool align_corners) -> Tensor",
    shape="grid_sampler", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_GRID,
    doc=document(
        "Sample images or volumes at arbitrary points.",
        ">>> image = candelabra.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])\n"
        ">>> candelabra.ops.grid_sampler(image, candelabra.zeros(1, 1, 1, 2), \"bilinear\", \"zeros\", True).item()\n1.5",
        input=_BATCH, **_PLACES, returns="Tensor: of shape (N, C, spatial sizes of grid...)", out="",
    ),
)  # fmt: skip
operator(
    "grid_sampler_backward(Tensor grad, Tensor self, Tensor grid, str mode, str padding_mode, bool align_corners, bool[] needs)"
    " -> (Tensor grad_self, Tensor grad_grid)",
    shape="grid_sampler_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_GRID} grad is contiguous. A gradient that is not needed is empty.",
    doc=document(
        "Compute the gradients of grid_sampler.",
        ">>> image, grid = candelabra.ones(1, 1, 1, 1), candelabra.zeros(1, 1, 1, 2)\n"
        ">>> candelabra.ops.grid_sampler_backward(image, image, grid, \"nearest\", \"zeros\", True, [True, False]).grad_self.item()\n1.0",
        grad="Tensor: the gradient of the result", input=_BATCH, **_PLACES, needs="sequence of bool: which of the two to compute",
        returns="(grad_self, grad_grid): of the shapes of input and grid; gradients that are not computed are empty", out="",
    ),
)  # fmt: skip
_EDGES = {
    "padding": "sequence of int: the numbers of elements before and after the last dimension, then the one before it, and so on, at "
    "most three dimensions; negative numbers crop",
    "mode": 'str: ``"reflect"``, ``"replicate"`` or ``"circular"``',
}
_PATCHES = {
    "kernel_size": "sequence of two int: the sizes of a patch", "dilation": "sequence of two int: the step between its elements",
    "padding": "sequence of two int: zeros at both ends", "stride": "sequence of two int: the step from one patch to the next",
}  # fmt: skip
operator(
    "im2col(Tensor self, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor", shape="im2col", title="unfold",
    tags=HIDDEN | COMPOSITE | NO_OUT,
    linear=("self",), batching="folded",
    sees=_SEES_COLUMNS,
    doc=document(
        "Extract the patches that a kernel covers as columns.",
        ">>> image = candelabra.arange(4.0).reshape(1, 1, 2, 2)\n"
        ">>> candelabra.ops.im2col(image, [1, 2], [1, 1], [0, 0], [1, 1])\ntensor([[[0., 2.],\n         [1., 3.]]])",
        input="Tensor: of shape (N, C, H, W)", **_PATCHES, returns="Tensor: of shape (N, C * KH * KW, L) with L patches", out="",
    ),
)  # fmt: skip
operator(
    "col2im(Tensor grad, int[] output_size, int[] kernel_size, int[] dilation, int[] padding, int[] stride) -> Tensor",
    shape="col2im", title="fold", tags=HIDDEN | COMPOSITE | NO_OUT,
    linear=("grad",), batching="folded",
    sees=_SEES_COLUMNS,
    doc=document(
        "Sum patches, given as columns, into an image.",
        ">>> columns = candelabra.ones(1, 4, 4)\n"
        ">>> candelabra.ops.col2im(columns, [3, 3], [2, 2], [1, 1], [0, 0], [1, 1])[0, 0]\n"
        "tensor([[1., 2., 1.],\n        [2., 4., 2.],\n        [1., 2., 1.]])",
        grad="Tensor: of shape (N, C * KH * KW, L)", output_size="sequence of two int: the sizes of the image", **_PATCHES,
        returns="Tensor: of shape (N, C, H, W)", out="",
    ),
)  # fmt: skip
operator(
    "_constant_pad_nd(Tensor self, int[] padding, Scalar value) -> Tensor", shape="_constant_pad_nd", title="pad", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        "self has any strides; the output is contiguous or, where self is channels-last, channels-last. padding is "
        "in pairs from the last dimension on; negative numbers crop. value fits the dtype."
    ),
    doc=document(
        "Pad the last dimensions with a number.",
        ">>> candelabra.ops._constant_pad_nd(candelabra.tensor([1, 2, 3]), [2, -1], 0)\ntensor([0, 0, 1, 2])",
        input="Tensor: of any shape",
        padding="sequence of int: the numbers of elements before and after the last dimension, then the one before it, and so on; "
        "negative numbers crop",
        value="number: the value of the padding", returns="Tensor: contiguous", out="",
    ),
)  # fmt: skip
operator(
    "_reflection_replication_pad(Tensor self, int[] padding, str mode) -> Tensor", shape="_reflection_replication_pad", title="pad", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_EDGES,
    doc=document(
        "Pad the last dimensions by reflection, replication or circularly.",
        ">>> candelabra.ops._reflection_replication_pad(candelabra.tensor([1, 2, 3]), [2, 1], \"reflect\")\ntensor([3, 2, 1, 2, 3, 2])",
        input="Tensor: of any shape", **_EDGES, returns="Tensor: the padded tensor", out="",
    ),
)  # fmt: skip
operator(
    "_reflection_replication_pad_backward(Tensor grad, int[] input_size, int[] padding, str mode) -> Tensor",
    shape="_reflection_replication_pad_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=_SEES_EDGES,
    doc=document(
        "Compute the gradient of reflection, replication or circular padding.",
        ">>> candelabra.ops._reflection_replication_pad_backward(candelabra.ones(6), [3], [2, 1], \"reflect\")\ntensor([1., 3., 2.])",
        grad="Tensor: the gradient of the result", input_size="sequence of int: the sizes of the input", **_EDGES,
        returns="Tensor: of the sizes of the input", out="",
    ),
)  # fmt: skip
