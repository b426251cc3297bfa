"""Transformations of functions: derivatives as functions, and functions of one made functions of
many.

They nest in any order. What is transformed should be a function of its arguments alone.
"""

from .batching import vmap
from .forward import hessian, jacfwd, jvp, linearize
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .refused import functionalize
from .reverse import grad, grad_and_value, jacrev, vjp

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp",
    "vmap",
]  # fmt: skip
