"""Views: geometry against NumPy's, the errors of PyTorch, and memory that is shared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candelabra


def cube() -> candelabra.Tensor:
    return candelabra.arange(24).reshape(2, 3, 4).clone()  # not a view itself


def same(tensor: candelabra.Tensor, array: np.ndarray) -> None:
    """Values, sizes and strides (of dimensions that are stepped along) are those of the array."""
    assert tuple(tensor.shape) == array.shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    if tensor.numel():
        assert [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1] == [
            s // array.itemsize for s, n in zip(array.strides, array.shape, strict=True) if n > 1
        ]


VIEWS = {
    "view": (lambda x: x.view(4, -1), lambda a: a.reshape(4, -1)),
    "view of none": (lambda x: x.view(24), lambda a: a.reshape(24)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute list": (lambda x: x.permute((-1, -2, 0)), lambda a: a.transpose(2, 1, 0)),
    "t": (lambda x: x[0].t(), lambda a: a[0].T),
    "unsqueeze": (lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "unsqueeze last": (lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    "squeeze": (lambda x: x[:, None, :, None].squeeze(), lambda a: a),
    "squeeze one": (lambda x: x[:, None, :, None].squeeze(1), lambda a: a[:, :, None]),
    "squeeze several": (lambda x: x[:, None, :, None].squeeze((1, -2)), lambda a: a),
    "squeeze nothing": (lambda x: x.squeeze(0), lambda a: a),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "narrow": (lambda x: x.narrow(2, 1, 2), lambda a: a[:, :, 1:3]),
    "narrow from behind": (lambda x: x.narrow(-1, -2, 2), lambda a: a[:, :, -2:]),
    "diagonal": (lambda x: x.diagonal(), lambda a: a.diagonal()),
    "diagonal above": (lambda x: x.diagonal(1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    "diagonal below": (lambda x: x.diagonal(-1, 1, 2), lambda a: a.diagonal(-1, 1, 2)),
    "diagonal far off": (lambda x: x.diagonal(9, 1, 2), lambda a: a.diagonal(9, 1, 2)),
    "unfold": (lambda x: x.unfold(2, 2, 1), lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2)),
    "unfold by steps": (
        lambda x: x.unfold(2, 2, 2),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2)[:, :, ::2],
    ),
    "movedim": (lambda x: x.movedim(0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "movedim several": (lambda x: x.movedim((0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0))),
    "unflatten": (lambda x: x.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "expand": (lambda x: x[:, :1].expand(-1, 5, 4), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4))),
    "expand in front": (lambda x: x.expand(7, 2, 3, 4), lambda a: np.broadcast_to(a, (7, 2, 3, 4))),
    "as_strided": (
        lambda x: x.as_strided((3, 2), (2, 5), 1),
        lambda a: np.lib.stride_tricks.as_strided(a.reshape(-1)[1:], (3, 2), (2 * 8, 5 * 8)),
    ),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_has_numpys_geometry_and_shares_memory(name: str) -> None:
    ours, theirs = VIEWS[name]
    x, array = cube(), np.arange(24).reshape(2, 3, 4)
    view = ours(x)
    same(view, theirs(array))
    assert view._is_view()
    assert view._base is x
    version = x._version
    x.fill_(-1)
    assert (view.numpy() == -1).all()
    assert view._version == x._version == version + 1


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_view_takes_what_strides_allow_and_nothing_else(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))
    array = np.arange(int(np.prod(sizes))).reshape(sizes)
    tensor = candelabra.arange(array.size).reshape(sizes)
    order = data.draw(st.permutations(range(len(sizes))))
    array, tensor = array.transpose(order), tensor.permute(order)
    dim = data.draw(st.integers(0, len(sizes) - 1))
    step = data.draw(st.integers(1, 2))
    key = (slice(None),) * dim + (slice(None, None, step),)
    array, tensor = array[key], tensor[key]
    left, wanted = array.size, []
    while left > 1 and len(wanted) < 4:
        factor = data.draw(st.sampled_from([d for d in range(1, left + 1) if left % d == 0]))
        wanted.append(factor)
        left //= factor
    wanted.append(left)
    try:
        expected = array.reshape(wanted, copy=False)
    except ValueError:
        with pytest.raises(RuntimeError, match=r"view size is not compatible .* Use \.reshape"):
            tensor.view(wanted)
    else:
        same(tensor.view(wanted), expected)
    np.testing.assert_array_equal(tensor.reshape(wanted).numpy(), array.reshape(wanted))


def test_views_of_empty_and_scalar_tensors() -> None:
    assert candelabra.empty(0, 3).view(3, 0).shape == (3, 0)
    assert candelabra.empty(2, 0).view(-1, 4).shape == (0, 4)
    assert candelabra.tensor(5).view(1, 1).tolist() == [[5]]
    assert candelabra.tensor([5]).view(()).item() == 5
    assert candelabra.tensor(5).transpose(0, -1).item() == 5
    assert candelabra.tensor(5).unfold(0, 1, 1).tolist() == [5]
    assert candelabra.tensor(5).squeeze(0).item() == 5
    assert candelabra.tensor(5).t().item() == 5


def test_expanded_dimensions_have_stride_0() -> None:
    assert candelabra.ones(3, 1).expand(2, 3, 4).stride() == (0, 1, 0)
    assert candelabra.ones(1).expand(0).shape == (0,)


def test_view_dtype() -> None:
    x = candelabra.tensor([1.0, -2.0, 0.5, 3.0])
    array = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
    np.testing.assert_array_equal(x.view(candelabra.int32).numpy(), array.view(np.int32))
    np.testing.assert_array_equal(x.view(candelabra.uint8).numpy(), array.view(np.uint8))
    np.testing.assert_array_equal(x.view(candelabra.float64).numpy(), array.view(np.float64))
    np.testing.assert_array_equal(x[2:].view(candelabra.int64).numpy(), array[2:].view(np.int64))
    np.testing.assert_array_equal(x.reshape(2, 2).view(candelabra.int16).numpy(), array.reshape(2, 2).view(np.int16))


def test_view_as_real_and_complex() -> None:
    z = candelabra.tensor([[1 + 2j, 3 - 4j]])
    real = candelabra.view_as_real(z)
    assert real.dtype == candelabra.float32
    assert real.tolist() == [[[1, 2], [3, -4]]]
    back = candelabra.view_as_complex(real)
    assert back.tolist() == z.tolist()
    real[0, 1, 1] = 7
    assert z[0, 1].item() == 3 + 7j


def test_detach_shares_memory_and_counter_but_is_no_view() -> None:
    x = candelabra.zeros(3)
    y = x.detach()
    before = x._version
    y[0] = 1
    assert x.tolist() == [1, 0, 0]
    assert x._version == y._version == before + 1
    assert not y._is_view()


def test_a_view_of_a_view_has_the_first_tensor_as_base() -> None:
    x = cube()
    assert x[0][1].t()._base is x


ERRORS = {
    "view numel": (lambda x: x.view(7), RuntimeError, r"shape '\[7\]' is invalid for input of size 24"),
    "view -1": (lambda x: x.view(5, -1), RuntimeError, r"shape '\[5, -1\]' is invalid for input of size 24"),
    "view two -1": (lambda x: x.view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    "view -2": (lambda x: x.view(-2, 3), RuntimeError, r"invalid shape dimension -2 at index 0 of shape \[-2, 3\]"),
    "view ambiguous": (lambda x: x[:0].view(-1, 0), RuntimeError, "cannot reshape tensor of 0 elements"),
    "view overflow": (lambda x: x.view(2**40, 2**40), RuntimeError, "is invalid for input of size 24"),
    "view strides": (lambda x: x.transpose(0, 1).view(24), RuntimeError, "view size is not compatible"),
    "transpose": (
        lambda x: x.transpose(0, 3),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)",
    ),
    "permute short": (lambda x: x.permute(0, 1), RuntimeError, r"input.dim\(\) = 3 is not equal to len\(dims\) = 2"),
    "permute twice": (lambda x: x.permute(0, 1, 1), RuntimeError, "duplicate dims are not allowed"),
    "t": (lambda x: x.t(), RuntimeError, "expects a tensor with <= 2 dimensions, but self is 3D"),
    "select": (
        lambda x: x.select(0, 5),
        IndexError,
        r"select\(\): index 5 out of range for tensor of size \[2, 3, 4\] at dimension 0",
    ),
    "select scalar": (lambda x: x[0, 0, 0].select(0, 0), IndexError, "cannot be applied to a 0-dim tensor"),
    "narrow": (lambda x: x.narrow(0, 1, 2), RuntimeError, r"start \(1\) \+ length \(2\) exceeds dimension size \(2\)"),
    "narrow start": (lambda x: x.narrow(0, 7, 0), IndexError, "start out of range"),
    "narrow length": (lambda x: x.narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
    "diagonal": (lambda x: x.diagonal(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
    "unfold size": (
        lambda x: x.unfold(0, 5, 1),
        RuntimeError,
        "maximum size for tensor at dimension 0 is 2 but size is 5",
    ),
    "unfold step": (lambda x: x.unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
    "movedim": (lambda x: x.movedim((0, 0), (0, 1)), RuntimeError, "repeated dim in `source`"),
    "movedim lengths": (lambda x: x.movedim((0, 1), (0,)), RuntimeError, "Invalid source or destination dims"),
    "unflatten": (lambda x: x.unflatten(2, (3, 2)), RuntimeError, "don't multiply up to the size of dim 2"),
    "unflatten none": (lambda x: x.unflatten(2, ()), RuntimeError, "sizes must be non-empty"),
    "expand": (
        lambda x: x.expand(2, 3, 5),
        RuntimeError,
        r"The expanded size of the tensor \(5\) must match the existing size \(4\)",
    ),
    "expand -1": (
        lambda x: x.expand(-1, 2, 3, 4),
        RuntimeError,
        "isn't allowed in a leading, non-existing dimension 0",
    ),
    "expand fewer": (lambda x: x.expand(2), RuntimeError, "must be greater or equal to the number of dimensions"),
    "as_strided": (lambda x: x.as_strided((100,), (1,)), RuntimeError, "out of bounds for storage of size 192"),
    "as_strided offset": (lambda x: x.as_strided((2,), (1,), 23), RuntimeError, "out of bounds for storage"),
    "as_strided negative": (lambda x: x.as_strided((2,), (-1,)), RuntimeError, "Negative strides are not supported"),
    "as_strided lengths": (
        lambda x: x.as_strided((2,), (1, 1)),
        RuntimeError,
        "mismatch in length of strides and shape",
    ),
    "as_strided huge": (lambda x: x.as_strided((2**40, 2**40), (2**40, 1)), RuntimeError, "overflow"),
    "view dtype": (
        lambda x: x.to(candelabra.float32)[:, :, :3].view(candelabra.float64),
        RuntimeError,
        "must be divisible by 2",
    ),
    "view dtype stride": (lambda x: x[:, :, ::2].view(candelabra.int32), RuntimeError, r"self.stride\(-1\) must be 1"),
    "view_as_real": (lambda x: candelabra.view_as_real(x), RuntimeError, "only supported for complex tensors"),
    "view_as_complex": (lambda x: candelabra.view_as_complex(x), RuntimeError, "only supported for"),
    "view_as_complex size": (lambda x: candelabra.view_as_complex(x.float()), RuntimeError, "last dimension of size 2"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call(cube())


def test_size_is_a_tuple_that_keeps_its_type() -> None:
    import pickle

    size = candelabra.ones(2, 3, 4).shape
    assert type(size) is candelabra.Size
    assert size == (2, 3, 4)
    assert hash(size) == hash((2, 3, 4))
    assert repr(size) == "candelabra.Size([2, 3, 4])"
    assert size.numel() == 24
    assert candelabra.Size().numel() == 1
    for made in (
        size[1:],
        size + (1,),
        (1,) + size,
        size * 2,
        size[::-1],
        pickle.loads(pickle.dumps(size)),
        candelabra.Size([5, 6]),
    ):
        assert type(made) is candelabra.Size
    assert size + (1,) == (2, 3, 4, 1)
    assert (1,) + size == (1, 2, 3, 4)
    assert size[1] == 3
    assert candelabra.Size([np.int64(2)]) == (2,)
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        candelabra.Size([1, 2.5])
    with pytest.raises(TypeError):
        size + [1]


@settings(max_examples=400, deadline=None)
@given(st.data(), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_in_place_with_another_view_of_the_same_memory(data: st.DataObject, sizes: list[int]) -> None:
    """Exactly where the two views overlap in part, the operation is refused."""
    array = np.arange(60.0)
    tensor = candelabra.tensor(array)

    def view() -> tuple[candelabra.Tensor, np.ndarray]:
        # strides that step over what the smaller ones reach, so that no view overlaps itself
        strides, reach = [], 0
        for size in reversed(sizes):
            strides.insert(0, reach + data.draw(st.integers(1, 3)))
            reach += strides[0] * (size - 1)
        offset = data.draw(st.integers(0, max(0, 59 - reach)))
        if offset + reach > 59:
            return tensor[:0], array[:0]
        return (
            tensor.as_strided(sizes, strides, offset),
            np.lib.stride_tricks.as_strided(array[offset:], sizes, [8 * s for s in strides]),
        )

    (ours, theirs), (other, other_array) = view(), view()
    if ours.numel() == 0 or other.numel() == 0:
        return
    same = theirs.ctypes.data == other_array.ctypes.data and all(
        s == t for s, t, n in zip(theirs.strides, other_array.strides, sizes, strict=True) if n > 1
    )
    if np.shares_memory(theirs, other_array) and not same:
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            ours += other
    else:
        ours += other
        theirs += other_array
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_exchanging_dimensions_by_pytorchs_keywords():
    x = candelabra.arange(6).view(2, 3)
    expected = x.numpy().T.tolist()
    assert (
        x.transpose(dim0=0, dim1=1).tolist()
        == x.swapdims(dim0=0, dim1=1).tolist()
        == x.swapaxes(axis0=0, axis1=1).tolist()
        == expected
    )
    assert x.clone().transpose_(dim0=0, dim1=1).tolist() == x.clone().swapaxes_(axis0=0, axis1=1).tolist() == expected


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:, ::2],
        lambda x: x.t()[2],
        lambda x: x.expand(2, 3, 4),
        lambda x: x.view(candelabra.int32),
        candelabra.view_as_complex,
    ],
)
def test_the_same_view_of_another_base(view):
    base, other = candelabra.arange(24.0).reshape(3, 4, 2)[..., 0].clone(), candelabra.arange(12.0).reshape(3, 4) * 3
    if view is candelabra.view_as_complex:
        base, other = (x.reshape(3, 2, 2) for x in (base.clone(), other.clone()))
        base, other = base.clone(), other.clone()
    made = view(base)._view_func(other)
    assert candelabra.equal(made, view(other))
    assert made._base is other


def test_pairs_of_another_base():
    base, other = (candelabra.ones(3, dtype=candelabra.complex64) * n for n in (1, 2))
    made = candelabra.view_as_real(base)[1:]._view_func_unsafe(other)
    assert made.tolist() == [[2, 0], [2, 0]]


def test_no_view_of_another_base():
    with pytest.raises(RuntimeError, match="is no view"):
        candelabra.ones(2)._view_func(candelabra.ones(2))
    with pytest.raises(RuntimeError, match="expected a base of sizes"):
        candelabra.ones(2)[1:]._view_func(candelabra.ones(3))
