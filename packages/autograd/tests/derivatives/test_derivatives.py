"""Test first and second derivatives of every differentiable operator against finite differences."""

from __future__ import annotations

import pytest
from checking import check_operator
from samples import COMPLEX_OPERATORS, has_samples

import candelabra
from candelabra.autograd.recording import write_autograd_function
from candelabra.autograd.table import ROWS, WRITTEN
from candelabra.catalogue import OPERATORS

_NONDIFFERENTIABLE, _COMPOSITE = 8, 256
#: Operators that only the in-place tests can check, and random ones.
_ELSEWHERE = {
    "copy_",
    "fill_",
    "uniform_",
    "normal_",
    "bernoulli",
    "bernoulli_",
    "exponential_",
    "random_range_",
    "native_dropout",
}
#: Tested in test_special_gradients.py.
_ELSEWHERE |= {name for name in OPERATORS if name.startswith("special_")} | {"igamma", "igammac", "frexp"}
#: Tested in test_fft_gradients.py, through the public functions.
_ELSEWHERE |= {"_fft_c2c", "_fft_r2c", "_fft_r2c_nd", "_fft_c2r"}
#: Tested in test_linalg_gradients.py, within functions whose value is unique.
_ELSEWHERE |= {
    "linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_qr", "linalg_householder_product", "linalg_eigh_ex", "linalg_eig_ex",
    "linalg_svd_ex", "linalg_solve_ex", "linalg_inv_ex", "linalg_solve_triangular", "linalg_lu_solve", "linalg_lstsq_driver",
    "cholesky_solve", "linalg_det", "linalg_slogdet", "linalg_pinv_atol_rtol",
}  # fmt: skip
#: Tested in test_attention_gradients.py: a decomposition that is checked as a second derivative,
#: and one that is valid only after a softmax.
_ELSEWHERE |= {"_scaled_dot_product_attention_backward", "_ctc_loss", "_ctc_loss_backward"}
#: Decompositions that are checked as second derivatives.
_ELSEWHERE |= {"grid_sampler_backward", "_cdist_backward"}
#: Decompositions that are checked as second derivatives of lstm_sequence.
_ELSEWHERE |= {"lstm_sequence_backward", "recurrent_sequence_backward", "recurrent_stack_backward"}
DIFFERENTIABLE = [name for name, operator in OPERATORS.items() if not operator.tags & _NONDIFFERENTIABLE]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_there_is_a_formula_or_a_decomposition(name):
    operator = OPERATORS[name]
    if name in ROWS:
        write_autograd_function(name).build()
    assert name in ROWS or name in WRITTEN or (operator.tags & _COMPOSITE and operator.composite is not None)


def test_no_formula_without_an_operator():
    assert [name for name in (*ROWS, *WRITTEN) if name not in OPERATORS] == []


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_there_are_samples(name):
    assert has_samples(name) or name in _ELSEWHERE


@pytest.mark.parametrize("name", [name for name in DIFFERENTIABLE if name not in _ELSEWHERE])
def test_real(name):
    assert check_operator(name, candelabra.float64) > 0 or name.endswith("norm_backward")


@pytest.mark.parametrize("name", COMPLEX_OPERATORS)
def test_complex(name):
    assert check_operator(name, candelabra.complex128) > 0
