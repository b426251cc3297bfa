"""Custom operators, as in ``torch.library``.

A custom operator is called, recorded by autograd, transformed and profiled like every other one.
Its schema checks the arguments. It has kernels, per device type or for all; a gradient formula
(`register_autograd`); a batching rule (`register_vmap`); and a fake function that describes its
results (`register_fake`). ``candelabra.ops.NAMESPACE.NAME`` is the operator.
:mod:`candelabra.utils.cpp_extension` compiles kernels.
"""

from __future__ import annotations

from typing import Any, NoReturn

from .checking import OpCheckError, opcheck
from .definitions import CustomOpDef, custom_op, get_ctx, operator_named
from .registration import (
    Library,
    define,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_vmap,
)
from .schemas import infer_schema

__all__ = [
    "CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "impl_abstract",
    "infer_schema", "opcheck", "operator_named", "register_autocast", "register_autograd", "register_fake", "register_kernel",
    "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip


def fallthrough_kernel() -> NoReturn:
    """Placeholder for the next kernel in PyTorch's dispatcher. Not callable."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def triton_op(*arguments: Any, **keywords: Any) -> NoReturn:
    """Raise an error: Triton kernels are not supported.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        "candelabra.library.triton_op: there is no Triton here. custom_op() takes kernels in Python (NumPy, Numba, Cython), and "
        "candelabra.utils.cpp_extension.load_inline() compiles kernels in C and C++"
    )


def wrap_triton(kernel: Any) -> NoReturn:
    """Raise an error: Triton kernels are not supported.

    Raises
    ------
    NotImplementedError
        Always.
    """
    triton_op(kernel)


def register_torch_dispatch(op: Any, torch_dispatch_class: Any, func: Any = None, /, *, lib: Any = None) -> NoReturn:
    """Raise an error: tensors have no ``__torch_dispatch__``.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        "candelabra.library.register_torch_dispatch: subclasses of Tensor have no __torch_dispatch__; what an operator does for each device "
        "is said by register_kernel()"
    )
