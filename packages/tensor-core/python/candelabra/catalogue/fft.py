"""Discrete Fourier transforms; candelabra.fft has the functions that are called."""

from .declaration import COMPOSITE, HIDDEN, document, operator

# What kernels are given, beyond the general rules of docs/kernel-contract.template.md.
_SEES_TRANSFORM = "self has any strides; dimensions are wrapped and distinct, and none that is transformed is empty."

_SCALE = "float: multiplies the results"
operator(
    "_fft_c2c(Tensor self, int[] dim, bool forward, float scale=1.0) -> Tensor", shape="_fft_c2c", tags=HIDDEN,
    autocast="float32", linear=("self",), batching="fft",
    sees=f"{_SEES_TRANSFORM} self is complex.",
    doc=document(
        "Compute the Fourier transform of complex numbers along dimensions: ``sum_j x_j exp(-+2 pi i j k / n)``.",
        ">>> candelabra.ops._fft_c2c(candelabra.tensor([1 + 0j, 2 + 0j]), [0], True)\ntensor([ 3.+0.j, -1.+0.j])",
        input="Tensor: complex", dim="sequence of int: the dimensions", forward="bool: whether the exponent is negative", scale=_SCALE,
        returns="Tensor: of the shape of `input`",
    ),
)  # fmt: skip
operator(
    "_fft_r2c(Tensor self, int dim, float scale=1.0) -> Tensor", shape="_fft_r2c", tags=HIDDEN,
    autocast="float32", linear=("self",), batching="fft",
    sees=f"{_SEES_TRANSFORM} self is float32 or float64.",
    doc=document(
        "Compute the Fourier transform of real numbers along a dimension: the first n // 2 + 1 coefficients. The others are conjugates of these.",
        ">>> candelabra.ops._fft_r2c(candelabra.tensor([1.0, 2.0]), 0)\ntensor([ 3.+0.j, -1.+0.j])",
        input="Tensor: of dtype float32 or float64", dim="int: the dimension", scale=_SCALE, returns="Tensor: complex",
    ),
)  # fmt: skip
operator(
    "_fft_r2c_nd(Tensor self, int[] dim, float scale=1.0) -> Tensor", shape="_fft_r2c_nd", tags=HIDDEN | COMPOSITE,
    sees=f"{_SEES_TRANSFORM} self is float32 or float64. A backend that can transforms all of them in one pass.",
    doc=document(
        "Compute the Fourier transform of real numbers along several dimensions, with the first n // 2 + 1 coefficients of the last one.",
        ">>> candelabra.ops._fft_r2c_nd(candelabra.tensor([[1.0, 2.0], [0.0, 0.0]]), [0, 1])\n"
        "tensor([[ 3.+0.j, -1.+0.j],\n        [ 3.+0.j, -1.+0.j]])",
        input="Tensor: of dtype float32 or float64", dim="sequence of int: the dimensions", scale=_SCALE, returns="Tensor: complex",
    ),
)  # fmt: skip
operator(
    "_fft_c2r(Tensor self, int dim, int n, float scale=1.0) -> Tensor", shape="_fft_c2r", tags=HIDDEN,
    autocast="float32", linear=("self",), batching="fft",
    sees=f"{_SEES_TRANSFORM} self is complex and has n // 2 + 1 elements in dim.",
    doc=document(
        "Compute the inverse Fourier transform to real numbers along a dimension, without normalization.",
        ">>> candelabra.ops._fft_c2r(candelabra.tensor([3 + 0j, -1 + 0j]), 0, 2)\ntensor([2., 4.])",
        input="Tensor: complex, the first n // 2 + 1 coefficients", dim="int: the dimension", n="int: the number of results", scale=_SCALE,
        returns="Tensor: real",
    ),
)  # fmt: skip
