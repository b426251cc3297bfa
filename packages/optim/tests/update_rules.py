"""The update rules of the optimizers, one parameter at a time in NumPy, written from the formulas of their documentation."""

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
    p, grads, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, maximize=False, decoupled_weight_decay=False
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


RULES = {"SGD": sgd, "Adam": adam, "AdamW": adamw, "RMSprop": rmsprop, "Adagrad": adagrad}

#: Names of optimizers with options.
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
]
