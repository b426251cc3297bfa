"""One optimizer step over many parameters in one call. Without a kernel, candelabra.optim uses
single operators.

The lists have one entry per parameter, or are empty if the option is off. `step` counts from 1
and is the step being taken.
"""

from .declaration import HIDDEN, NO_OUT, NONDIFFERENTIABLE, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_OPTIMIZER = (
    "Parameters are floating point and do not overlap themselves. The other lists have one entry for each parameter, "
    "of its sizes, dtype and device; only a list of an option that is off may be empty. A gradient has the strides of "
    "its parameter where those are dense; state has any strides. step, where there is one, is at least 1."
)

_TAGS = HIDDEN | NO_OUT | NONDIFFERENTIABLE
_LISTS = {
    "params": "list of Tensor: the parameters, changed in place",
    "grads": "list of Tensor: their gradients",
}
_STATE = "list of Tensor: changed in place; empty if the option is off"
_LR = "float: the learning rate"
_DECAY = "float: times the parameter, is added to the gradient"
_BETA1 = "float: how much of the mean of gradients is kept"
_BETA2 = "float: how much of the mean of squares is kept"
_EPS = "float: added to the denominator"
_DECOUPLED = "bool: whether weight decay acts on the parameter itself, as in AdamW"
_STEP = "int: the step being taken, from 1"
_MAXIMIZE = "bool: whether to go up the gradient"
_P = ">>> p, g = candelabra.ones(1), candelabra.ones(1)\n"


def _step(sentence: str, call: str, shown: str, **parameters: str) -> str:
    return document(sentence, f"{_P}>>> candelabra.ops.{call}\n>>> p\n{shown}", **_LISTS, **parameters, out="")


# first: momentum_buffers hold nothing yet and are set to the gradients
operator(
    "_fused_sgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, float lr, float weight_decay, float momentum,"
    " float dampening, bool nesterov, bool maximize, bool first) -> ()",
    shape="fused_sgd", tier="fast", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of stochastic gradient descent with momentum (Sutskever et al. 2013).",
        "_fused_sgd_([p], [g], [], 0.1, 0.0, 0.0, 0.0, False, False, True)", "tensor([0.9000])",
        momentum_buffers=_STATE, lr=_LR, weight_decay=_DECAY, momentum="float: how much of the last step is kept",
        dampening="float: how much of the gradient is left out of the momentum", nesterov="bool: whether to look one step ahead",
        maximize=_MAXIMIZE, first="bool: whether the buffers are uninitialized",
    ),
)  # fmt: skip
operator(
    "_fused_adam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs,"
    " float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool amsgrad, bool maximize, int step) -> ()",
    shape="fused_adam", tier="fast", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of Adam (Kingma and Ba 2014) or AdamW (Loshchilov and Hutter 2017).",
        "_fused_adam_([p], [g], [g * 0], [g * 0], [], 0.1, 0.9, 0.999, 1e-8, 0.0, False, False, False, 1)", "tensor([0.9000])",
        exp_avgs=_STATE, exp_avg_sqs=_STATE, max_exp_avg_sqs=_STATE, lr=_LR, beta1=_BETA1, beta2=_BETA2, eps=_EPS, weight_decay=_DECAY,
        decoupled=_DECOUPLED, amsgrad="bool: whether the largest mean of squares so far is used", maximize=_MAXIMIZE, step=_STEP,
    ),
)  # fmt: skip
operator(
    "_fused_rmsprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] grad_avgs, Tensor(d!)[] momentum_buffers,"
    " float lr, float alpha, float eps, float weight_decay, float momentum, bool centered, bool maximize) -> ()",
    shape="fused_rmsprop", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of RMSprop (Hinton 2012).",
        "_fused_rmsprop_([p], [g], [g * 0], [], [], 0.1, 0.75, 0.0, 0.0, 0.0, False, False)", "tensor([0.8000])",
        square_avgs=_STATE, grad_avgs=_STATE, momentum_buffers=_STATE, lr=_LR, alpha="float: how much of the mean of squares is kept",
        eps=_EPS, weight_decay=_DECAY, momentum="float: how much of the last step is kept",
        centered="bool: whether the squared mean is taken off the mean of squares", maximize=_MAXIMIZE,
    ),
)  # fmt: skip
operator(
    "_fused_adagrad_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, float lr, float lr_decay, float weight_decay, float eps,"
    " bool maximize, int step) -> ()",
    shape="optimizer_with_step", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of Adagrad (Duchi, Hazan and Singer 2011).",
        "_fused_adagrad_([p], [g], [g * 0], 0.1, 0.0, 0.0, 0.0, False, 1)", "tensor([0.9000])",
        state_sums=_STATE, lr=_LR, lr_decay="float: the decay of the rate, ``lr / (1 + (step - 1) * lr_decay)``", weight_decay=_DECAY,
        eps=_EPS, maximize=_MAXIMIZE, step=_STEP,
    ),
)  # fmt: skip
operator(
    "_fused_adamax_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_infs, float lr, float beta1, float beta2,"
    " float eps, float weight_decay, bool maximize, int step) -> ()",
    shape="optimizer_with_step", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of Adamax (Kingma and Ba 2014, section 7.1).",
        "_fused_adamax_([p], [g], [g * 0], [g * 0], 0.1, 0.9, 0.999, 1e-8, 0.0, False, 1)", "tensor([0.9000])",
        exp_avgs=_STATE, exp_infs=_STATE, lr=_LR, beta1=_BETA1, beta2="float: how much of the largest gradient is kept",
        eps="float: added to the size of the gradient", weight_decay=_DECAY, maximize=_MAXIMIZE, step=_STEP,
    ),
)  # fmt: skip
operator(
    "_fused_nadam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, float lr, float beta1, float beta2,"
    " float eps, float weight_decay, float momentum, float next_momentum, float mu_product, bool decoupled, bool maximize, int step) -> ()",
    shape="optimizer_with_step", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of NAdam (Dozat 2016).",
        "_fused_nadam_([p], [g], [g * 0], [g * 0], 0.1, 0.9, 0.999, 1e-8, 0.0, 0.5, 0.6, 0.5, False, False, 1)", "tensor([0.8914])",
        exp_avgs=_STATE, exp_avg_sqs=_STATE, lr=_LR, beta1=_BETA1, beta2=_BETA2, eps=_EPS, weight_decay=_DECAY,
        momentum="float: that of this step", next_momentum="float: that of the next step",
        mu_product="float: the product of the momenta of all steps, this one among them", decoupled=_DECOUPLED, maximize=_MAXIMIZE,
        step=_STEP,
    ),
)  # fmt: skip
operator(
    "_fused_radam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, float lr, float beta1, float beta2,"
    " float eps, float weight_decay, bool decoupled, bool maximize, int step) -> ()",
    shape="optimizer_with_step", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of RAdam (Liu et al. 2019).",
        "_fused_radam_([p], [g], [g * 0], [g * 0], 0.1, 0.9, 0.999, 1e-8, 0.0, False, False, 1)", "tensor([0.9000])",
        exp_avgs=_STATE, exp_avg_sqs=_STATE, lr=_LR, beta1=_BETA1, beta2=_BETA2, eps=_EPS, weight_decay=_DECAY, decoupled=_DECOUPLED,
        maximize=_MAXIMIZE, step=_STEP,
    ),
)  # fmt: skip
operator(
    "_fused_adadelta_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] acc_deltas, float lr, float rho, float eps,"
    " float weight_decay, bool maximize) -> ()",
    shape="optimizer", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of Adadelta (Zeiler 2012).",
        "_fused_adadelta_([p], [g], [g * 0], [g * 0], 1.0, 0.9, 0.1, 0.0, False)", "tensor([0.2929])",
        square_avgs=_STATE, acc_deltas=_STATE, lr=_LR, rho="float: how much of the means of squares is kept",
        eps="float: added to both means of squares", weight_decay=_DECAY, maximize=_MAXIMIZE,
    ),
)  # fmt: skip
operator(
    "_fused_rprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] prevs, Tensor(c!)[] step_sizes, float eta_minus, float eta_plus,"
    " float step_size_min, float step_size_max, bool maximize) -> ()",
    shape="optimizer", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of Rprop (Riedmiller and Braun 1993).",
        "_fused_rprop_([p], [g], [g * 0], [g * 0.1], 0.5, 1.2, 1e-6, 50.0, False)", "tensor([0.9000])",
        prevs=_STATE, step_sizes=_STATE, eta_minus="float: the factor of step sizes whose gradient has changed its sign",
        eta_plus="float: the factor of step sizes whose gradient has kept its sign", step_size_min="float: the smallest size",
        step_size_max="float: the largest size", maximize=_MAXIMIZE,
    ),
)  # fmt: skip
operator(
    "_fused_asgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] axs, float lambd, float eta, float mu, float weight_decay,"
    " bool maximize) -> ()",
    shape="optimizer", tags=_TAGS,
    sees=_SEES_OPTIMIZER,
    doc=_step(
        "Take one step of averaged stochastic gradient descent (Polyak and Juditsky 1992).",
        "_fused_asgd_([p], [g], [g * 0], 0.0, 0.1, 1.0, 0.0, False)", "tensor([0.9000])",
        axs=_STATE, lambd="float: times `eta`, is how much of the parameter decays", eta="float: the learning rate of this step",
        mu="float: the weight of the parameter in the average", weight_decay=_DECAY, maximize=_MAXIMIZE,
    ),
)  # fmt: skip
