"""Normalization. Statistics are kept in float32 for half-precision input. The `*_backward`
operators return gradients of input, weight and bias; the last two are empty (size 0) when there is
no weight.
"""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_NORM = (
    "input and grad have one floating-point dtype and are contiguous. weight and bias are contiguous and of that "
    "dtype; mean and rstd are contiguous, float32 for half precisions. "
)
_SEES_GRADIENTS = "The gradients of weight and bias have size 0 if there is no weight."

_AFFINE = {
    "weight": "Tensor or None: multiplies the normalized values",
    "bias": "Tensor or None: is added to them",
}
_EPS = "float: added to the variance"
_RETURNS = "(output, mean, rstd): the normalized values, the means, and one over the standard deviations"
_GRADIENTS = "(grad_input, grad_weight, grad_bias): the last two of size 0 if there is no weight"
_SAVED = {
    "grad": "Tensor: the gradient of the output", "input": "Tensor: the input",
}  # fmt: skip
_STATISTICS = {"mean": "Tensor: the second result", "rstd": "Tensor: the third result"}
# (N, C, ...). In training the statistics of the batch are used and the running ones, where given,
# are moved towards them: running = (1 - momentum) * running + momentum * batch (the variance with
# Bessel's correction). mean and rstd are of size C.
operator(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training,"
    " float momentum, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
    shape="native_batch_norm", title="batch_norm", tier="fast", jvp="composite", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        f"{_SEES_NORM}A channels-last input is seen as it is, and the output is channels-last then. running_mean and"
        " running_var have the dtype of input or float32, and any strides; they are changed in training, and given "
        "otherwise. They, mean and rstd have size C."
    ),
    doc=document(
        "Normalize each channel over the batch and the spatial dimensions (Ioffe and Szegedy 2015).",
        ">>> x = candelabra.tensor([[1.0], [3.0]])\n"
        ">>> candelabra.ops.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0).output\ntensor([[-1.],\n        [ 1.]])",
        input="Tensor: of shape (N, C, ...)", **_AFFINE,
        running_mean="Tensor or None: of shape (C,); updated towards the mean in training, used instead of it otherwise",
        running_var="Tensor or None: of shape (C,); the same for the variance, with Bessel's correction",
        training="bool: whether the statistics are those of the batch", momentum="float: how far the running statistics are moved",
        eps=_EPS, returns=_RETURNS, out="",
    ),
)  # fmt: skip
operator(
    "native_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool training)"
    " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    shape="native_batch_norm_backward", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_NORM}Where input is channels-last, so are grad and the output. {_SEES_GRADIENTS}",
    doc=document(
        "Compute the gradients of batch normalization. In training, mean and rstd are taken to depend on the input.",
        ">>> x, one = candelabra.tensor([[1.0], [3.0]]), candelabra.ones(1)\n"
        ">>> candelabra.ops.native_batch_norm_backward(candelabra.ones(2, 1), x, one, one * 2, one, True).grad_bias\ntensor([2.])",
        **_SAVED, weight="Tensor or None: that of the forward call", **_STATISTICS, training="bool: that of the forward call",
        returns=_GRADIENTS, out="",
    ),
)  # fmt: skip
# mean and rstd keep the leading dimensions of input; the normalized ones have size 1.
operator(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5)"
    " -> (Tensor output, Tensor mean, Tensor rstd)",
    shape="native_layer_norm", title="layer_norm", tier="fast", jvp="composite", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="float32 on accelerators", batching="layer_norm",
    sees=(
        f"{_SEES_NORM}weight and bias have the sizes normalized_shape; mean and rstd have those of input, with 1 for"
        " the normalized ones."
    ),
    doc=document(
        "Normalize over the last dimensions (Ba, Kiros and Hinton 2016).",
        ">>> candelabra.ops.native_layer_norm(candelabra.tensor([[1.0, 3.0]]), [2], None, None, 0.0).output\ntensor([[-1.,  1.]])",
        input="Tensor: of shape (..., *normalized_shape)", normalized_shape="sequence of int: the sizes of the last dimensions",
        **_AFFINE, eps=_EPS, returns=_RETURNS, out="",
    ),
)  # fmt: skip
operator(
    "native_layer_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight)"
    " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    shape="native_layer_norm_backward", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_NORM}{_SEES_GRADIENTS}",
    doc=document(
        "Compute the gradients of layer normalization. mean and rstd are taken to depend on the input.",
        ">>> x, one = candelabra.tensor([[1.0, 3.0]]), candelabra.ones(1, 1)\n"
        ">>> grads = candelabra.ops.native_layer_norm_backward(candelabra.ones(1, 2), x, [2], one * 2, one, candelabra.ones(2))\n"
        ">>> grads.grad_weight\ntensor([-1.,  1.])",
        **_SAVED, normalized_shape="sequence of int: that of the forward call", **_STATISTICS,
        weight="Tensor or None: that of the forward call", returns=_GRADIENTS, out="",
    ),
)  # fmt: skip
# mean and rstd are of size (N, num_groups).
operator(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int num_groups, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
    shape="native_group_norm", title="group_norm", tier="fast", jvp="composite", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="float32 on accelerators",
    sees=(
        f"{_SEES_NORM}mean and rstd are (N, num_groups). A kernel that its backend lists as taking channels-last "
        "tensors sees a channels-last input as it is."
    ),
    doc=document(
        "Normalize groups of channels of each sample (Wu and He 2018).",
        ">>> candelabra.ops.native_group_norm(candelabra.tensor([[1.0, 3.0]]), None, None, 1, 0.0).output\ntensor([[-1.,  1.]])",
        input="Tensor: of shape (N, C, ...)", **_AFFINE, num_groups="int: the number of groups; a divisor of C", eps=_EPS,
        returns=_RETURNS, out="",
    ),
)  # fmt: skip
operator(
    "native_group_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int num_groups)"
    " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    shape="native_group_norm_backward", tier="fast", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=(
        f"{_SEES_NORM}A kernel that its backend lists as taking channels-last tensors sees channels-last ones as "
        f"they are. {_SEES_GRADIENTS}"
    ),
    doc=document(
        "Compute the gradients of group normalization. mean and rstd are taken to depend on the input.",
        ">>> x, one = candelabra.tensor([[1.0, 3.0]]), candelabra.ones(1, 1)\n"
        ">>> grads = candelabra.ops.native_group_norm_backward(candelabra.ones(1, 2), x, one * 2, one, candelabra.ones(2), 1)\n"
        ">>> grads.grad_weight\ntensor([-1.,  1.])",
        **_SAVED, **_STATISTICS, weight="Tensor or None: that of the forward call", num_groups="int: that of the forward call",
        returns=_GRADIENTS, out="",
    ),
)  # fmt: skip
# rstd keeps the leading dimensions of input; the normalized ones have size 1.
operator(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float eps) -> (Tensor output, Tensor rstd)",
    shape="_fused_rms_norm", title="rms_norm", tags=HIDDEN | COMPOSITE | NO_OUT,
    autocast="float32 on accelerators",
    sees=f"{_SEES_NORM}rstd has the sizes of input, with 1 for the normalized ones.",
    doc=document(
        "Divide by the root of the mean of squares over the last dimensions (Zhang and Sennrich 2019).",
        ">>> candelabra.ops._fused_rms_norm(candelabra.tensor([[2.0, -2.0]]), [2], None, 0.0).output\ntensor([[ 1., -1.]])",
        input="Tensor: of shape (..., *normalized_shape)", normalized_shape="sequence of int: the sizes of the last dimensions",
        weight=_AFFINE["weight"], eps="float: added to the mean of squares",
        returns="(output, rstd): the normalized values, and one over the roots", out="",
    ),
)  # fmt: skip
operator(
    "_fused_rms_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight)"
    " -> (Tensor grad_input, Tensor grad_weight)",
    shape="_fused_rms_norm_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
    sees=f"{_SEES_NORM}The gradient of weight has size 0 if there is no weight.",
    doc=document(
        "Compute the gradients of the division by the root of the mean of squares. rstd is taken to depend on the input.",
        ">>> x, one = candelabra.tensor([[1.0, 1.0]]), candelabra.ones(1, 1)\n"
        ">>> candelabra.ops._fused_rms_norm_backward(candelabra.ones(1, 2), x, [2], one, candelabra.ones(2)).grad_weight\n"
        "tensor([1., 1.])",
        **_SAVED, normalized_shape="sequence of int: that of the forward call", rstd="Tensor: the second result",
        weight="Tensor or None: that of the forward call",
        returns="(grad_input, grad_weight): the last of size 0 if there is no weight", out="",
    ),
)  # fmt: skip
