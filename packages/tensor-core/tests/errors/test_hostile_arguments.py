"""Arguments that change under the call, stand in the wrong place, or are larger than any memory:
exceptions, never a crash.
"""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import candelabra


class Clearing:
    """An integer that empties a list while it is asked for its value."""

    def __init__(self, victim: list, value: int = 0) -> None:
        self.victim = victim
        self.value = value

    def __index__(self) -> int:
        self.victim.clear()
        gc.collect()
        return self.value


@pytest.mark.parametrize(("join", "shape"), [(candelabra.cat, (2000,)), (candelabra.stack, (2, 1000))])
def test_a_list_of_tensors_emptied_during_the_call(join, shape):
    tensors = [candelabra.ones(1000), candelabra.ones(1000)]
    result = join(tensors, Clearing(tensors))
    assert tensors == []
    assert result.shape == shape
    assert result.sum().item() == 2000


def test_a_list_of_integers_emptied_during_the_call():
    sizes: list = []
    sizes[:] = [Clearing(sizes, 2), Clearing(sizes, 3), 4]
    assert candelabra.zeros(sizes).shape == (2, 3, 4)
    sizes[:] = [Clearing(sizes, 4), Clearing(sizes, 6)]
    assert candelabra.arange(24).reshape(sizes).shape == (4, 6)
    sizes[:] = [Clearing(sizes, 5)]
    assert candelabra.ones(1, 2).expand([5, 2]).sum([Clearing(sizes, 0)]).tolist() == [5, 5]


def test_data_emptied_while_it_is_read():
    data: list = []

    class Number:
        def __float__(self) -> float:
            data.clear()
            return 1.0

        __index__ = __float__

    data[:] = [Number(), *[1.0] * 1000]
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        candelabra.tensor(data, dtype=candelabra.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: candelabra.masked_fill(candelabra.ones(3), 1.0, candelabra.ones(3)),
            "argument 'mask' .* must be Tensor, not float",
        ),
        (lambda: candelabra.ones(3).masked_fill_(1, candelabra.ones(())), "argument 'mask' .* must be Tensor, not int"),
        (lambda: candelabra.scatter(1.0, 0, candelabra.tensor([0]), candelabra.ones(1)), "must be Tensor, not float"),
        (lambda: candelabra.heaviside(candelabra.ones(3), 5), "argument 'values' .* must be Tensor, not int"),
        (lambda: candelabra.nonzero(5), "argument 'input' .* must be Tensor, not int"),
        (lambda: candelabra.argwhere([1, 2]), "argument 'input' .* must be Tensor, not list"),
    ],
)
def test_numbers_in_the_place_of_tensors(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_out_that_is_an_argument_and_must_grow():
    x = candelabra.ones(1)
    view = x[:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        candelabra.add(x, candelabra.ones(300_000), out=x)
    assert x.shape == (300_000,)
    assert x.sum().item() == 600_000
    assert view.tolist() == [1]  # its memory was not given back under it


def test_out_that_is_the_argument_whose_positions_are_asked_for():
    x = candelabra.tensor([[0, 5, 6], [7, 0, 8]])
    expected = np.argwhere(x.numpy())
    with pytest.warns(UserWarning, match="was resized"):
        candelabra.nonzero(x, out=x)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_warning_that_changes_the_arguments(monkeypatch):
    x, y, out = candelabra.ones(1000), candelabra.ones(1000), candelabra.zeros(3)

    def show(*_args, **_keywords):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            candelabra.ones(1).repeat(5)
            candelabra.add(candelabra.zeros(2, 2), 0, out=x)

    monkeypatch.setattr(warnings, "showwarning", show)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        candelabra.add(x, y, out=out)
    assert out.sum().item() == 2000


@pytest.mark.parametrize(
    "call",
    [
        lambda: candelabra.ones(1).expand(2**62, 12),
        lambda: candelabra.ones(1).expand(2**62, 2),
        lambda: candelabra.ones(1).as_strided((2**62, 5), (0, 0)),
        lambda: candelabra.empty_strided((2**62, 5), (0, 0)),
    ],
)
def test_more_elements_than_can_be_counted(call):
    with pytest.raises(RuntimeError, match="integer multiplication overflow"):
        call()


def test_empty_tensors_may_have_sizes_of_any_product():
    assert candelabra.ones(1)[:0].expand(2**62, 2**62, 0).numel() == 0
    assert candelabra.empty(2**62, 4, 0).numel() == 0


def test_huge_views_print_their_edges():
    text = repr(candelabra.ones(1).expand(2**62, 1))
    assert text.count("1.") == 6
    assert "..." in text


def test_print_options_are_checked():
    with pytest.raises(TypeError):
        candelabra.set_printoptions(precision=candelabra.ones(2))
    with pytest.raises(TypeError):
        candelabra.set_printoptions(edgeitems=1.5)
    assert repr(candelabra.tensor([1.5])) == "tensor([1.5000])"


def test_cycles_through_attributes_are_found():
    def make():
        x, y = candelabra.ones(10), candelabra.ones(10)
        x.itself = x
        x.other, y.other = y, x
        z = candelabra.ones(10)
        z.__dict__["itself"] = [z]
        w = candelabra.ones(10)
        w.__dict__ = {"itself": w}

    gc.collect()
    before = candelabra.backends.memory_statistics("cpu")["allocated"]
    for _ in range(20):
        make()
    gc.collect()
    assert candelabra.backends.memory_statistics("cpu")["allocated"] == before


def test_a_correction_without_end():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert candelabra.ones(3).var(correction=float("inf")).item() != 0


def test_memory_that_is_not_aligned():
    array = np.frombuffer(bytearray(range(64)), dtype=np.uint8)[1:33]
    doubles = array.view(np.float64)
    with pytest.raises(ValueError, match="not aligned"):
        candelabra.from_numpy(doubles)
    with pytest.raises(BufferError, match="not aligned"):
        candelabra.from_dlpack(doubles)
    np.testing.assert_array_equal(candelabra.tensor(doubles).numpy(), doubles.copy())
    assert candelabra.from_numpy(array).sum().item() == sum(range(1, 33))
    with pytest.raises(RuntimeError, match="not aligned"):
        candelabra.from_numpy(array).view(candelabra.float64)
    np.testing.assert_array_equal(candelabra.from_numpy(array).clone().view(candelabra.float64).numpy(), doubles.copy())


@pytest.mark.parametrize(
    "make", [lambda size, stride: candelabra.ones(1).as_strided(size, stride), candelabra.empty_strided]
)
def test_strides_that_nothing_can_be_multiplied_with(make):
    with pytest.raises(RuntimeError, match="overflow"):
        make((1,), (2**63 - 1,))
    with pytest.raises(RuntimeError, match="overflow"):
        make((0, 3), (1, 2**62))
    assert make((1,), (2**40,)).tolist() is not None


def test_arrays_with_strides_of_any_kind_where_they_mean_nothing():
    array = np.lib.stride_tricks.as_strided(np.ones(3), (1, 3), (-(2**40), 8))
    assert candelabra.from_numpy(array).tolist() == [[1, 1, 1]]
    assert candelabra.from_dlpack(array).sum().item() == 3


def test_functions_made_of_operators_resize_out():
    x, y = candelabra.arange(6.0).reshape(2, 3), candelabra.arange(12.0).reshape(3, 4)
    out = candelabra.empty(0)
    assert candelabra.matmul(x, y, out=out) is out
    np.testing.assert_array_equal(out.numpy(), x.numpy() @ y.numpy())
    values, indices = candelabra.empty(0), candelabra.empty(0, dtype=candelabra.int64)
    candelabra.max(y, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([3, 7, 11], [3, 3, 3])
    with pytest.warns(UserWarning, match="was resized"):
        candelabra.diag(candelabra.ones(3), out=out)
    np.testing.assert_array_equal(out.numpy(), np.eye(3))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32"):
        candelabra.matmul(x, y, out=candelabra.empty(0, dtype=candelabra.int64))
    with pytest.raises(TypeError, match="must be Tensor"):
        candelabra.matmul(x, y, out=5)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        candelabra.matmul(x, y, out=candelabra.empty(2, 4).requires_grad_())


def test_strides_of_single_windows_mean_nothing():
    x = candelabra.arange(12.0)
    window = x.unfold(0, 2, 2**62)
    assert window.tolist() == [[0, 1]]
    np.testing.assert_array_equal(window.numpy(), [[0, 1]])
    window.add_(1)
    assert x[:3].tolist() == [1, 2, 2]
