"""Convolution over one or two spatial dimensions (the number of entries of `stride`), and its two gradients.

The three are closed under differentiation: the gradient of each is made of the other two. A transposed convolution is
``convolution_input_gradient``.
"""

from .declaration import HIDDEN, operator

operator(
    "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor",
    shape="convolution", tags=HIDDEN,
)  # fmt: skip
operator(
    "convolution_input_gradient(Tensor grad, Tensor weight, int[] input_size, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> Tensor",
    shape="convolution_input_gradient", tags=HIDDEN,
)  # fmt: skip
operator(
    "convolution_weight_gradient(Tensor grad, Tensor input, int[] weight_size, int[] stride, int[] padding, int[] dilation, int groups)"
    " -> Tensor",
    shape="convolution_weight_gradient", tags=HIDDEN,
)  # fmt: skip
