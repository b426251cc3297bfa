"""One optimizer step over many parameters in one call. Without a kernel, candelabra.optim takes its plain path.

The lists have one entry a parameter, or none at all where the option is off. `step` counts from 1 and is the step being taken.
"""

from .declaration import HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

_TAGS = HIDDEN | NO_OUT | NONDIFFERENTIABLE
_LISTS = {
    "params": "list of Tensor: the parameters, changed in place",
    "grads": "list of Tensor: their gradients",
}
_STATE = "list of Tensor: changed in place; empty where the option is off"
_LR = "float: the learning rate"
_DECAY = "float: times the parameter, is added to the gradient"
_MAXIMIZE = "bool: whether to go up the gradient"
_P = ">>> p, g = candelabra.ones(1), candelabra.ones(1)\n"


def _step(sentence: str, call: str, shown: str, **parameters: str) -> str:
    return document(sentence, f"{_P}>>> candelabra.ops.{call}\n>>> p\n{shown}", **_LISTS, **parameters, out="")


# first: momentum_buffers hold nothing yet and are set to the gradients
operator(
    "fused_sgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, float lr, float weight_decay, float momentum,"
    " float dampening, bool nesterov, bool maximize, bool first) -> ()",
    shape="optimizer", tags=_TAGS,
    doc=_step(
        "Take one step of stochastic gradient descent with momentum (Sutskever et al. 2013).",
        "fused_sgd_([p], [g], [], 0.1, 0.0, 0.0, 0.0, False, False, True)", "tensor([0.9000])",
        momentum_buffers=_STATE, lr=_LR, weight_decay=_DECAY, momentum="float: how much of the last step is kept",
        dampening="float: how much of the gradient is left out of the momentum", nesterov="bool: whether to look one step ahead",
        maximize=_MAXIMIZE, first="bool: whether the buffers hold nothing yet",
    ),
)  # fmt: skip
operator(
    "fused_adam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs,"
    " float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool amsgrad, bool maximize, int step) -> ()",
    shape="optimizer", tags=_TAGS,
    doc=_step(
        "Take one step of Adam (Kingma and Ba 2014) or AdamW (Loshchilov and Hutter 2017).",
        "fused_adam_([p], [g], [g * 0], [g * 0], [], 0.1, 0.9, 0.999, 1e-8, 0.0, False, False, False, 1)", "tensor([0.9000])",
        exp_avgs=_STATE, exp_avg_sqs=_STATE, max_exp_avg_sqs=_STATE, lr=_LR, beta1="float: how much of the mean of gradients is kept",
        beta2="float: how much of the mean of squares is kept", eps="float: added to the denominator", weight_decay=_DECAY,
        decoupled="bool: whether weight decay acts on the parameter itself, as in AdamW",
        amsgrad="bool: whether the largest mean of squares so far is used", maximize=_MAXIMIZE, step="int: the step being taken, from 1",
    ),
)  # fmt: skip
operator(
    "fused_rmsprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] grad_avgs, Tensor(d!)[] momentum_buffers,"
    " float lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize) -> ()",
    shape="optimizer", tags=_TAGS,
    doc=_step(
        "Take one step of RMSprop (Hinton 2012).",
        "fused_rmsprop_([p], [g], [g * 0], [], [], 0.1, 0.75, 0.0, 0.0, 0.0, False, False)", "tensor([0.8000])",
        square_avgs=_STATE, grad_avgs=_STATE, momentum_buffers=_STATE, lr=_LR, alpha="float: how much of the mean of squares is kept",
        eps="float: added to the denominator", weight_decay=_DECAY, momentum="float: how much of the last step is kept",
        centered="bool: whether the squared mean is taken off the mean of squares", maximize=_MAXIMIZE,
    ),
)  # fmt: skip
operator(
    "fused_adagrad_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, float lr, float lr_decay, float weight_decay, float eps,"
    " bool maximize, int step) -> ()",
    shape="optimizer", tags=_TAGS,
    doc=_step(
        "Take one step of Adagrad (Duchi, Hazan and Singer 2011).",
        "fused_adagrad_([p], [g], [g * 0], 0.1, 0.0, 0.0, 0.0, False, 1)", "tensor([0.9000])",
        state_sums=_STATE, lr=_LR, lr_decay="float: makes the rate ``lr / (1 + (step - 1) * lr_decay)``", weight_decay=_DECAY,
        eps="float: added to the denominator", maximize=_MAXIMIZE, step="int: the step being taken, from 1",
    ),
)  # fmt: skip
