"""What writing to a tensor may mean: overlapping ones, numbers that do not fit, refusals that leave
everything as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import candelabra

Tensor = candelabra.Tensor
DEPRECATED = r"on expanded tensors is deprecated"


# ---- tensors in which several indices mean one element


def test_masked_fill_of_an_expanded_tensor_writes_what_any_row_names() -> None:
    base = candelabra.zeros(1, 3)
    mask = candelabra.tensor([[True, False, False], [False, False, True]])
    with pytest.warns(UserWarning, match="masked_fill_ " + DEPRECATED):
        returned = base.expand(2, 3).masked_fill_(mask, 5.0)
    assert base.tolist() == [[5.0, 0.0, 5.0]]
    assert returned.shape == (2, 3)
    assert base._version == 1


def test_index_fill_of_an_expanded_tensor() -> None:
    base = candelabra.zeros(3, 1)
    with pytest.warns(UserWarning, match="index_fill_ " + DEPRECATED):
        base.expand(3, 4).index_fill_(0, candelabra.tensor([0, 2]), 7)
    assert base.tolist() == [[7.0], [0.0], [7.0]]


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_of_an_expanded_tensor(accumulate: bool) -> None:
    base = candelabra.ones(1, 3)
    indices = (candelabra.tensor([0, 1]),)
    with pytest.warns(UserWarning, match="index_put_ " + DEPRECATED):
        base.expand(2, 3).index_put_(indices, candelabra.tensor(2.0), accumulate=accumulate)
    assert base.tolist() == [[5.0] * 3 if accumulate else [2.0] * 3]


def test_assignment_to_windows() -> None:
    base = candelabra.zeros(5)
    windows = base.unfold(0, 3, 1)
    with pytest.warns(UserWarning, match="masked_fill_ " + DEPRECATED):
        windows[candelabra.tensor([True, False, True])] = 1.0
    assert base.tolist() == [1.0] * 5
    with pytest.warns(UserWarning, match="index_put_ " + DEPRECATED):
        windows[candelabra.tensor([1])] = candelabra.tensor([2.0, 3.0, 4.0])
    assert base.tolist() == [1.0, 2.0, 3.0, 4.0, 1.0]


def test_the_value_that_an_expanded_tensor_is_filled_with_is_converted() -> None:
    base = candelabra.zeros(1, dtype=candelabra.int64)
    with pytest.warns(UserWarning, match=DEPRECATED):
        base.expand(3).masked_fill_(
            candelabra.tensor([True, False, True]), candelabra.tensor(3, dtype=candelabra.int32)
        )
    assert base.tolist() == [3]


def test_writing_apart_elements_of_interleaved_rows() -> None:
    """Strides of 2 and 3 meet nowhere in so few elements."""
    base = candelabra.arange(9.0)
    rows = base.as_strided((3, 2), (2, 3))
    expected = np.arange(9.0)
    rows.add_(10)
    np.add.at(expected, [0, 3, 2, 5, 4, 7], 10)
    np.testing.assert_array_equal(base.numpy(), expected)


def test_writing_to_elements_that_meet_is_refused() -> None:
    base = candelabra.zeros(9)
    for sizes, strides in (((4, 2), (1, 3)), ((2, 2), (1, 1)), ((3,), (0,)), ((2, 2, 2), (1, 2, 3))):
        with pytest.raises(
            RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
        ):
            base.as_strided(sizes, strides).add_(1)
    assert base.tolist() == [0.0] * 9


# ---- versions


@pytest.mark.parametrize(
    "make",
    [
        lambda: candelabra.zeros(3),
        lambda: candelabra.ones(2, dtype=candelabra.int32),
        lambda: candelabra.full((300,), 2.0),
        lambda: candelabra.eye(3),
        lambda: candelabra.rand(3),
        lambda: candelabra.randn(2, dtype=candelabra.complex64),
        lambda: candelabra.randint(0, 5, (2,)),
        lambda: candelabra.zeros_like(candelabra.empty(4)),
        lambda: candelabra.rand_like(candelabra.empty(4)),
        lambda: candelabra.randn_like(candelabra.empty(4)),
        lambda: candelabra.empty(2).new_full((2,), 1.0),
        lambda: candelabra.scalar_tensor(3),
        lambda: candelabra.normal(0.0, 1.0, (2,)),
    ],
)  # fmt: skip
def test_a_new_tensor_has_version_0(make: Callable[[], Tensor]) -> None:
    assert make()._version == 0
    assert make().add_(1)._version == 1


def test_out_is_counted() -> None:
    out = candelabra.empty(3)
    candelabra.zeros(3, out=out)
    assert out._version == 1
    candelabra.rand(3, out=out)
    assert out._version == 2


# ---- numbers that do not fit

WRITE: dict[str, Callable[[Tensor, Any], Any]] = {
    "fill_": lambda x, v: x.fill_(v),
    "masked_fill": lambda x, v: x.masked_fill(x > 0, v),
    "index_fill_": lambda x, v: x.index_fill_(0, candelabra.tensor([0]), v),
    "scatter_": lambda x, v: x.scatter_(0, candelabra.tensor([0]), v),
    "full": lambda x, v: candelabra.full((2,), v, dtype=x.dtype),
    "full_like": lambda x, v: candelabra.full_like(x, v),
    "new_full": lambda x, v: x.new_full((2,), v),
    "x[0]": lambda x, v: x.__setitem__(0, v),
    "x[list]": lambda x, v: x.__setitem__([0], v),
    "x[mask]": lambda x, v: x.__setitem__(x > 0, v),
    "pad": lambda x, v: candelabra.ops._constant_pad_nd(x, [1, 0], v),
}


@pytest.mark.parametrize("name", WRITE)
@pytest.mark.parametrize(
    ("dtype", "fits", "others"),
    [
        (candelabra.uint8, [255, -255, 254.9, 0.0, True], [256, -256, 255.5, -0.5, -3.0, float("nan"), float("inf")]),
        (candelabra.int8, [127, -128, 127.0, -128.0], [128, -129, 127.5, -128.5, float("nan")]),
        (candelabra.int64, [2**63 - 1, -(2.0**63)], [2.0**63, float("-inf")]),
        (candelabra.float16, [65504.0, -65504, float("inf")], [1e30, -65505, 10**6]),
        (candelabra.float32, [3.4e38, float("nan")], [3.5e38, -1e300]),
    ],
)
def test_numbers_that_do_not_fit_are_refused(
    name: str, dtype: candelabra.dtype, fits: list[Any], others: list[Any]
) -> None:
    for number in fits:
        WRITE[name](candelabra.ones(2, dtype=dtype), number)
    for number in others:
        x = candelabra.ones(2, dtype=dtype)
        if dtype is candelabra.float16 and name.startswith("x["):  # infinity, as for masks that are made with -1e9
            WRITE[name](x, float(number))
            assert abs(x[0].item()) >= 65504
            continue
        with pytest.raises(
            RuntimeError, match=r"value cannot be converted to type (u?int(8|64)_t|float|c10::Half) without overflow"
        ):
            WRITE[name](x, number)
        assert x.tolist() == [1, 1]
        assert x._version == 0


def test_numbers_to_choose_fit_the_tensor() -> None:
    x = candelabra.ones(2, dtype=candelabra.int8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        candelabra.where(x > 0, 300, x)
    assert candelabra.where(x > 0, -2.5, x).dtype is candelabra.float32
    assert candelabra.where(x > 0, 1e30, x.half()).tolist() == [float("inf")] * 2


def test_what_is_wrong_with_the_result_is_said_before_what_is_not_implemented() -> None:
    x = candelabra.ones(3, dtype=candelabra.int64)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        x.bitwise_and_(candelabra.ones(3))
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(2\)"):
        candelabra.bitwise_and(x, candelabra.ones(2))
    with pytest.raises(NotImplementedError, match="bitwise_and"):
        candelabra.bitwise_and(x, candelabra.ones(3))
    z = candelabra.ones(3, dtype=candelabra.complex64)
    with pytest.raises(NotImplementedError, match="\"lt\" not implemented for 'ComplexFloat'"):
        candelabra.lt(z, z, out=candelabra.empty(3, dtype=candelabra.bool))
    for join in (candelabra.cat, candelabra.stack):
        with pytest.raises(TypeError, match="input types can't be cast to the desired output type Long"):
            join([candelabra.ones(1), candelabra.ones(1)], out=x)
    with pytest.raises(NotImplementedError, match="\"median\" not implemented for 'ComplexFloat'"):
        candelabra.ones(2, dtype=candelabra.complex64).median(0)


def test_a_bool_tensor_takes_no_bounds_of_another_dtype() -> None:
    x = candelabra.ones(2, dtype=candelabra.bool)
    for change in (lambda: x.clamp_min_(0.5), lambda: x.clamp_max_(candelabra.tensor([0.5, 0.2]))):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Bool"):
            change()
    assert x.tolist() == [True, True]


@pytest.mark.parametrize("name", ["floor_divide_", "remainder_", "fmod_"])
def test_a_division_by_zero_writes_nothing(name: str) -> None:
    x = candelabra.arange(1, 9).reshape(2, 4)
    divisor = candelabra.tensor([[3], [0]])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(x, name)(divisor.expand(2, 4))
    assert x.flatten().tolist() == list(range(1, 9))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(x.t(), name)(candelabra.tensor([1, 0]))
    assert x.flatten().tolist() == list(range(1, 9))


# ---- other ways to write


def test_powers_of_bools_to_a_bool() -> None:
    x = candelabra.tensor([True, False])
    assert (x**True).tolist() == [True, False]
    assert (x**False).tolist() == [True, True]
    assert x.pow_(True).dtype is candelabra.bool
    with pytest.raises(NotImplementedError, match="\"pow\" not implemented for 'Bool'"):
        candelabra.pow(x, x)
    with pytest.raises(NotImplementedError, match="\"pow\" not implemented for 'Bool'"):
        candelabra.pow(True, x)


def test_copy_of_a_number() -> None:
    assert candelabra.zeros(2).copy_(3).tolist() == [3.0, 3.0]
    assert candelabra.zeros(2, dtype=candelabra.bool).copy_(2.5, True).tolist() == [True, True]
    assert candelabra.zeros(2).copy_(other=candelabra.tensor([1, 2])).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"copy_\(\): argument 'src' \(position 2\) must be Tensor, not list"):
        candelabra.zeros(2).copy_([1.0])  # type: ignore[arg-type]


def test_assignment_at_true_and_false() -> None:
    x = candelabra.zeros(2, dtype=candelabra.uint8)
    x[True] = candelabra.tensor([2.5, 3.0])
    assert x.tolist() == [2, 3]
    x[True] = 7
    assert x.tolist() == [7, 7]
    x[False] = candelabra.tensor([1.0, 2.0, 3.0])
    assert x.tolist() == [7, 7]


def test_results_follow_the_order_of_dimensions_of_an_input_with_gaps() -> None:
    x = candelabra.zeros(4, 7, 3, dtype=candelabra.int8).permute(2, 0, 1)[:, :, ::2]
    for made in (x.clone(), x.to(candelabra.float32), candelabra.zeros_like(x), candelabra.xlogy(x, 1.5)):
        assert made.stride() == (1, 12, 3)
    assert x.clone(memory_format=candelabra.contiguous_format).stride() == (16, 4, 1)


def test_transposes_of_a_tensor_without_dimensions() -> None:
    x = candelabra.tensor(1 + 2j)
    assert x.mT.item() == 1 + 2j
    assert x.mH.item() == x.H.item() == candelabra.adjoint(x).item() == 1 - 2j


def test_writes_at_indices_refuse_memory_of_their_own() -> None:
    x, index = candelabra.ones(6), candelabra.tensor([2, 1, 0])
    for call in (
        lambda: x.index_add_(0, index, x[:3]), lambda: index.index_add_(0, index, index.clone()),
        lambda: x.index_copy_(0, index, x[:3]), lambda: index.index_fill_(0, index, 0), lambda: index.index_put_((index,), index.clone()),
        lambda: x.index_put_((index,), x[0]), lambda: index.put_(index, index.clone()), lambda: x.put_(index, x[:3]),
        lambda: index.scatter_(0, index, index.clone()), lambda: x[:3].scatter_add_(0, index, x[:3]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="unsupported operation"):
            call()
    assert x.tolist() == [1] * 6 and index.tolist() == [2, 1, 0]


def test_numpy_names_of_arguments() -> None:
    assert candelabra.sub(x1=candelabra.ones(1), x2=candelabra.ones(1)).item() == 0  # type: ignore[call-arg]
