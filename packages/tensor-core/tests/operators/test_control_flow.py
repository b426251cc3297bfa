"""cond, while_loop, and functions on sizes."""

import math

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra


@pytest.mark.parametrize("pred", [True, 1, candelabra.tensor(True), candelabra.tensor([[3]])])
def test_cond_takes_one_branch(pred):
    x = candelabra.tensor([1.0])
    called = []
    assert candelabra.cond(pred, lambda x: x + 1, lambda x: called.append(x), (x,)).tolist() == [2]
    assert not called
    assert candelabra.cond(False, lambda: 1, lambda: 2) == 2


def test_cond_is_recorded():
    pytest.importorskip("candelabra.autograd", reason="needs candelabra-autograd")
    x = candelabra.tensor(3.0, requires_grad=True)
    candelabra.cond(x > 0, lambda x: x * x, lambda x: -x, [x]).backward()
    assert x.grad == 6


def test_cond_refuses():
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        candelabra.cond(candelabra.ones(2), abs, abs, (1,))
    with pytest.raises(RuntimeError, match="Expected pred to be bool"):
        candelabra.cond("a", abs, abs, (1,))
    with pytest.raises(RuntimeError, match="both branches to be callable"):
        candelabra.cond(True, 3, abs, (1,))
    with pytest.raises(RuntimeError, match="operands to be a tuple"):
        candelabra.cond(True, abs, abs, candelabra.ones(1))


def test_while_loop():
    n, factorial = candelabra.while_loop(
        lambda n, f: n > 1, lambda n, f: (n - 1, f * n), (candelabra.tensor(6), candelabra.tensor(1))
    )
    assert (int(n), int(factorial)) == (1, math.factorial(6))
    assert candelabra.while_loop(lambda i: i < 3, lambda i: [i + 1], (0,)) == (3,)
    assert candelabra.while_loop(lambda i: False, lambda i: 1 / 0, (0,)) == (0,)


def test_while_loop_refuses():
    with pytest.raises(RuntimeError, match="cond_fn and body_fn to be callable"):
        candelabra.while_loop(3, abs, (1,))
    with pytest.raises(RuntimeError, match="carried_inputs to be a tuple"):
        candelabra.while_loop(abs, abs, 1)
    with pytest.raises(RuntimeError, match="boolean scalar tensor or a boolean but got 3"):
        candelabra.while_loop(lambda i: 3, lambda i: (i,), (1,))
    with pytest.raises(RuntimeError, match="boolean scalar tensor"):
        candelabra.while_loop(lambda i: candelabra.ones(2, dtype=candelabra.bool), lambda i: (i,), (1,))
    with pytest.raises(RuntimeError, match="a tuple of 1 values, as many as it takes, but returned 2 values"):
        candelabra.while_loop(lambda i: True, lambda i: (i, i), (1,))
    with pytest.raises(RuntimeError, match="but returned int"):
        candelabra.while_loop(lambda i: True, lambda i: i, (1,))


def test_functions_on_sizes():
    assert candelabra.sym_int(2.9) == 2 and candelabra.sym_int(-2.9) == -2 and type(candelabra.sym_int(True)) is int
    assert candelabra.sym_float(2) == 2.0 and type(candelabra.sym_float(2)) is float
    assert candelabra.sym_max(1, 2.0) == 2.0 and type(candelabra.sym_max(3, 2.0)) is float
    assert candelabra.sym_min(1, 2.0) == 1.0 and type(candelabra.sym_min(1, 2)) is int
    assert candelabra.sym_not(True) is False and candelabra.sym_not(0) is True
    assert candelabra.sym_ite(True, 1, 2) == 1 and candelabra.sym_ite(False, 1, 2) == 2
    assert candelabra.sym_sqrt(9) == 3.0
    assert candelabra.sym_sum([1, 2, 3]) == 6 == candelabra.sym_sum(1, 2, 3)
    assert candelabra.sym_constrain_range(3, min=3, max=3) is None
    assert candelabra.sym_constrain_range_for_size(0) is None


def test_functions_on_sizes_refuse():
    with pytest.raises(AssertionError, match="ints and floats, but got str"):
        candelabra.sym_max("a", 1)
    with pytest.raises(AssertionError, match="must be a bool"):
        candelabra.sym_ite(1, 1, 2)
    with pytest.raises(AssertionError, match="of one type"):
        candelabra.sym_ite(True, 1, 2.0)
    with pytest.raises(ValueError):
        candelabra.sym_sqrt(-1)
    with pytest.raises(ValueError):
        candelabra.sym_int(math.nan)
    with pytest.raises(RuntimeError, match=r"Invalid value range for 3 between \[4, inf\]"):
        candelabra.sym_constrain_range(3, min=4)
    with pytest.raises(RuntimeError, match="Max must be greater"):
        candelabra.sym_constrain_range(3, min=4, max=2)
    with pytest.raises(RuntimeError, match="Invalid value range for -1"):
        candelabra.sym_constrain_range_for_size(-1)
    with pytest.raises(NotImplementedError, match="nothing is traced"):
        candelabra.sym_fresh_size(1)
