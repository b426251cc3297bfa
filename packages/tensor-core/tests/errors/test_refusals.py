"""Dtypes and arguments that PyTorch refuses, and the odd ones that it takes."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.catalogue import FACTS, OPERATORS

BOOLS = c.tensor([[True, False], [True, True]])
WHOLE = c.tensor([[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: c.median(BOOLS), NotImplementedError, "bool"),
        (lambda: c.median(BOOLS, 0), NotImplementedError, "bool"),
        (lambda: c.nanmedian(BOOLS), NotImplementedError, "bool"),
        (lambda: c.kthvalue(BOOLS, 1), NotImplementedError, "bool"),
        (lambda: c.topk(BOOLS, 1), RuntimeError, "does not support bool"),
        (lambda: c.histc(WHOLE, 3), NotImplementedError, "int64"),
        (lambda: c.aminmax(WHOLE, dim=(0, 1)), TypeError, "argument 'dim' must be int, not tuple"),
        (lambda: c.aminmax(c.empty(0)), RuntimeError, "no identity"),
        (lambda: c.nanmean(c.ones(2, dtype=c.complex64)), RuntimeError, "complex"),
        (
            lambda: c.index_reduce(BOOLS, 0, c.tensor([0, 1]), BOOLS, "prod", include_self=False),
            NotImplementedError,
            "bool",
        ),
        (lambda: c.index_reduce(c.ones(2), 0, c.tensor([2]), c.ones(1), "prod"), IndexError, "out of range"),
        (lambda: c.narrow(c.ones(3), 0, c.tensor([1]), 1), RuntimeError, "0-dim integral Tensor"),
        (lambda: c.narrow(c.ones(3), 0, c.tensor([1, 2]), 1), RuntimeError, "0-dim integral Tensor"),
        (lambda: c.narrow(c.ones(3), 0, c.tensor(1.0), 1), RuntimeError, "0-dim integral Tensor"),
        (lambda: c.narrow(c.ones(3), 0, c.tensor(True), 1), RuntimeError, "0-dim integral Tensor"),
        (
            lambda: c.index_fill(c.ones(3), 0, c.tensor([0]), c.tensor([1.0, 2.0])),
            RuntimeError,
            "0-dimensional value tensor",
        ),
        (lambda: c.addr(WHOLE, WHOLE[0], WHOLE[0], beta=0.5), RuntimeError, "beta must not be a floating point number"),
        (lambda: c.addr(c.ones(2, 2), c.ones(2), c.ones(2), alpha=True), RuntimeError, "Boolean alpha only supported"),
        (lambda: c.addmm(WHOLE, WHOLE, WHOLE, alpha=1j), RuntimeError, "without overflow"),
        (lambda: c.addmv(c.ones(2), c.ones(2, 2), c.ones(2), beta=1j), RuntimeError, "without overflow"),
        (lambda: c.index_add(c.ones(2), 0, c.tensor([0]), c.ones(1), alpha=1j), RuntimeError, "without overflow"),
        (lambda: c.tensor_split(c.ones(3), 2**62), RuntimeError, "too many"),
        (lambda: c.chunk(c.ones(0), 2**62), RuntimeError, "too many"),
        (lambda: c.ones(1).expand(2**40).unbind(), RuntimeError, "too many"),
        (lambda: c.ones(1).expand(2**40).split(1), RuntimeError, "too many"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_factors_of_whole_numbers_are_cut_down():
    product = np.array([[1, 2], [3, 4]]) @ np.array([[1, 2], [3, 4]])
    assert c.addmm(WHOLE, WHOLE, WHOLE, beta=0.9, alpha=2.7).tolist() == (2 * product).tolist()
    batch = WHOLE.view(1, 2, 2)
    assert c.baddbmm(batch, batch, batch, beta=1.9, alpha=0.5).tolist() == batch.tolist()
    assert c.addbmm(WHOLE, batch, batch, alpha=1.5).tolist() == (product + np.array([[1, 2], [3, 4]])).tolist()
    assert c.addmv(WHOLE[0], WHOLE, WHOLE[0], beta=True, alpha=0.5).tolist() == [1, 2]


def test_index_add_of_bools():
    for alpha, expected in ((True, True), (False, False), (2, True), (0.5, True), (0, False)):
        found = c.index_add(c.tensor([False, True]), 0, c.tensor([0]), c.tensor([True]), alpha=alpha)
        assert found.tolist() == [expected, True]
    assert c.index_add(c.tensor([1, 1]), 0, c.tensor([0]), c.tensor([3]), alpha=1.5).tolist() == [4, 1]


def test_narrow_from_a_tensor():
    x = c.arange(5)
    assert c.narrow(x, 0, c.tensor(1), 2).tolist() == [1, 2]
    assert x.narrow(0, c.tensor(-2, dtype=c.int32), 2).tolist() == [3, 4]


def test_index_fill_by_a_tensor():
    x = c.zeros(2, 3)
    assert c.index_fill(x, 1, c.tensor([0, 2]), c.tensor(2.5)).tolist() == [[2.5, 0, 2.5]] * 2
    assert x.index_fill_(0, c.tensor([1]), c.tensor(7)).tolist() == [[0, 0, 0], [7, 7, 7]]


def test_medians_of_nothing():
    for dtype, expected in ((c.int32, -(2**31)), (c.int64, -(2**63)), (c.int16, 0)):
        assert c.median(c.empty(0, dtype=dtype)).item() == expected
    assert math.isnan(c.nanmedian(c.empty(0)).item())


@pytest.mark.parametrize("seed", range(5))
def test_angles_of_complex_logcumsumexp(seed):
    # One step after the other: the larger number plus log(1 + exp(smaller - larger)).
    rng = np.random.default_rng(seed)
    z = 3 * rng.standard_normal((2, 20)) + 9j * rng.standard_normal((2, 20))
    expected = z.copy()
    for k in range(1, 20):
        for row in range(2):
            pair = sorted((expected[row, k - 1], z[row, k]), key=lambda value: value.real)
            expected[row, k] = pair[1] + np.log(1 + np.exp(pair[0] - pair[1]))
    np.testing.assert_allclose(c.logcumsumexp(c.tensor(z), 1).tolist(), expected, rtol=1e-10)
    np.testing.assert_allclose(c.logcumsumexp(c.tensor(z).T, 0).T.tolist(), expected, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-160, 1.0, 1e160, 1e300])
def test_norms_beyond_the_range_of_squares(scale):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3, 50)) * scale
    exact = np.array([math.hypot(*row) for row in x])
    np.testing.assert_allclose(c.linalg.vector_norm(c.tensor(x), dim=1).tolist(), exact, rtol=1e-13)
    np.testing.assert_allclose(c.linalg.vector_norm(c.tensor(x).T, dim=0).tolist(), exact, rtol=1e-13)
    z = x + 1j * x
    np.testing.assert_allclose(c.tensor(z).norm(dim=1).tolist(), [math.hypot(*row, *row) for row in x], rtol=1e-13)


def test_norms_at_the_ends():
    assert c.linalg.vector_norm(c.tensor([math.inf, 1.0], dtype=c.float64)).item() == math.inf
    assert math.isnan(c.linalg.vector_norm(c.tensor([math.nan, 1e300], dtype=c.float64)).item())
    assert c.linalg.vector_norm(c.zeros(3, dtype=c.float64)).item() == 0
    assert c.linalg.vector_norm(c.zeros(0, dtype=c.float64)).item() == 0


def test_all_and_any_of_much():
    for dtype in (c.bool, c.float32, c.bfloat16, c.int64, c.complex64):
        for count in (1, 32768, 32769, 200001):
            zeros, ones = c.zeros(count, dtype=dtype), c.ones(count, dtype=dtype)
            assert (c.any(zeros).item(), c.all(zeros).item()) == (False, False)
            assert (c.any(ones).item(), c.all(ones).item()) == (True, True)
            for place in {0, count // 2, count - 1}:
                zeros[place], ones[place] = 1, 0
                assert c.any(zeros).item() is True
                assert c.all(ones).item() is False
                assert c.any(zeros.view(1, -1).expand(2, count).t()).item() is True
                zeros[place], ones[place] = 0, 1


def test_sinc_of_whole_numbers():
    for dtype in (c.int64, c.bool):
        found = c.sinc(c.tensor([0, 1], dtype=dtype))
        assert found.dtype is c.float32
        assert found.tolist() == pytest.approx([1, 0], abs=1e-6)


def test_arguments_by_the_names_of_the_parser():
    matrix, vector = c.eye(2), c.ones(2)
    assert c.gather(vector, 0, c.tensor([1]), sparse_grad=False).tolist() == [1]
    assert [part.tolist() for part in c.hsplit(c.arange(4), sections=2)] == [[0, 1], [2, 3]]
    assert [part.tolist() for part in c.arange(4).hsplit(indices=[1])] == [[0], [1, 2, 3]]
    assert c.searchsorted(c.tensor([1, 3]), input=c.tensor([2])).tolist() == [1]
    assert c.linalg.cond(input=matrix).item() == 1
    assert c.linalg.tensorsolve(input=matrix, other=vector).tolist() == [1, 1]
    assert c.linalg.vector_norm(input=vector, ord=1).item() == 2
    assert c.matrix_exp(input=c.zeros(1, 1)).tolist() == [[1]]
    assert vector.clone().addmv_(mat=matrix, vec=vector).tolist() == [2, 2]
    assert c.zeros(1, 2).addr_(vec1=vector[:1], vec2=vector).tolist() == [[1, 1]]
    assert c.zeros(1, 1).addbmm_(batch1=c.ones(2, 1, 1), batch2=c.ones(2, 1, 1)).tolist() == [[2]]
    with pytest.raises(TypeError, match="which name one argument"):
        c.linalg.eigvalsh(input=matrix, A=matrix)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bogus'"):
        c.gather(vector, 0, c.tensor([1]), bogus=False)


DTYPE_OF = {"bool": c.bool, "integer": c.int32, "float": c.float32, "complex": c.complex64}


@pytest.mark.parametrize("name", [name for name, facts in FACTS.items() if facts.refuses])
def test_dtypes_that_a_row_refuses(name: str) -> None:
    operator = OPERATORS[name]
    tensors = operator.schema.partition(" -> ")[0].count("Tensor ")
    for category in FACTS[name].refuses:
        for numel in (0, 3):
            arguments = [c.ones(numel, dtype=DTYPE_OF[category]) for _ in range(tensors)]
            for given in (arguments, [each[::2] for each in arguments]):
                with pytest.raises(RuntimeError, match="not|support"):  # NotImplementedError is one
                    operator(*given)


def test_exceptions_of_refused_dtypes() -> None:
    whole, bools, numbers = c.ones(2, dtype=c.int64), c.ones(2, dtype=c.bool), c.ones(2, dtype=c.complex64)
    for call, error, message in (
        (lambda: c.frac(whole), NotImplementedError, "\"frac\" not implemented for 'Long'"),
        (lambda: c.maximum(numbers, numbers), RuntimeError, r"^maximum not implemented for complex tensors\.$"),
        (lambda: numbers.ceil_(), NotImplementedError, "^ceil is not supported for complex inputs$"),
        (lambda: bools << bools, NotImplementedError, "\"bitwise_left_shift\" not implemented for 'Bool'"),
        (lambda: c.signbit(numbers), NotImplementedError, "^signbit is not implemented for complex tensors"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_titles_in_messages() -> None:
    empty = c.empty(0)
    for call, error, message in (
        (lambda: c.ops.max_with_indices(empty, 0), IndexError, r"^max\(\): Expected reduction dim 0"),
        (lambda: c.ops._aminmax(empty, [0]), IndexError, r"^aminmax\(\): Expected reduction dim 0"),
        (lambda: c.ops.linalg_cholesky_ex(c.ones(2, 3)), RuntimeError, r"^linalg\.cholesky: A"),
        (lambda: c.ops.linalg_inv_ex(c.ones(2, 2).half()), RuntimeError, r"^linalg\.inv: Low precision dtypes"),
        (lambda: c.ops.linalg_det(c.ones(2, 2).half()), NotImplementedError, r"^linalg\.det: Low precision dtypes"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_a_catalogue_row_with_an_unknown_category() -> None:
    with pytest.raises(ValueError, match="refuses bool, integer, float or complex, not half"):
        c._C.declare_operator("test::refuses(Tensor self) -> Tensor", "unary", 0, "", {"half": None}, "")
