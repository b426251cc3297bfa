"""Pooling over one to three spatial dimensions (the number of entries of `kernel_size` or
`output_size`).

Input is (N, C, spatial...); the public functions add the batch dimension when there is none.
Indices refer to the flattened spatial dimensions of one plane of the input.
"""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_POOLING = (
    "self and gradients are (N, C, spatial...) of one to three spatial dimensions and of any strides; self is neither "
    "complex nor bool. Lists have one entry for each spatial dimension, and stride is filled in with kernel_size. "
    "divisor_override, where it is given, is not 0. Outputs are contiguous or, where the argument is "
    "channels-last, channels-last."
)

_INPUT = "Tensor: of shape (N, C, spatial...)"
_WINDOW = {
    "kernel_size": "sequence of int: the sizes of a window",
    "stride": "sequence of int: the step from one window to the next; none for that of the window",
    "padding": "sequence of int: the padding at both ends, at most half a window",
}
_DILATION = "sequence of int: the step between the elements of a window"
_CEIL = "bool: whether a last window may go over the end"
_OUTPUT_SIZE = "sequence of int: the spatial sizes of the result"
_X = ">>> x = candelabra.tensor([[[1.0, 3.0, 2.0, 5.0]]])\n"
operator(
    "max_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> (Tensor output, Tensor indices)",
    shape="max_pool", tier="fast", tags=HIDDEN,
    batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Compute the maximum of each window, and its index.",
        f"{_X}>>> candelabra.ops.max_pool(x, [2], [2], [0], [1], False).indices\ntensor([[[1, 3]]])",
        input=_INPUT, **_WINDOW, dilation=_DILATION, ceil_mode=_CEIL, returns="(output, indices): indices are int64", out="",
    ),
)  # fmt: skip
# Where no gradient is wanted, nor the positions.
operator(
    "max_pool_values(Tensor self, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) -> Tensor",
    shape="max_pool_values", title="max_pool", tags=HIDDEN | COMPOSITE | NONDIFFERENTIABLE | NO_OUT,
    batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Take the largest element of each window.",
        f"{_X}>>> candelabra.ops.max_pool_values(x, [2], [2], [0], [1], False)\ntensor([[[3., 5.]]])",
        input=_INPUT, **_WINDOW, dilation=_DILATION, ceil_mode=_CEIL, returns="Tensor: of shape (N, C, spatial...)", out="",
    ),
)  # fmt: skip
operator(
    "adaptive_max_pool(Tensor self, int[] output_size) -> (Tensor output, Tensor indices)", shape="adaptive_max_pool", tags=HIDDEN,
    batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Compute the maximum of each of a given number of windows, and its index.",
        f"{_X}>>> candelabra.ops.adaptive_max_pool(x, [2]).output\ntensor([[[3., 5.]]])",
        input=_INPUT, output_size=_OUTPUT_SIZE, returns="(output, indices): indices are int64", out="",
    ),
)  # fmt: skip
# Adds grad into zeros of input_size at indices: the gradient of both maximum poolings.
operator(
    "max_pool_backward(Tensor grad, Tensor indices, int[] input_size) -> Tensor", shape="max_pool_backward", tier="fast", tags=HIDDEN,
    linear=("grad",), batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Compute the gradient of maximum pooling: add gradients at the indices of the maxima.",
        ">>> candelabra.ops.max_pool_backward(candelabra.ones(1, 1, 2), candelabra.tensor([[[1, 3]]]), [1, 1, 4])\n"
        "tensor([[[0., 1., 0., 1.]]])",
        grad="Tensor: the gradient of the result", indices="Tensor: the positions", input_size="sequence of int: the sizes of the input",
        returns="Tensor: of the sizes of the input",
    ),
)  # fmt: skip
_COUNT = {
    "ceil_mode": _CEIL, "count_include_pad": "bool: whether to count the padding",
    "divisor_override": "int or None: the divisor of sums, instead of the count",
}  # fmt: skip
operator(
    "avg_pool(Tensor self, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override)"
    " -> Tensor",
    shape="avg_pool", tier="fast", tags=HIDDEN,
    linear=("self",), batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Average the elements of each window.",
        f"{_X}>>> candelabra.ops.avg_pool(x, [2], [2], [0], False, True, None)\ntensor([[[2.0000, 3.5000]]])",
        input=_INPUT, **_WINDOW, **_COUNT, returns="Tensor: of shape (N, C, spatial...)",
    ),
)  # fmt: skip
operator(
    "avg_pool_backward(Tensor grad, int[] input_size, int[] kernel_size, int[] stride, int[] padding, bool ceil_mode,"
    " bool count_include_pad, int? divisor_override) -> Tensor",
    shape="avg_pool_backward", tier="fast", tags=HIDDEN,
    linear=("grad",), batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Compute the gradient of average pooling.",
        ">>> candelabra.ops.avg_pool_backward(candelabra.ones(1, 1, 2), [1, 1, 4], [2], [2], [0], False, True, None)\n"
        "tensor([[[0.5000, 0.5000, 0.5000, 0.5000]]])",
        grad="Tensor: the gradient of the result", input_size="sequence of int: the sizes of the input", **_WINDOW, **_COUNT,
        returns="Tensor: of the sizes of the input",
    ),
)  # fmt: skip
operator(
    "adaptive_avg_pool(Tensor self, int[] output_size) -> Tensor", shape="adaptive_avg_pool", tier="fast", tags=HIDDEN,
    linear=("self",), batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Average the elements of each of a given number of windows.",
        f"{_X}>>> candelabra.ops.adaptive_avg_pool(x, [2])\ntensor([[[2.0000, 3.5000]]])",
        input=_INPUT, output_size=_OUTPUT_SIZE, returns="Tensor: of shape (N, C, *output_size)",
    ),
)  # fmt: skip
operator(
    "adaptive_avg_pool_backward(Tensor grad, int[] input_size) -> Tensor", shape="adaptive_avg_pool_backward", tier="fast", tags=HIDDEN,
    linear=("grad",), batching="folded",
    sees=_SEES_POOLING,
    doc=document(
        "Compute the gradient of adaptive average pooling.",
        ">>> candelabra.ops.adaptive_avg_pool_backward(candelabra.ones(1, 1, 2), [1, 1, 4])\ntensor([[[0.5000, 0.5000, 0.5000, 0.5000]]])",
        grad="Tensor: the gradient of the result", input_size="sequence of int: the sizes of the input",
        returns="Tensor: of the sizes of the input",
    ),
)  # fmt: skip
