"""Memory formats: the order in which elements lie, asked for, kept and told."""

import copy
import pickle

import numpy
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra

FORMATS = {4: candelabra.channels_last, 5: candelabra.channels_last_3d}
STRIDES = {4: (60, 1, 15, 3), 5: (360, 1, 90, 18, 3)}


@pytest.mark.parametrize("ndim", FORMATS)
def test_channels_last(ndim):
    wanted = FORMATS[ndim]
    a = numpy.arange(numpy.prod((2, 3, 4, 5, 6)[:ndim])).reshape((2, 3, 4, 5, 6)[:ndim])
    x = candelabra.from_numpy(a)
    assert not x.is_contiguous(memory_format=wanted)
    for made in (
        x.contiguous(memory_format=wanted), x.to(memory_format=wanted), x.clone(memory_format=wanted),
        x.double(memory_format=wanted), x.contiguous(memory_format=wanted).clone(),
    ):  # fmt: skip
        assert made.stride() == STRIDES[ndim] and made.is_contiguous(memory_format=wanted) and not made.is_contiguous()
        numpy.testing.assert_array_equal(made.numpy(), a)
        assert made.dim_order() == (0, *range(2, ndim), 1)
        assert made.contiguous(memory_format=wanted) is made and made.to(memory_format=wanted) is made
    for made in (
        candelabra.empty(x.shape, memory_format=wanted), candelabra.empty_like(x, memory_format=wanted),
        candelabra.arange(x.numel()).resize_(x.shape, memory_format=wanted), candelabra.zeros_like(x.to(memory_format=wanted)),
    ):  # fmt: skip
        assert made.stride() == STRIDES[ndim]
    assert x.to(memory_format=wanted).to(memory_format=candelabra.contiguous_format).is_contiguous()


@pytest.mark.parametrize("ndim", FORMATS)
def test_rank_is_checked(ndim):
    for call in (
        lambda x, wanted: x.contiguous(memory_format=wanted), lambda x, wanted: x.clone(memory_format=wanted),
        lambda x, wanted: candelabra.empty(x.shape, memory_format=wanted), lambda x, wanted: x.resize_(2, 3, memory_format=wanted),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=f"required rank {ndim} tensor to use channels_last"):
            call(candelabra.ones(2, 3), FORMATS[ndim])
    assert candelabra.ones(2, 3).is_contiguous(memory_format=FORMATS[ndim]) is False


def test_one_channel_is_in_both_orders():
    x = candelabra.ones(2, 1, 4, 5)
    assert x.is_contiguous() and x.is_contiguous(memory_format=candelabra.channels_last)
    assert x.contiguous(memory_format=candelabra.channels_last) is x
    assert x.to(memory_format=candelabra.channels_last).stride() == (20, 1, 5, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        x.dim_order(ambiguity_check=[candelabra.channels_last, candelabra.contiguous_format])


def test_strides_of_no_format_stay_where_contiguous_is_asked_of_to():
    x = candelabra.ones(2, 3).t()
    assert x.to(memory_format=candelabra.contiguous_format) is x
    assert x.contiguous().is_contiguous()


@pytest.mark.parametrize("name", ["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"])
def test_formats_are_single_objects(name):
    wanted = getattr(candelabra, name)
    assert repr(wanted) == f"candelabra.{name}" and isinstance(wanted, candelabra.memory_format)
    assert pickle.loads(pickle.dumps(wanted)) is wanted and copy.deepcopy(wanted) is wanted


def test_convolution_of_volumes_in_channels_last():
    pytest.importorskip("candelabra.nn", reason="needs candelabra-nn")
    rng = numpy.random.default_rng(0)
    x, w = (candelabra.from_numpy(rng.standard_normal(shape)) for shape in ((2, 3, 4, 4, 4), (5, 3, 2, 2, 2)))
    plain = candelabra.conv3d(x, w)
    turned = candelabra.conv3d(
        x.to(memory_format=candelabra.channels_last_3d), w.to(memory_format=candelabra.channels_last_3d)
    )
    windows = numpy.lib.stride_tricks.sliding_window_view(x.numpy(), (2, 2, 2), axis=(2, 3, 4))
    expected = numpy.einsum("ncxyzijk,ocijk->noxyz", windows, w.numpy())
    numpy.testing.assert_allclose(plain.numpy(), expected, atol=1e-12)
    numpy.testing.assert_allclose(turned.numpy(), expected, atol=1e-12)


def test_channels_stay_last_where_images_are_joined_sorted_and_indexed():
    a = numpy.arange(2 * 6 * 4 * 5).reshape(2, 6, 4, 5)
    x = candelabra.from_numpy(a).to(memory_format=candelabra.channels_last)
    last = (120, 1, 30, 6)
    for dim in range(4):
        rolled = x.roll(1, dim)
        assert rolled.stride() == last
        numpy.testing.assert_array_equal(rolled.numpy(), numpy.roll(a, 1, dim))
        ordered = x.sort(dim, descending=True)
        assert ordered.values.stride() == ordered.indices.stride() == last
        numpy.testing.assert_array_equal(ordered.values.numpy(), numpy.flip(numpy.sort(a, dim), dim))
        assert x.index_fill(dim, candelabra.tensor([0]), 1).stride() == last
        stacked = candelabra.stack((x, x + 1), dim)
        assert stacked.stride() == candelabra.cat((x, x), dim).unflatten(dim, (2, -1)).stride()
        numpy.testing.assert_array_equal(stacked.numpy(), numpy.stack((a, a + 1), dim))
    rows = x[candelabra.tensor([1, 0, 1])]
    assert rows.stride() == last
    numpy.testing.assert_array_equal(rows.numpy(), a[[1, 0, 1]])
    assert candelabra.cat((x[:, :, 1:], x[:, :, :1]), 2).stride() == last
    assert candelabra.cat((x, x.contiguous())).is_contiguous()


def test_results_of_indexing_lie_as_what_is_indexed():
    a = numpy.arange(48).reshape(6, 8)
    x, rows = candelabra.from_numpy(a), numpy.array([[0, 5, 2], [3, 1, 1]])
    found = x[candelabra.from_numpy(numpy.ascontiguousarray(rows.T)).t()]
    assert found.stride() == (8, 16, 1)
    numpy.testing.assert_array_equal(found.numpy(), a[rows])
    turned = x.t()[:, candelabra.tensor([4, 0])]
    numpy.testing.assert_array_equal(turned.numpy(), a.T[:, [4, 0]])
    assert x.t().sort(0).values.stride() == (1, 8)
