"""One optimizer step over many parameters in one call. Without a kernel, candelabra.optim takes its plain path.

The lists have one entry a parameter, or none at all where the option is off. `step` counts from 1 and is the step being taken.
"""

from .declaration import HIDDEN, NO_OUT, NONDIFFERENTIABLE, operator

_TAGS = HIDDEN | NO_OUT | NONDIFFERENTIABLE
# first: momentum_buffers hold nothing yet and are set to the gradients
operator(
    "fused_sgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, float lr, float weight_decay, float momentum,"
    " float dampening, bool nesterov, bool maximize, bool first) -> ()",
    shape="optimizer", tags=_TAGS,
)  # fmt: skip
operator(
    "fused_adam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs,"
    " float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool amsgrad, bool maximize, int step) -> ()",
    shape="optimizer", tags=_TAGS,
)  # fmt: skip
operator(
    "fused_rmsprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] grad_avgs, Tensor(d!)[] momentum_buffers,"
    " float lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize) -> ()",
    shape="optimizer", tags=_TAGS,
)  # fmt: skip
operator(
    "fused_adagrad_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, float lr, float lr_decay, float weight_decay, float eps,"
    " bool maximize, int step) -> ()",
    shape="optimizer", tags=_TAGS,
)  # fmt: skip
