"""Test 3-D layers, interpolation, fold and unpooling against formulas in NumPy and SciPy."""

import itertools
import math

import numpy
import pytest
import scipy.ndimage

import candelabra
from candelabra.nn import functional as F

RANDOM = numpy.random.default_rng(4)


def close(ours, theirs, tolerance=1e-9):
    assert tuple(ours.shape) == theirs.shape
    numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)


def convolved(x, w, stride, padding, dilation):
    x = numpy.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    kernel = w.shape[2:]
    sizes = [(x.shape[2 + i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(3)]
    out = numpy.zeros((x.shape[0], w.shape[0], *sizes))
    for place in itertools.product(*map(range, kernel)):
        part = tuple(
            slice(place[i] * dilation[i], place[i] * dilation[i] + (sizes[i] - 1) * stride[i] + 1, stride[i])
            for i in range(3)
        )
        out += numpy.einsum("ncdhw,oc->nodhw", x[(..., *part)], w[(..., *place)])
    return out


@pytest.mark.parametrize(
    ("stride", "padding", "dilation"),
    [((1, 1, 1), (0, 0, 0), (1, 1, 1)), ((2, 1, 3), (1, 2, 0), (1, 2, 1)), ((1, 2, 1), (2, 1, 1), (3, 1, 1))],
)
def test_conv3d(stride, padding, dilation):
    x, w, b = (
        RANDOM.standard_normal((2, 3, 7, 6, 8)),
        RANDOM.standard_normal((4, 3, 2, 3, 2)),
        RANDOM.standard_normal(4),
    )
    expected = convolved(x, w, stride, padding, dilation) + b.reshape(1, -1, 1, 1, 1)
    made = F.conv3d(candelabra.tensor(x), candelabra.tensor(w), candelabra.tensor(b), stride, padding, dilation)
    close(made, expected)
    close(
        F.conv3d(candelabra.tensor(x[0]), candelabra.tensor(w), None, stride, padding, dilation),
        expected[0] - b.reshape(-1, 1, 1, 1),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_conv3d_keeps_the_order_of_its_input(dtype):
    x, w, grad = (
        RANDOM.standard_normal((2, 3, 5, 4, 6)),
        RANDOM.standard_normal((4, 3, 2, 3, 2)),
        RANDOM.standard_normal((2, 4, 4, 2, 5)),
    )
    wide, last = getattr(candelabra, dtype), candelabra.channels_last_3d
    image, weight, back = (candelabra.tensor(values).to(wide) for values in (x, w, grad))
    expected = convolved(image.double().numpy(), weight.double().numpy(), (1, 1, 1), (0, 0, 0), (1, 1, 1))
    bound = {"float64": 1e-9, "float32": 1e-4, "bfloat16": 0.1}[dtype]
    for first, second in ((last, None), (None, last), (last, last)):
        a = image.to(memory_format=first) if first else image.clone()
        b = weight.to(memory_format=second) if second else weight.clone()
        made = F.conv3d(a, b)
        assert made.is_contiguous(memory_format=last)
        close(made.double(), expected, bound)
        of_image = candelabra.ops.convolution_backward_input(back, b, image.shape, [1] * 3, [0] * 3, [1] * 3, 1)
        of_weight = candelabra.ops.convolution_backward_weight(back, a, weight.shape, [1] * 3, [0] * 3, [1] * 3, 1)
        assert of_image.is_contiguous(memory_format=last) == (second is last)
        turned = numpy.pad(back.double().numpy(), [(0, 0), (0, 0), (1, 1), (2, 2), (1, 1)])
        flipped = weight.double().numpy()[:, :, ::-1, ::-1, ::-1].transpose(1, 0, 2, 3, 4)
        close(of_image.double(), convolved(turned, flipped, (1, 1, 1), (0, 0, 0), (1, 1, 1)), bound)
        pixels = image.double().numpy().transpose(1, 0, 2, 3, 4)
        by_weight = convolved(pixels, back.double().numpy().transpose(1, 0, 2, 3, 4), (1, 1, 1), (0, 0, 0), (1, 1, 1))
        close(of_weight.double(), by_weight.transpose(1, 0, 2, 3, 4), 2 * bound)


def test_conv3d_groups_and_same():
    x, w = RANDOM.standard_normal((1, 4, 4, 4, 4)), RANDOM.standard_normal((2, 2, 2, 3, 2))
    made = F.conv3d(candelabra.tensor(x), candelabra.tensor(w), padding="same", groups=2)
    halves = [
        convolved(
            numpy.pad(x[:, 2 * g : 2 * g + 2], [(0, 0), (0, 0), (0, 1), (1, 1), (0, 1)]),
            w[g : g + 1],
            (1, 1, 1),
            (0, 0, 0),
            (1, 1, 1),
        )
        for g in range(2)
    ]
    close(made, numpy.concatenate(halves, 1))


@pytest.mark.parametrize(
    ("stride", "padding", "extra", "dilation"), [(1, 0, 0, 1), (2, 1, 1, 1), (2, 1, 2, 3), (3, 0, 2, 1)]
)
def test_conv_transpose3d_is_the_adjoint(stride, padding, extra, dilation):
    x, w = RANDOM.standard_normal((2, 3, 3, 2, 4)), RANDOM.standard_normal((3, 2, 2, 3, 2))
    made = F.conv_transpose3d(candelabra.tensor(x), candelabra.tensor(w), None, stride, padding, extra, 1, dilation)
    y = RANDOM.standard_normal(tuple(made.shape))
    back = convolved(y, w, (stride,) * 3, (padding,) * 3, (dilation,) * 3)[:, :, :3, :2, :4]
    numpy.testing.assert_allclose((made.numpy() * y).sum(), (x * back).sum(), rtol=1e-9)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(2, None, 0, 1), ((3, 2, 2), (2, 1, 2), (1, 1, 0), 1), (2, 2, 1, (2, 1, 2))],
)
def test_max_pool3d(kernel, stride, padding, dilation, ceil_mode):
    x = RANDOM.standard_normal((2, 3, 5, 6, 7))
    values, indices = F.max_pool3d(
        candelabra.tensor(x), kernel, stride, padding, dilation, ceil_mode, return_indices=True
    )
    flat = x.reshape(2, 3, -1)
    close(values, numpy.take_along_axis(flat, indices.numpy().reshape(2, 3, -1), 2).reshape(tuple(values.shape)))
    ks, ps, ds = ((v,) * 3 if isinstance(v, int) else v for v in (kernel, padding, dilation))
    ss = ks if stride is None else (stride,) * 3 if isinstance(stride, int) else stride
    for place in itertools.product(*map(range, values.shape[2:])):
        grid = [[p * ss[i] - ps[i] + k * ds[i] for k in range(ks[i])] for i, p in enumerate(place)]
        inside = [[g for g in line if 0 <= g < x.shape[2 + i]] for i, line in enumerate(grid)]
        expected = x[:, :, inside[0]][:, :, :, inside[1]][:, :, :, :, inside[2]].max((2, 3, 4))
        numpy.testing.assert_array_equal(values.numpy()[(slice(None), slice(None), *place)], expected)


@pytest.mark.parametrize("count", [False, True])
def test_avg_pool3d(count):
    x = RANDOM.standard_normal((1, 2, 5, 4, 6))
    made = F.avg_pool3d(candelabra.tensor(x), (3, 2, 3), (2, 2, 1), (1, 1, 1), count_include_pad=count)
    for place in itertools.product(*map(range, made.shape[2:])):
        parts = [range(p * s - 1, p * s - 1 + k) for p, s, k in zip(place, (2, 2, 1), (3, 2, 3), strict=True)]
        inside = [[g for g in part if 0 <= g < n] for part, n in zip(parts, (5, 4, 6), strict=True)]
        total = x[:, :, inside[0]][:, :, :, inside[1]][:, :, :, :, inside[2]].sum((2, 3, 4))
        number = (
            numpy.prod([len([g for g in part if g < n + 1]) for part, n in zip(parts, (5, 4, 6), strict=True)])
            if count
            else numpy.prod([len(i) for i in inside])
        )
        numpy.testing.assert_allclose(made.numpy()[(slice(None), slice(None), *place)], total / number, rtol=1e-12)
    override = F.avg_pool3d(candelabra.tensor(x), 2, divisor_override=3)
    close(override, F.avg_pool3d(candelabra.tensor(x), 2).numpy() * 8 / 3)


def test_adaptive_pools():
    x = RANDOM.standard_normal((2, 3, 5, 4, 7))
    size = (2, 3, 4)
    mean, (largest, indices) = (
        F.adaptive_avg_pool3d(candelabra.tensor(x), size),
        F.adaptive_max_pool3d(candelabra.tensor(x), size, True),
    )
    for place in itertools.product(*map(range, size)):
        window = tuple(
            slice(p * n // m, -(-(p + 1) * n // m)) for p, n, m in zip(place, x.shape[2:], size, strict=True)
        )
        at = (slice(None), slice(None), *place)
        numpy.testing.assert_allclose(mean.numpy()[at], x[(..., *window)].mean((2, 3, 4)), rtol=1e-12)
        numpy.testing.assert_array_equal(largest.numpy()[at], x[(..., *window)].max((2, 3, 4)))
    flat = numpy.take_along_axis(x.reshape(2, 3, -1), indices.numpy().reshape(2, 3, -1), 2)
    assert numpy.array_equal(flat.reshape(tuple(largest.shape)), largest.numpy())


def test_unpool_puts_maxima_back():
    for dims, pool, unpool in (
        (1, F.max_pool1d, F.max_unpool1d),
        (2, F.max_pool2d, F.max_unpool2d),
        (3, F.max_pool3d, F.max_unpool3d),
    ):
        x = candelabra.tensor(RANDOM.standard_normal((2, 2) + (6,) * dims))
        values, indices = pool(x, 2, return_indices=True)
        back = unpool(values, indices, 2)
        assert back.shape == x.shape
        assert (((back == x) | (back == 0)).all()) and back.ne(0).sum() == values.numel()
        close(unpool(values, indices, 2, output_size=(2, 2) + (6,) * dims), back.numpy())
        with pytest.raises(RuntimeError, match="Found an invalid max index"):
            unpool(values, indices + 6**dims, 2)


def test_unpooling_refuses_negative_indices():
    values, indices = F.max_pool2d(candelabra.tensor(RANDOM.standard_normal((2, 3, 6, 8))), 2, return_indices=True)
    with pytest.raises(RuntimeError, match="Found an invalid max index: -1"):
        F.max_unpool2d(values, indices - indices.amin() - 1, 2)


def fractional(x, kernel, output, samples):
    """Apply fractional max pooling with Graham's sequences. NaN is the largest value, and the last
    NaN wins.
    """
    dims, planes = len(kernel), x.shape[:2]
    values, places = numpy.zeros((*planes, *output)), numpy.zeros((*planes, *output), int)
    numbers = numpy.arange(math.prod(x.shape[2:])).reshape(x.shape[2:])
    for plane in numpy.ndindex(*planes):
        begins = []
        for i in range(dims):
            sample, last = samples[(*plane, 1 - i if dims == 2 else i)], x.shape[2 + i] - kernel[i]
            alpha = last / (output[i] - 1)
            begins.append([int((k + sample) * alpha) - int(sample * alpha) for k in range(output[i] - 1)] + [last])
        for at in numpy.ndindex(*output):
            window = tuple(slice(begins[i][at[i]], begins[i][at[i]] + kernel[i]) for i in range(dims))
            part, where = x[plane][window].ravel(), numbers[window].ravel()
            nans = numpy.flatnonzero(numpy.isnan(part))
            chosen = nans[-1] if len(nans) else part.argmax()
            values[(*plane, *at)], places[(*plane, *at)] = part[chosen], where[chosen]
    return values, places


@pytest.mark.parametrize(
    ("sizes", "kernel", "output"),
    [((7, 9), (2, 3), (4, 5)), ((8, 8), (1, 1), (5, 3)), ((6, 7, 8), (2, 3, 2), (3, 2, 4))],
)
def test_fractional_pools_of_given_samples(sizes, kernel, output):
    pool = F.fractional_max_pool2d if len(sizes) == 2 else F.fractional_max_pool3d
    x, samples = RANDOM.standard_normal((2, 3, *sizes)), RANDOM.random((2, 3, len(sizes)))
    x[0, 0, 2:4, 3:5] = numpy.nan
    x[1, 1] = -numpy.inf
    made, at = pool(
        candelabra.tensor(x), kernel, output, return_indices=True, _random_samples=candelabra.tensor(samples)
    )
    values, places = fractional(x, kernel, output, samples)
    numpy.testing.assert_array_equal(made.numpy(), values)
    numpy.testing.assert_array_equal(at.numpy(), places)


def test_fractional_pools_take_maxima_of_windows():
    x = RANDOM.standard_normal((2, 3, 7, 9))
    values, indices = F.fractional_max_pool2d(candelabra.tensor(x), (2, 3), (4, 5), return_indices=True)
    assert values.shape == (2, 3, 4, 5)
    assert numpy.array_equal(
        numpy.take_along_axis(x.reshape(2, 3, -1), indices.numpy().reshape(2, 3, -1), 2).reshape(2, 3, 4, 5),
        values.numpy(),
    )
    with pytest.raises(ValueError, match="requires specifying either an output_size or an output_ratio"):
        F.fractional_max_pool2d(candelabra.tensor(x), 2)


def test_interpolation_of_a_plane_is_exact():
    """Interpolation of a plane a + b y + c x is exact in the interior."""
    y, x = numpy.mgrid[0:12, 0:10].astype(float)
    image = candelabra.tensor(1 + 2 * y - 3 * x).reshape(1, 1, 12, 10)
    made = F.interpolate(image, size=(24, 25), mode="bilinear")[0, 0, 5:-5, 6:-6].numpy()
    rows, columns = (numpy.arange(24) + 0.5) * 12 / 24 - 0.5, (numpy.arange(25) + 0.5) * 10 / 25 - 0.5
    expected = 1 + 2 * rows[:, None] - 3 * columns
    numpy.testing.assert_allclose(made, expected[5:-5, 6:-6], rtol=1e-12, atol=1e-12)


def cubic(distance, a=-0.75):
    """Compute Keys' cubic kernel."""
    d = numpy.abs(distance)
    near, far = (a + 2) * d**3 - (a + 3) * d**2 + 1, a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return numpy.where(d <= 1, near, numpy.where(d < 2, far, 0))


def cubic_matrix(old, new):
    made = numpy.zeros((new, old))
    for i in range(new):
        place = (i + 0.5) * old / new - 0.5
        for j in range(int(numpy.floor(place)) - 1, int(numpy.floor(place)) + 3):
            made[i, min(max(j, 0), old - 1)] += cubic(place - j)
    return made


def test_cubic_interpolation():
    x = RANDOM.standard_normal((2, 3, 5, 7))
    made = F.interpolate(candelabra.tensor(x), size=(9, 4), mode="bicubic")
    close(made, cubic_matrix(5, 9) @ x @ cubic_matrix(7, 4).T)


def test_interpolation_with_aligned_corners_is_that_of_scipy():
    x = RANDOM.standard_normal((5, 4, 6))
    made = F.interpolate(candelabra.tensor(x)[None, None], size=(9, 7, 11), mode="trilinear", align_corners=True)[0, 0]
    places = numpy.meshgrid(
        *[numpy.linspace(0, n - 1, m) for n, m in zip(x.shape, (9, 7, 11), strict=True)], indexing="ij"
    )
    close(made, scipy.ndimage.map_coordinates(x, places, order=1, mode="nearest"))


def test_nearest_and_area():
    x = candelabra.arange(6.0).reshape(1, 1, 6)
    assert F.interpolate(x, size=3).flatten().tolist() == [0.0, 2.0, 4.0]
    assert F.interpolate(x, size=3, mode="nearest-exact").flatten().tolist() == [1.0, 3.0, 5.0]
    assert F.interpolate(x, size=3, mode="area").flatten().tolist() == [0.5, 2.5, 4.5]
    assert F.interpolate(x, scale_factor=2).flatten().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_antialiased_weights_sum_to_one():
    ones = candelabra.ones(1, 2, 13, 17, dtype=candelabra.float64)
    for mode in ("bilinear", "bicubic"):
        close(F.interpolate(ones, size=(5, 4), mode=mode, antialias=True), numpy.ones((1, 2, 5, 4)))


@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_grid_sample_is_map_coordinates(padding):
    x = RANDOM.standard_normal((5, 6))
    grid = RANDOM.uniform(-1.3, 1.3, (1, 7, 8, 2))
    made = F.grid_sample(
        candelabra.tensor(x)[None, None], candelabra.tensor(grid), padding_mode=padding, align_corners=True
    )[0, 0]
    places = [(grid[0, ..., 1] + 1) * 2, (grid[0, ..., 0] + 1) * 2.5]
    padded = numpy.pad(x, 2, mode="constant" if padding == "zeros" else "edge")
    expected = scipy.ndimage.map_coordinates(padded, [p + 2 for p in places], order=1)
    close(made, expected)


def test_affine_grid_and_sample_shift_an_image():
    image = candelabra.arange(16.0).reshape(1, 1, 4, 4)
    theta = candelabra.tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]])
    made = F.grid_sample(image, F.affine_grid(theta, (1, 1, 4, 4)))
    assert made[0, 0, 0].tolist() == [1.0, 2.0, 3.0, 0.0]


@pytest.mark.parametrize(("kernel", "dilation", "padding", "stride"), [(2, 1, 0, 1), ((2, 3), (2, 1), (1, 2), (2, 1))])
def test_fold_is_the_adjoint_of_unfold(kernel, dilation, padding, stride):
    x = RANDOM.standard_normal((2, 3, 6, 7))
    columns = F.unfold(candelabra.tensor(x), kernel, dilation, padding, stride)
    y = RANDOM.standard_normal(tuple(columns.shape))
    back = F.fold(candelabra.tensor(y), (6, 7), kernel, dilation, padding, stride)
    numpy.testing.assert_allclose((columns.numpy() * y).sum(), (x * back.numpy()).sum(), rtol=1e-10)


def test_shuffles_are_inverse():
    x = candelabra.arange(2 * 8 * 3 * 5).reshape(2, 8, 3, 5)
    assert F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).equal(x)
    assert F.channel_shuffle(F.channel_shuffle(x, 2), 4).equal(x)


ERRORS = [
    (lambda: F.interpolate(candelabra.ones(1, 1, 4)), ValueError, "either size or scale_factor"),
    (lambda: F.interpolate(candelabra.ones(1, 1, 4), 2, 2.0), ValueError, "only one of size or scale_factor"),
    (
        lambda: F.interpolate(candelabra.ones(1, 1, 4), 2, mode="bilinear"),
        NotImplementedError,
        "bilinear mode needs 4D input",
    ),
    (lambda: F.interpolate(candelabra.ones(1, 1, 4), 0), RuntimeError, "sizes should be greater than 0"),
    (lambda: F.interpolate(candelabra.ones(1, 1, 4), 2, align_corners=True), ValueError, "align_corners option"),
    (lambda: F.grid_sample(candelabra.ones(1, 1, 2, 2), candelabra.ones(2, 1, 1, 2)), RuntimeError, "same batch size"),
    (
        lambda: F.grid_sample(candelabra.ones(1, 1, 2, 2), candelabra.ones(1, 1, 1, 3)),
        RuntimeError,
        "size 2 in last dimension",
    ),
    (lambda: F.affine_grid(candelabra.ones(1, 2, 2), (1, 1, 2, 2)), ValueError, "Nx2x3"),
    (lambda: F.pixel_shuffle(candelabra.ones(3, 2, 2), 2), RuntimeError, "divisible by the square of upscale_factor"),
    (lambda: F.channel_shuffle(candelabra.ones(1, 3, 2), 2), RuntimeError, "divisible by groups"),
    (lambda: F.unfold(candelabra.ones(1, 2, 2), 3), RuntimeError, "its components must be at least one"),
    (lambda: F.fold(candelabra.ones(3, 4), (3, 3), 2), RuntimeError, "divisible by the product of kernel_size"),
    (lambda: F.max_pool3d(candelabra.ones(1, 2, 2, 2), 3), RuntimeError, "Output size is too small"),
    (
        lambda: F.conv3d(candelabra.ones(1, 2, 2, 2), candelabra.ones(1, 1, 3, 3, 3)),
        RuntimeError,
        "Kernel size can't be greater",
    ),
    (
        lambda: F.avg_pool3d(candelabra.ones(1, 2, 2, 2), 2, divisor_override=0),
        RuntimeError,
        "divisor must be not zero",
    ),
]


@pytest.mark.parametrize(("run", "kind", "message"), ERRORS)
def test_errors(run, kind, message):
    with pytest.raises(kind, match=message):
        run()


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("amounts", [(0, 0, 0, 0), (0, 0, -1, -1)])
def test_padding_returns_memory_of_its_own(mode, amounts):
    given = candelabra.ones(1, 2, 4, 4)
    F.pad(given, amounts, mode=mode).fill_(4)
    assert given.max().item() == 1


def test_cosine_similarity_of_an_integer_and_a_float():
    number = candelabra.tensor(12.0)
    for function in (F.cosine_similarity, candelabra.cosine_similarity):
        assert function(number.to(candelabra.int8), number, dim=-1).item() == 1
        with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
            function(number.int(), number.int(), dim=-1)


def test_affine_grid_of_one_row():
    theta = candelabra.zeros(1, 2, 3)
    with pytest.warns(UserWarning, match="See the documentation of affine_grid"):
        assert F.affine_grid(theta, [1, 1, 2, 1], align_corners=True).shape == (1, 2, 1, 2)
