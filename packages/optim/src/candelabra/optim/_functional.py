"""Functional forms of one optimizer step, as in ``torch.optim._functional``.

The functions update `params` and the states in place and keep no state themselves. They do not
support ``differentiable=True`` and scaled gradients. Use the optimizer classes and
`candelabra.amp.GradScaler` for those.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from candelabra import Tensor

from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .asgd import ASGD
from .nadam import NAdam
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .optimizer import Optimizer

    Tensors = list[Tensor]
    Flag = bool | None

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd", "sparse_adam",
]  # fmt: skip


def _step(
    name: str,
    make: Callable[[list[Tensor]], Optimizer],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    steps: Sequence[Tensor],
    states: dict[str, Sequence[Tensor]],
    unsupported: dict[str, Any],
) -> None:
    """Build an optimizer, load the given states, take one step, and write the states back."""
    for option, value in unsupported.items():
        if value:
            raise NotImplementedError(
                f"{name}(): {option} is not supported by the function; the classes of candelabra.optim "
                "and candelabra.amp.GradScaler are there for that"
            )
    for what, given in {"grads": grads, **({"state_steps": steps} if steps else {}), **states}.items():
        if len(given) != len(params):
            raise RuntimeError(
                f"{name}(): expected {what} to have one entry a parameter, {len(params)} of them, but got {len(given)}"
            )
    if not params:
        return
    # Detached aliases share the memory of the parameters and are leaves with their own `.grad`.
    stand_ins = [parameter.detach() for parameter in params]
    optimizer = make(stand_ins)
    for place, stand_in in enumerate(stand_ins):
        stand_in.grad = grads[place].detach()
        state: dict[str, Any] = {kept: _number_or_tensor(given[place], kept) for kept, given in states.items()}
        if steps:
            state["step"] = int(steps[place].item() if isinstance(steps[place], Tensor) else steps[place])
        optimizer.state[stand_in] = state
    optimizer.step()
    for place, stand_in in enumerate(stand_ins):
        state = optimizer.state[stand_in]
        for kept, given in states.items():
            if isinstance(state[kept], Tensor):
                if state[kept] is not given[place]:
                    given[place].copy_(state[kept])
            else:
                given[place].fill_(state[kept])
        if steps:
            steps[place].fill_(state["step"])


#: States that PyTorch stores as tensors and the classes here store as Python numbers.
_NUMBERS = frozenset({"mu_product", "eta", "mu"})


def _number_or_tensor(value: Tensor, name: str) -> Any:
    return value.item() if name in _NUMBERS and isinstance(value, Tensor) else value


def adadelta(
    params: Tensors, grads: Tensors, square_avgs: Tensors, acc_deltas: Tensors, state_steps: Tensors, capturable: bool = False,
    foreach: Flag = None, differentiable: bool = False, has_complex: bool = False, *, lr: float, rho: float, eps: float,
    weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """Take one step of `Adadelta`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim import _functional
    >>> p, zeros, step = candelabra.ones(1), candelabra.zeros(2, 1), candelabra.tensor(0.0)
    >>> options = {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0, "maximize": False}
    >>> _functional.adadelta([p], [candelabra.ones(1)], [zeros[0]], [zeros[1]], [step], **options)
    >>> step
    tensor(1.)
    """
    options: dict[str, Any] = {
        "lr": lr,
        "rho": rho,
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "foreach": foreach,
    }
    _step(
        "adadelta", lambda own: Adadelta(own, **options), params, grads, state_steps,
        {"square_avg": square_avgs, "acc_delta": acc_deltas}, {"capturable": capturable, "differentiable": differentiable},
    )  # fmt: skip


def adagrad(
    params: Tensors, grads: Tensors, state_sums: Tensors, state_steps: Tensors, fused: Flag = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_sparse_grad: bool = False, foreach: Flag = None, differentiable: bool = False,
    has_complex: bool = False, *, lr: float, weight_decay: float, lr_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """Take one step of `Adagrad`."""
    options: dict[str, Any] = {
        "lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, "maximize": maximize, "foreach": foreach, "fused": fused,
    }  # fmt: skip
    _step(
        "adagrad", lambda own: Adagrad(own, **options), params, grads, state_steps, {"sum": state_sums},
        {
            "grad_scale": grad_scale is not None, "found_inf": found_inf is not None, "has_sparse_grad": has_sparse_grad,
            "differentiable": differentiable,
        },
    )  # fmt: skip


def adam(
    params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, max_exp_avg_sqs: Tensors, state_steps: Tensors,
    foreach: Flag = None, capturable: bool = False, differentiable: bool = False, fused: Flag = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, decoupled_weight_decay: bool = False, *, amsgrad: bool,
    beta1: float | Tensor, beta2: float | Tensor, lr: float | Tensor, weight_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """Take one step of `Adam`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim import _functional
    >>> p, zeros, step = candelabra.ones(1), candelabra.zeros(2, 1), candelabra.tensor(0.0)
    >>> options = {"amsgrad": False, "beta1": 0.9, "beta2": 0.999, "lr": 0.1, "weight_decay": 0, "eps": 1e-8, "maximize": False}
    >>> _functional.adam([p], [candelabra.ones(1)], [zeros[0]], [zeros[1]], [], [step], **options)
    >>> p
    tensor([0.9000])
    """
    options: dict[str, Any] = {
        "lr": lr, "betas": (float(beta1), float(beta2)), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
        "maximize": maximize, "foreach": foreach, "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
    }  # fmt: skip
    states: dict[str, Sequence[Tensor]] = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs}
    if amsgrad:
        states["max_exp_avg_sq"] = max_exp_avg_sqs
    refused = {
        "capturable": capturable, "differentiable": differentiable, "grad_scale": grad_scale is not None,
        "found_inf": found_inf is not None,
    }  # fmt: skip
    _step("adam", lambda own: Adam(own, **options), params, grads, state_steps, states, refused)


def adamw(
    params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, max_exp_avg_sqs: Tensors, state_steps: Tensors,
    foreach: Flag = None, capturable: bool = False, differentiable: bool = False, fused: Flag = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, *, amsgrad: bool, beta1: float | Tensor, beta2: float | Tensor,
    lr: float | Tensor, weight_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """Take one step of `AdamW`."""
    adam(
        params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable, fused, grad_scale,
        found_inf, has_complex, True, amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps,
        maximize=maximize,
    )  # fmt: skip


def adamax(
    params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_infs: Tensors, state_steps: Tensors, foreach: Flag = None,
    maximize: bool = False, differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *, eps: float,
    beta1: float, beta2: float, lr: float, weight_decay: float,
) -> None:  # fmt: skip
    """Take one step of `Adamax`."""
    options: dict[str, Any] = {
        "lr": lr,
        "betas": (beta1, beta2),
        "eps": eps,
        "weight_decay": weight_decay,
        "maximize": maximize,
        "foreach": foreach,
    }
    _step(
        "adamax", lambda own: Adamax(own, **options), params, grads, state_steps, {"exp_avg": exp_avgs, "exp_inf": exp_infs},
        {"capturable": capturable, "differentiable": differentiable},
    )  # fmt: skip


def asgd(
    params: Tensors, grads: Tensors, axs: Tensors, mus: Tensors, etas: Tensors, state_steps: Tensors, foreach: Flag = None,
    maximize: bool = False, differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *, lambd: float,
    lr: float, t0: float, alpha: float, weight_decay: float,
) -> None:  # fmt: skip
    """Take one step of `ASGD`."""
    options: dict[str, Any] = {
        "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
    }  # fmt: skip
    _step(
        "asgd", lambda own: ASGD(own, **options), params, grads, state_steps, {"ax": axs, "mu": mus, "eta": etas},
        {"capturable": capturable, "differentiable": differentiable},
    )  # fmt: skip


def nadam(
    params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, mu_products: Tensors, state_steps: Tensors,
    decoupled_weight_decay: bool = False, foreach: Flag = None, capturable: bool = False, differentiable: bool = False,
    has_complex: bool = False, maximize: bool = False, *, beta1: float, beta2: float, lr: float, weight_decay: float,
    momentum_decay: float, eps: float,
) -> None:  # fmt: skip
    """Take one step of `NAdam`."""
    options: dict[str, Any] = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
        "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
    }  # fmt: skip
    states: dict[str, Sequence[Tensor]] = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "mu_product": mu_products}
    refused = {"capturable": capturable, "differentiable": differentiable}
    _step("nadam", lambda own: NAdam(own, **options), params, grads, state_steps, states, refused)


def radam(
    params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, state_steps: Tensors, decoupled_weight_decay: bool = False,
    foreach: Flag = None, differentiable: bool = False, capturable: bool = False, has_complex: bool = False, maximize: bool = False, *,
    beta1: float, beta2: float, lr: float, weight_decay: float, eps: float,
) -> None:  # fmt: skip
    """Take one step of `RAdam`."""
    options: dict[str, Any] = {
        "lr": lr, "betas": (beta1, beta2), "eps": eps, "weight_decay": weight_decay, "decoupled_weight_decay": decoupled_weight_decay,
        "maximize": maximize, "foreach": foreach,
    }  # fmt: skip
    _step(
        "radam", lambda own: RAdam(own, **options), params, grads, state_steps, {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs},
        {"capturable": capturable, "differentiable": differentiable},
    )  # fmt: skip


def rmsprop(
    params: Tensors, grads: Tensors, square_avgs: Tensors, grad_avgs: Tensors, momentum_buffer_list: Tensors, state_steps: Tensors,
    foreach: Flag = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool,
) -> None:  # fmt: skip
    """Take one step of `RMSprop`."""
    options: dict[str, Any] = {
        "lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered,
        "maximize": maximize, "foreach": foreach,
    }  # fmt: skip
    states: dict[str, Sequence[Tensor]] = {"square_avg": square_avgs}
    if centered:
        states["grad_avg"] = grad_avgs
    if momentum > 0:
        states["momentum_buffer"] = momentum_buffer_list
    refused = {"capturable": capturable, "differentiable": differentiable}
    _step("rmsprop", lambda own: RMSprop(own, **options), params, grads, state_steps, states, refused)


def rprop(
    params: Tensors, grads: Tensors, prevs: Tensors, step_sizes: Tensors, state_steps: Tensors, foreach: Flag = None,
    capturable: bool = False, maximize: bool = False, differentiable: bool = False, has_complex: bool = False, *, step_size_min: float,
    step_size_max: float, etaminus: float, etaplus: float,
) -> None:  # fmt: skip
    """Take one step of `Rprop`."""
    options: dict[str, Any] = {
        "etas": (etaminus, etaplus),
        "step_sizes": (step_size_min, step_size_max),
        "maximize": maximize,
        "foreach": foreach,
    }
    _step(
        "rprop", lambda own: Rprop(own, **options), params, grads, state_steps, {"prev": prevs, "step_size": step_sizes},
        {"capturable": capturable, "differentiable": differentiable},
    )  # fmt: skip


def sgd(
    params: Tensors, d_p_list: Tensors, momentum_buffer_list: list[Tensor | None], has_sparse_grad: bool = False, foreach: Flag = None,
    fused: Flag = None, grad_scale: Tensor | None = None, found_inf: Tensor | None = None, *, weight_decay: float, momentum: float,
    lr: float, dampening: float, nesterov: bool, maximize: bool,
) -> None:  # fmt: skip
    """Take one step of `SGD`, and create momentum buffers for entries that are None.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.optim import _functional
    >>> p, buffers = candelabra.ones(1), [None]
    >>> options = {"weight_decay": 0, "momentum": 0.9, "lr": 0.1, "dampening": 0, "nesterov": False, "maximize": False}
    >>> _functional.sgd([p], [candelabra.ones(1)], buffers, **options)
    >>> p, buffers
    (tensor([0.9000]), [tensor([1.])])
    """
    for option, given in (
        ("grad_scale", grad_scale),
        ("found_inf", found_inf),
        ("has_sparse_grad", has_sparse_grad or None),
    ):
        if given is not None:
            raise NotImplementedError(
                f"sgd(): {option} is not supported by the function; candelabra.amp.GradScaler is there for that"
            )
    if len(d_p_list) != len(params) or len(momentum_buffer_list) != len(params):
        raise RuntimeError(
            f"sgd(): expected d_p_list and momentum_buffer_list to have one entry a parameter, {len(params)} of them, but got "
            f"{len(d_p_list)} and {len(momentum_buffer_list)}"
        )
    if not params:
        return
    stand_ins = [parameter.detach() for parameter in params]
    optimizer = SGD(
        stand_ins, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov, maximize=maximize,
        foreach=foreach, fused=fused,
    )  # fmt: skip
    for stand_in, grad, buffer in zip(stand_ins, d_p_list, momentum_buffer_list, strict=True):
        stand_in.grad = grad.detach()
        if buffer is not None:
            optimizer.state[stand_in]["momentum_buffer"] = buffer
    optimizer.step()
    if momentum != 0:
        momentum_buffer_list[:] = [optimizer.state[stand_in]["momentum_buffer"] for stand_in in stand_ins]


def sparse_adam(
    params: Tensors, grads: Tensors, exp_avgs: Tensors, exp_avg_sqs: Tensors, state_steps: list[int], *, eps: float, beta1: float,
    beta2: float, lr: float, maximize: bool,
) -> None:  # fmt: skip
    """Raise NotImplementedError, because Candelabra has no sparse gradients.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError("sparse_adam(): there are no sparse tensors; adam() takes gradients that are strided")


# PyTorch also exposes each function in the module of its class: ``from torch.optim.adam import
# adam``.
for _name in __all__:
    setattr(import_module(f".{_name}", __package__), _name, globals()[_name])
