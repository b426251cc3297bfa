"""``*_copy``: what the view is, in memory of its own; and copies with a part replaced."""

import pytest

import candelabra


def grid():
    return candelabra.arange(12.0).view(3, 4)


CASES = [
    ("alias", (), lambda x: x),
    ("as_strided", ((2, 2), (4, 1), 1), lambda x: x[:2, 1:3]),
    ("detach", (), lambda x: x),
    ("diagonal", (1,), lambda x: x.diagonal(1)),
    ("expand", ((2, 3, 4),), lambda x: x.expand(2, 3, 4)),
    ("narrow", (1, 1, 2), lambda x: x[:, 1:3]),
    ("permute", ((1, 0),), lambda x: x.T),
    ("select", (0, 2), lambda x: x[2]),
    ("slice", (1, 0, 4, 2), lambda x: x[:, ::2]),
    ("squeeze", (), lambda x: x),
    ("t", (), lambda x: x.T),
    ("transpose", (0, 1), lambda x: x.T),
    ("unfold", (1, 2, 2), lambda x: x.unfold(1, 2, 2)),
    ("unsqueeze", (0,), lambda x: x[None]),
    ("view", ((4, 3),), lambda x: x.view(4, 3)),
]


@pytest.mark.parametrize(("name", "arguments", "view"), CASES, ids=[case[0] for case in CASES])
def test_copy(name, arguments, view):
    x = grid()
    copied = getattr(candelabra, f"{name}_copy")
    made = copied(x, *arguments)
    assert made.tolist() == view(x).tolist()
    assert made.is_contiguous() and made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    out = candelabra.empty(0)
    assert copied(x, *arguments, out=out) is out
    assert out.tolist() == view(x).tolist()


@pytest.mark.parametrize(("name", "arguments"), [("split", (2,)), ("split_with_sizes", ([1, 2],)), ("unbind", ())])
def test_copies(name, arguments):
    x = grid()
    copied, parts = getattr(candelabra, f"{name}_copy"), getattr(x, name)(*arguments)
    made = copied(x, *arguments)
    assert [part.tolist() for part in made] == [part.tolist() for part in parts]
    assert all(part.untyped_storage().data_ptr() != x.untyped_storage().data_ptr() for part in made)
    out = [candelabra.empty(0) for _ in parts]
    copied(x, *arguments, out=out)
    assert [part.tolist() for part in out] == [part.tolist() for part in parts]
    with pytest.raises(RuntimeError, match=f"{name}_copy.*expected an out= argument of length {len(parts)}"):
        copied(x, *arguments, out=out[:1])


def test_complex_views():
    pairs = candelabra.tensor([[1.0, 2.0]])
    assert candelabra.view_as_complex_copy(pairs).tolist() == [1 + 2j]
    assert candelabra.view_as_real_copy(candelabra.tensor([1 + 2j])).tolist() == [[1.0, 2.0]]


def test_as_strided_scatter():
    x = candelabra.zeros(2, 3).t()
    made = candelabra.as_strided_scatter(x, candelabra.ones(2), (2,), (4,), 1)
    assert made.stride() == x.stride()
    assert made.T.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert x.sum().item() == 0
    with pytest.raises(RuntimeError, match="expected src to have a size equal to the slice"):
        candelabra.as_strided_scatter(x, candelabra.ones(3), (2,), (4,))


def test_as_strided_in_place_and_resize():
    x = grid()
    assert x.as_strided_((2,), (5,)) is x
    assert x.tolist() == [0.0, 5.0]
    assert candelabra.zeros(2).resize_as_(grid()).shape == (3, 4)


def test_narrow_copy_errors():
    with pytest.raises(RuntimeError, match="no dimension 2"):
        candelabra.narrow_copy(grid(), 2, 0, 1)
    with pytest.raises(IndexError):
        candelabra.narrow_copy(grid(), -3, 0, 1)
    with pytest.raises(RuntimeError, match="exceeds"):
        candelabra.narrow_copy(grid(), 0, 1, 5)


def test_slice_inverse_shares_memory():
    x = grid()
    whole = candelabra.slice_inverse(x[1:], x, 0, 1)
    assert whole.tolist() == x.tolist() and whole.data_ptr() == x.data_ptr()


def test_unsafe_splits():
    x = candelabra.arange(5)
    assert [part.tolist() for part in candelabra.unsafe_split(x, 2)] == [[0, 1], [2, 3], [4]]
    assert [part.tolist() for part in x.unsafe_split_with_sizes([1, 4])] == [[0], [1, 2, 3, 4]]
    assert [part.tolist() for part in x.unsafe_chunk(2)] == [[0, 1, 2], [3, 4]]
