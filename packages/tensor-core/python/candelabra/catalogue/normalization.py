"""Normalization. Statistics are kept in float32 for half-precision input. The `*_backward` operators return gradients of input,
weight and bias; the last two are empty (size 0) when there is no weight."""

from .declaration import COMPOSITE, HIDDEN, NO_OUT, operator

# (N, C, ...). In training the statistics of the batch are used and the running ones, where given, are moved towards them:
# running = (1 - momentum) * running + momentum * batch (the variance with Bessel's correction). mean and rstd are of size C.
operator(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training,"
    " float momentum, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
    shape="native_batch_norm", tags=HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
operator(
    "native_batch_norm_backward(Tensor grad, Tensor input, Tensor? weight, Tensor mean, Tensor rstd, bool training)"
    " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    shape="native_batch_norm_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
# mean and rstd keep the leading dimensions of input; the normalized ones have size 1.
operator(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps)"
    " -> (Tensor output, Tensor mean, Tensor rstd)",
    shape="native_layer_norm", tags=HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
operator(
    "native_layer_norm_backward(Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight)"
    " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    shape="native_layer_norm_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
# mean and rstd are of size (N, num_groups).
operator(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int num_groups, float eps) -> (Tensor output, Tensor mean, Tensor rstd)",
    shape="native_group_norm", tags=HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
operator(
    "native_group_norm_backward(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int num_groups)"
    " -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias)",
    shape="native_group_norm_backward", tags=HIDDEN | COMPOSITE | NO_OUT,
)  # fmt: skip
