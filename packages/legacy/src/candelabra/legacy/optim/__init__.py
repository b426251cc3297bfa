"""Optimizers in Torch 7's style: ``x, fs = optim.sgd(opfunc, x, config, state)``.

``opfunc(x)`` returns the value of the function and its gradient at ``x``. An optimizer changes
``x`` in place, and returns it and a list of the function's values. ``config`` is a dict of
settings. What the next call needs is kept in ``state``, or in ``config`` where there is no other.
"""

from __future__ import annotations

from .conjugate_gradient import cg
from .first_order import adadelta, adagrad, adam, adamax, asgd, nag, rmsprop, rprop, sgd
from .quasi_newton import lbfgs

__all__ = ["adadelta", "adagrad", "adam", "adamax", "asgd", "cg", "lbfgs", "nag", "rmsprop", "rprop", "sgd"]
