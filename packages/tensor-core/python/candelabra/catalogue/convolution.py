"""Convolution over one to three spatial dimensions (the number of entries of `stride`), and its two
gradients.

The three are closed under differentiation: the other two express the gradient of each. A
transposed convolution is ``convolution_backward_input``.
"""

from .declaration import HIDDEN, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_CONVOLUTION = (
    "All tensors are contiguous or all channels-last (of volumes, too), of one dtype, and have one to three spatial "
    "dimensions. Lists have as many entries as these; padding is a list of numbers, the same at both ends."
)

_GEOMETRY = {
    "stride": "sequence of int: one a spatial dimension: the step from one output to the next",
    "padding": "sequence of int: one a spatial dimension: zeros added at both ends",
    "dilation": "sequence of int: one a spatial dimension: the step between the elements of the kernel",
    "groups": "int: the number of groups that divide the channels, each with its own kernels",
}
operator(
    "convolution(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1) -> Tensor",
    shape="convolution", tier="fast", tags=HIDDEN,
    autocast="lower", batching="convolution", jvp="convolution",
    sees=f"{_SEES_CONVOLUTION} bias is contiguous. The output has the layout of the arguments.",
    doc=document(
        "Convolve the spatial dimensions with kernels (a cross-correlation).",
        ">>> x, w = candelabra.tensor([[[1.0, 2.0, 3.0]]]), candelabra.tensor([[[1.0, 1.0]]])\n"
        ">>> candelabra.ops.convolution(x, w, None, [1], [0], [1], 1)\ntensor([[[3., 5.]]])",
        input="Tensor: of shape (N, C, spatial...)", weight="Tensor: of shape (K, C / groups, kernel...)",
        bias="Tensor or None: of shape (K,)", **_GEOMETRY, returns="Tensor: of shape (N, K, spatial...)",
    ),
)  # fmt: skip
operator(
    "convolution_backward_input(Tensor grad, Tensor weight, int[] input_size, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> Tensor",
    shape="convolution_backward_input", tier="fast", tags=HIDDEN,
    autocast="lower", bilinear=("grad", "weight"), batching="convolution_backward_input",
    sees=f"{_SEES_CONVOLUTION} The output has the layout of the arguments.",
    doc=document(
        "Compute the gradient of a convolution with respect to its input, a transposed convolution.",
        ">>> grad, w = candelabra.ones(1, 1, 2), candelabra.tensor([[[1.0, 2.0]]])\n"
        ">>> candelabra.ops.convolution_backward_input(grad, w, [1, 1, 3], [1], [0], [1], 1)\ntensor([[[1., 3., 2.]]])",
        grad="Tensor: the gradient of the result", weight="Tensor: the kernels", input_size="sequence of int: the sizes of the input",
        **_GEOMETRY, returns="Tensor: of the sizes of the input",
    ),
)  # fmt: skip
operator(
    "convolution_backward_weight(Tensor grad, Tensor input, int[] weight_size, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> Tensor",
    shape="convolution_backward_weight", tier="fast", tags=HIDDEN,
    bilinear=("grad", "input"), batching="convolution_backward_weight",
    sees=f"{_SEES_CONVOLUTION} The output is contiguous in every case.",
    doc=document(
        "Compute the gradient of a convolution with respect to its kernels.",
        ">>> grad, x = candelabra.ones(1, 1, 2), candelabra.tensor([[[1.0, 2.0, 3.0]]])\n"
        ">>> candelabra.ops.convolution_backward_weight(grad, x, [1, 1, 2], [1], [0], [1], 1)\ntensor([[[3., 5.]]])",
        grad="Tensor: the gradient of the result", input="Tensor: the input", weight_size="sequence of int: the sizes of the kernels",
        **_GEOMETRY, returns="Tensor: of the sizes of the kernels",
    ),
)  # fmt: skip
