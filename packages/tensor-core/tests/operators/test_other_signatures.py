"""Signatures that PyTorch's parser accepts beside the documented ones."""

from __future__ import annotations

import pytest

import candelabra


def test_a_factor_by_position():
    a, b, c = candelabra.ones(2), candelabra.full((2,), 2.0), candelabra.full((2,), 3.0)
    assert candelabra.addcmul(a, 2, b, c).tolist() == [13, 13]
    assert candelabra.addcdiv(a, 3, b, c).tolist() == [3, 3]
    assert a.clone().addcmul_(2, b, c).tolist() == [13, 13]
    assert candelabra.add(a, 2, b).tolist() == [5, 5]
    assert a.sub(2, b).tolist() == [-3, -3]
    assert a.clone().add_(2, b).tolist() == [5, 5]


def test_factors_before_matrices():
    m = candelabra.ones(2, 2)
    assert candelabra.addmm(2, m, m, m).tolist() == [[4, 4], [4, 4]]
    assert candelabra.addmm(2, m, 3, m, m).tolist() == [[8, 8], [8, 8]]
    assert m.addmm(2, m, m).tolist() == [[4, 4], [4, 4]]
    assert m.clone().addmm_(2, 3, m, m).tolist() == [[8, 8], [8, 8]]
    t = candelabra.ones(3, 2, 2)
    assert candelabra.equal(candelabra.baddbmm(2, t, 3, t, t), candelabra.full((3, 2, 2), 8.0))
    with pytest.raises(TypeError):
        candelabra.addmm(m, m, 2, m, m)


def test_factors_before_vectors_and_sums():
    a, m, t = candelabra.ones(2), candelabra.ones(2, 2), candelabra.ones(3, 2, 2)
    assert candelabra.addmv(2, a, m, a).tolist() == [4, 4] and candelabra.addmv(2, a, 3, m, a).tolist() == [8, 8]
    assert a.addmv(2, m, a).tolist() == [4, 4] and a.clone().addmv_(2, 3, m, a).tolist() == [8, 8]
    assert candelabra.addr(2, m, 3, a, a).tolist() == [[5, 5], [5, 5]] and m.addr(2, 3, a, a).tolist() == [
        [5, 5],
        [5, 5],
    ]
    assert m.clone().addr_(2, 3, a, a).tolist() == [[5, 5], [5, 5]]
    assert candelabra.addbmm(2, m, 3, t, t).tolist() == [[20, 20], [20, 20]] and m.addbmm(2, t, t)[0, 0] == 8
    assert m.clone().addbmm_(2, 3, t, t)[0, 0] == 20
    with pytest.raises(TypeError):
        candelabra.addmv(a, m, a, 2)


def test_amax_of_dim_none():
    x = candelabra.arange(6.0).view(2, 3)
    assert candelabra.amax(x, dim=None).item() == 5
    assert x.amin(None, True).tolist() == [[0]]


def test_names_of_numpy_in_norms():
    x = candelabra.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert candelabra.linalg.norm(x, axis=1).tolist() == [5, 10]
    assert candelabra.linalg.vector_norm(x, axis=1, keepdims=True).tolist() == [[5], [10]]


def test_sort_of_stable_none():
    assert candelabra.sort(candelabra.tensor([3.0, 1.0, 2.0]), stable=None).indices.tolist() == [1, 2, 0]


def test_nothing():
    assert candelabra.block_diag().shape == (1, 0)
    assert candelabra.linalg.cond(candelabra.empty(0, 0)).item() == 0
    assert candelabra.linalg.cond(candelabra.empty(2, 0, 0), 2).tolist() == [0, 0]
    assert candelabra.linalg.cond(candelabra.empty(0, 3, 3)).shape == (0,)


def test_asarray_of_a_dlpack_capsule():
    x = candelabra.arange(3.0)
    y = candelabra.asarray(x.__dlpack__())
    y[0] = 5
    assert x.tolist() == [5, 1, 2]


@pytest.mark.parametrize("dtype", [candelabra.int64, candelabra.bool, candelabra.float64])
def test_bernoulli_to_an_output_of_any_dtype(dtype):
    out = candelabra.empty(3, dtype=dtype)
    assert candelabra.bernoulli(candelabra.ones(3), out=out) is out
    assert out.tolist() == [1, 1, 1]
