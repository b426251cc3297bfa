"""Composable function transforms: derivatives of functions, and vectorization.

Transforms nest in any order. The transformed function should be pure: a function of its arguments
alone.
"""

from ..transforms.vmap import vmap
from .forward import hessian, jacfwd, jvp, linearize
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .refused import functionalize
from .reverse import grad, grad_and_value, jacrev, vjp

__all__ = [
    "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_", "stack_module_state", "vjp",
    "vmap",
]  # fmt: skip
