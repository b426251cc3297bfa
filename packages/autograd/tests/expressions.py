"""Expressions for operators without calls in :mod:`samples`: results that are unique only up to a
sign or phase, mutated arguments, random numbers, or arguments made by another operator.

``expressions(name, dtype)`` returns pairs of a function and the tensors to differentiate it with
respect to.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy

import candelabra
from candelabra import linalg, ops
from candelabra.autograd.derivatives.special import WITHOUT_GRADIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    Expression = tuple[Callable[..., Any], tuple[Any, ...]]

F64 = candelabra.float64


class Numbers:
    """Makes tensors, the same ones for an operator each time."""

    def __init__(self, name: str, dtype: Any) -> None:
        self.random = numpy.random.default_rng(zlib.crc32(name.encode()))
        self.dtype = dtype

    def __call__(self, *shape: int, shift: float = 0.0) -> Any:
        values = self.random.standard_normal(shape)
        if self.dtype.is_complex:
            values = values + 1j * self.random.standard_normal(shape)
        if shift:
            values = values + shift * numpy.eye(*shape[-2:])
        return candelabra.tensor(values, dtype=self.dtype, requires_grad=True)

    def between(self, low: float, high: float, *shape: int) -> Any:
        return candelabra.tensor(self.random.uniform(low, high, shape), dtype=F64, requires_grad=True)


def _definite(x: Any) -> Any:
    return x @ x.mH + candelabra.eye(x.shape[-1], dtype=x.dtype)


def _hermitian(x: Any) -> Any:
    return x + x.mH


def _lower(x: Any) -> Any:
    return x.tril() + 2 * candelabra.eye(x.shape[-1], dtype=x.dtype)


def _seeded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function draw the same numbers each time."""

    def drawn(*arguments: Any) -> Any:
        with_seed = candelabra.get_rng_state()
        candelabra.manual_seed(7)
        try:
            return function(*arguments)
        finally:
            candelabra.set_rng_state(with_seed)

    return drawn


def _unary(function: Callable[..., Any], low: float, high: float) -> Callable[[Numbers], list[Expression]]:
    return lambda n: [(function, (n.between(low, high, 5),))]


_TARGETS = [[1, 2, 0], [1, 1, 2]]


def _ctc(x: Any) -> Any:
    return ops._ctc_loss(x.log_softmax(2), candelabra.tensor(_TARGETS), [6, 4], [2, 3], 0, False)[0]


def _attention(q: Any, k: Any, v: Any) -> Any:
    return ops._scaled_dot_product_attention(q, k, v, None, False, 0.5)[0]


def _copied(x: Any, y: Any) -> Any:
    return (x * 1).copy_(y) * x


_MATRIX: dict[str, Callable[[Any], Any]] = {
    "linalg_cholesky_ex": lambda x: linalg.cholesky(_definite(x)),
    "linalg_lu_factor_ex": lambda x: linalg.lu_factor(x)[0],
    "linalg_qr": lambda x: tuple(part.abs() for part in linalg.qr(x)),
    "linalg_eigh_ex": lambda x: (linalg.eigh(_hermitian(x))[0], linalg.eigh(_hermitian(x))[1].abs()),
    "linalg_eig_ex": lambda x: (linalg.eigvals(x).abs().sum(), linalg.eig(x)[1].abs().square().sum()),
    "linalg_svd_ex": lambda x: (linalg.svd(x)[0].abs(), linalg.svdvals(x)),
    "linalg_solve_ex": lambda x: linalg.solve(x, x.mT),
    "linalg_inv_ex": linalg.inv,
    "linalg_solve_triangular": lambda x: linalg.solve_triangular(_lower(x), x, upper=False),
    "linalg_lu_solve": lambda x: linalg.lu_solve(*linalg.lu_factor(x), x),
    "cholesky_solve": lambda x: candelabra.cholesky_solve(x, linalg.cholesky(_definite(x))),
    "linalg_lstsq_driver": lambda x: linalg.lstsq(x, x.sin()).solution,
    "linalg_det": linalg.det,
    "linalg_slogdet": lambda x: linalg.slogdet(x)[1],
    "linalg_pinv_atol_rtol": linalg.pinv,
}
_TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "_fft_c2c": lambda x: candelabra.fft.fft(candelabra.complex(x, x.sin()) if not x.is_complex() else x),
    "_fft_r2c": lambda x: candelabra.fft.rfft(x.real if x.is_complex() else x, 5),
    "_fft_r2c_nd": lambda x: candelabra.fft.rfft2(x.real if x.is_complex() else x, (3, 4)),
    "_fft_c2r": lambda x: candelabra.fft.irfft(candelabra.complex(x, x.cos()) if not x.is_complex() else x, 5),
}
_OTHER: dict[str, Callable[[Numbers], list[Expression]]] = {
    "linalg_householder_product": lambda n: [(linalg.householder_product, (n(4, 3), n(3)))],
    "special_i0e": _unary(candelabra.special.i0e, 0.3, 3.0), "special_i1": _unary(candelabra.special.i1, 0.3, 3.0),
    "special_i1e": _unary(candelabra.special.i1e, 0.3, 3.0), "special_erfcx": _unary(candelabra.special.erfcx, -1.0, 3.0),
    "special_ndtr": _unary(candelabra.special.ndtr, -2.0, 2.0), "special_log_ndtr": _unary(candelabra.special.log_ndtr, -2.0, 2.0),
    "special_ndtri": _unary(candelabra.special.ndtri, 0.1, 0.9), "special_entr": _unary(candelabra.special.entr, 0.2, 3.0),
    "igamma": lambda n: [(lambda x: candelabra.igamma(candelabra.tensor(1.5, dtype=F64), x), (n.between(0.5, 3.0, 4),))],
    "igammac": lambda n: [(lambda x: candelabra.igammac(candelabra.tensor(1.5, dtype=F64), x), (n.between(0.5, 3.0, 4),))],
    "special_zeta": lambda n: [(lambda x: candelabra.special.zeta(2.5, x), (n.between(0.5, 3.0, 4),))],
    "special_xlog1py": lambda n: [(candelabra.special.xlog1py, (n.between(0.5, 3.0, 4), n.between(0.5, 3.0, 4)))],
    "frexp": lambda n: [(lambda x: candelabra.frexp(x).mantissa, (n.between(1.1, 1.9, 3),))],
    "_ctc_loss": lambda n: [(_ctc, (n(6, 2, 3),))],
    "_scaled_dot_product_attention_backward": lambda n: [(_attention, (n(1, 2, 3, 2), n(1, 2, 4, 2), n(1, 2, 4, 3)))],
    "copy_": lambda n: [(_copied, (n(3), n(3)))],
    "fill_": lambda n: [(lambda x: (x * 1).fill_(2.0) * x, (n(3),))],
    "uniform_": lambda n: [(_seeded(lambda x: (x * 1).uniform_() * x), (n(3),))],
    "normal_": lambda n: [(_seeded(lambda x: (x * 1).normal_() * x), (n(3),))],
    "bernoulli_": lambda n: [(_seeded(lambda x: (x * 1).bernoulli_() * x), (n(3),))],
    "exponential_": lambda n: [(_seeded(lambda x: (x * 1).exponential_() * x), (n(3),))],
    "random_range_": lambda n: [(_seeded(lambda x: (x * 1).random_(5) * x), (n(3),))],
    "bernoulli": lambda n: [(_seeded(lambda x: candelabra.bernoulli(x.sigmoid()) * x), (n(3),))],
    "native_dropout": lambda n: [(_seeded(lambda x: ops.native_dropout(x, 0.5)[0]), (n(6),))],
}  # fmt: skip
_OTHER["_ctc_loss_backward"] = _OTHER["_ctc_loss"]

#: Operators that are also checked with complex numbers.
COMPLEX_EXPRESSIONS = (*_MATRIX, *_TRANSFORMS, "linalg_householder_product", "copy_", "fill_")
#: Operators that PyTorch does not differentiate either. They raise an error.
NOT_DIFFERENTIATED = frozenset(WITHOUT_GRADIENT)
EXPRESSIONS = (*_MATRIX, *_TRANSFORMS, *_OTHER)


def expressions(name: str, dtype: Any) -> list[Expression]:
    """Return the expressions that call operator `name`."""
    numbers = Numbers(name, dtype)
    if name in _MATRIX:
        return [(_MATRIX[name], (numbers(3, 3, shift=2.0),))]
    if name in _TRANSFORMS:
        return [(_TRANSFORMS[name], (numbers(2, 4),))]
    return _OTHER[name](numbers)
