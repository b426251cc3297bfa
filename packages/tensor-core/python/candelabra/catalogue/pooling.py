"""Pooling over one or two spatial dimensions (the number of entries of `kernel_size` or `output_size`).

Input is (N, C, spatial...); the public functions add the batch dimension when there is none. Indices are positions in the flattened
spatial dimensions of one plane of the input.
"""

from .declaration import HIDDEN, operator

operator(
    "max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> (Tensor output, Tensor indices)",
    shape="max_pool", tags=HIDDEN,
)  # fmt: skip
operator(
    "adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor output, Tensor indices)", shape="adaptive_max_pool", tags=HIDDEN
)
# Adds grad into zeros of input_size at indices: the gradient of both maximum poolings.
operator("max_pool_backward(Tensor grad, Tensor indices, int[] input_size) -> Tensor", shape="max_pool_backward", tags=HIDDEN)
operator(
    "avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override)"
    " -> Tensor",
    shape="avg_pool", tags=HIDDEN,
)  # fmt: skip
operator(
    "avg_pool_backward(Tensor grad, int[] input_size, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode,"
    " bool count_include_pad, int? divisor_override) -> Tensor",
    shape="pool_backward", tags=HIDDEN,
)  # fmt: skip
operator("adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor", shape="adaptive_avg_pool", tags=HIDDEN)
operator("adaptive_avg_pool_backward(Tensor grad, int[] input_size) -> Tensor", shape="pool_backward", tags=HIDDEN)
