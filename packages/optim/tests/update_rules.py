"""Update rules of the optimizers, one parameter at a time, from the formulas in their
documentation.
"""

import numpy as np


def sgd(p, grads, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, maximize=False):
    p, buffer = p.copy(), None
    for grad in grads:
        if grad is None:
            continue
        g = (-grad if maximize else grad) + weight_decay * p
        if momentum:
            buffer = g if buffer is None else momentum * buffer + (1 - dampening) * g
            g = g + momentum * buffer if nesterov else buffer
        p = p - lr * g
    return p


def adam(
    p,
    grads,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    amsgrad=False,
    maximize=False,
    decoupled_weight_decay=False,
):
    p = p.copy()
    m, v, largest, t = 0, 0, 0, 0
    for grad in grads:
        if grad is None:
            continue
        t += 1
        g = -grad if maximize else grad
        if decoupled_weight_decay:
            p = p * (1 - lr * weight_decay)
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        largest = np.maximum(largest, v)
        used = largest if amsgrad else v
        p = p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(used / (1 - betas[1] ** t)) + eps)
    return p


def adamw(p, grads, weight_decay=1e-2, **options):
    return adam(p, grads, weight_decay=weight_decay, decoupled_weight_decay=True, **options)


def rmsprop(p, grads, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, maximize=False):
    p = p.copy()
    v, mean, buffer = 0, 0, 0
    for grad in grads:
        if grad is None:
            continue
        g = (-grad if maximize else grad) + weight_decay * p
        v = alpha * v + (1 - alpha) * g**2
        mean = alpha * mean + (1 - alpha) * g
        u = g / (np.sqrt(v - mean**2 if centered else v) + eps)
        if momentum:
            u = buffer = momentum * buffer + u
        p = p - lr * u
    return p


def adagrad(p, grads, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, maximize=False):
    p, total, t = p.copy(), initial_accumulator_value, 0
    for grad in grads:
        if grad is None:
            continue
        g = (-grad if maximize else grad) + weight_decay * p
        total = total + g**2
        p = p - lr / (1 + t * lr_decay) * g / (np.sqrt(total) + eps)
        t += 1
    return p


def adadelta(p, grads, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, maximize=False):
    p, v, u = p.copy(), 0, 0
    for grad in grads:
        if grad is None:
            continue
        g = (-grad if maximize else grad) + weight_decay * p
        v = rho * v + (1 - rho) * g**2
        step = np.sqrt(u + eps) / np.sqrt(v + eps) * g
        u = rho * u + (1 - rho) * step**2
        p = p - lr * step
    return p


def adamax(p, grads, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, maximize=False):
    p, m, u, t = p.copy(), 0, 0, 0
    for grad in grads:
        if grad is None:
            continue
        t += 1
        g = (-grad if maximize else grad) + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        u = np.maximum(betas[1] * u, np.abs(g) + eps)
        p = p - lr / (1 - betas[0] ** t) * m / u
    return p


def nadam(
    p,
    grads,
    lr=2e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0,
    momentum_decay=4e-3,
    decoupled_weight_decay=False,
    maximize=False,
):
    p, m, v, t, product = p.copy(), 0, 0, 0, 1.0
    for grad in grads:
        if grad is None:
            continue
        t += 1
        g = -grad if maximize else grad
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        now = betas[0] * (1 - 0.5 * 0.96 ** (t * momentum_decay))
        ahead = betas[0] * (1 - 0.5 * 0.96 ** ((t + 1) * momentum_decay))
        product *= now
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        mean = ahead * m / (1 - product * ahead) + (1 - now) * g / (1 - product)
        p = p - lr * mean / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


def radam(
    p, grads, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, decoupled_weight_decay=False, maximize=False
):
    p, m, v, t = p.copy(), 0, 0, 0
    for grad in grads:
        if grad is None:
            continue
        t += 1
        g = -grad if maximize else grad
        if decoupled_weight_decay:
            p = p - lr * weight_decay * p
        else:
            g = g + weight_decay * p
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        mean = m / (1 - betas[0] ** t)
        longest = 2 / (1 - betas[1]) - 1
        length = longest - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
        if length > 5:
            r = np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
            p = p - lr * mean * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)
        else:
            p = p - lr * mean
    return p


def asgd(p, grads, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, maximize=False):
    p, eta, t = p.copy(), lr, 0
    for grad in grads:
        if grad is None:
            continue
        t += 1
        g = (-grad if maximize else grad) + weight_decay * p
        p = (1 - lambd * eta) * p - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha
    return p


def rprop(p, grads, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), maximize=False):
    p = p.copy()
    size, before = np.full(p.shape, lr), np.zeros(p.shape)
    for grad in grads:
        if grad is None:
            continue
        g = -grad if maximize else grad.copy()
        agreement = np.sign(g * before)
        size = np.clip(size * np.select([agreement > 0, agreement < 0], [etas[1], etas[0]], 1.0), *step_sizes)
        g = np.where(agreement < 0, 0.0, g)
        p = p - np.sign(g) * size
        before = g
    return p


#: Optimizers with a fused operator and an option ``fused``.
FUSED = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "Adagrad": adagrad}
#: Optimizers with a fused operator that only ``foreach=False`` turns off. PyTorch has no option
#: ``fused`` for them.
FUSED_UNASKED = {
    "RMSprop": rmsprop, "Adadelta": adadelta, "Adamax": adamax, "NAdam": nadam, "RAdam": radam, "ASGD": asgd, "Rprop": rprop,
}  # fmt: skip
RULES = FUSED | FUSED_UNASKED

#: Optimizers with options.
CONFIGURATIONS = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "maximize": True}),
    ("Adam", {"lr": 0.05, "decoupled_weight_decay": True, "weight_decay": 0.2}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "amsgrad": True, "maximize": True, "weight_decay": 0.3}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.9, "momentum": 0.5, "maximize": True}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.9, "weight_decay": 0.1, "eps": 1e-3}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3}),
    ("Adagrad", {"lr": 0.1, "eps": 1e-3, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "betas": (0.8, 0.9), "momentum_decay": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 20, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5), "maximize": True}),
]
