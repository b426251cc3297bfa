"""Convolution over one or two spatial dimensions (the number of entries of `stride`), and its two gradients.

The three are closed under differentiation: the gradient of each is made of the other two. A transposed convolution is
``convolution_input_gradient``.
"""

from .declaration import HIDDEN, document, operator

_GEOMETRY = {
    "stride": "sequence of int: one a spatial dimension: the step from one output to the next",
    "padding": "sequence of int: one a spatial dimension: zeros added at both ends",
    "dilation": "sequence of int: one a spatial dimension: the step between the elements of the kernel",
    "groups": "int: into how many groups the channels are split, each with kernels of its own",
}
operator(
    "convolution(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] padding=0, int[] dilation=1, int groups=1) -> Tensor",
    shape="convolution", tags=HIDDEN,
    doc=document(
        "Slide kernels over the spatial dimensions and sum products (a cross-correlation).",
        ">>> x, w = candelabra.tensor([[[1.0, 2.0, 3.0]]]), candelabra.tensor([[[1.0, 1.0]]])\n"
        ">>> candelabra.ops.convolution(x, w, None, [1], [0], [1], 1)\ntensor([[[3., 5.]]])",
        input="Tensor: of shape (N, C, spatial...)", weight="Tensor: of shape (K, C / groups, kernel...)",
        bias="Tensor or None: of shape (K,)", **_GEOMETRY, returns="Tensor: of shape (N, K, spatial...)",
    ),
)  # fmt: skip
operator(
    "convolution_input_gradient(Tensor grad, Tensor weight, int[] input_size, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> Tensor",
    shape="convolution_input_gradient", tags=HIDDEN,
    doc=document(
        "Compute the gradient of a convolution with regard to its input; a transposed convolution.",
        ">>> grad, w = candelabra.ones(1, 1, 2), candelabra.tensor([[[1.0, 2.0]]])\n"
        ">>> candelabra.ops.convolution_input_gradient(grad, w, [1, 1, 3], [1], [0], [1], 1)\ntensor([[[1., 3., 2.]]])",
        grad="Tensor: the gradient of the result", weight="Tensor: the kernels", input_size="sequence of int: the sizes of the input",
        **_GEOMETRY, returns="Tensor: of the sizes of the input",
    ),
)  # fmt: skip
operator(
    "convolution_weight_gradient(Tensor grad, Tensor input, int[] weight_size, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> Tensor",
    shape="convolution_weight_gradient", tags=HIDDEN,
    doc=document(
        "Compute the gradient of a convolution with regard to its kernels.",
        ">>> grad, x = candelabra.ones(1, 1, 2), candelabra.tensor([[[1.0, 2.0, 3.0]]])\n"
        ">>> candelabra.ops.convolution_weight_gradient(grad, x, [1, 1, 2], [1], [0], [1], 1)\ntensor([[[3., 5.]]])",
        grad="Tensor: the gradient of the result", input="Tensor: the input", weight_size="sequence of int: the sizes of the kernels",
        **_GEOMETRY, returns="Tensor: of the sizes of the kernels",
    ),
)  # fmt: skip
