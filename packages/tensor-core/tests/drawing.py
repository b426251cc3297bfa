"""Random tensors for the property tests, each as a pair: Candelabra's and the NumPy array that it
has to equal.

Shapes have dimensions of size 0 and 1; memory is contiguous, transposed, strided, flipped (negative
strides in NumPy), expanded (stride 0) or overlapping (windows over a line).
"""

import numpy
from hypothesis import strategies as st

import candelabra

LAYOUTS = ("contiguous", "transposed", "strided", "flipped", "expanded", "overlapping")


def values(random, dtype, shape):
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.startswith("int"):
        return random.integers(-4, 5, shape).astype(dtype)
    if dtype == "uint8":
        return random.integers(0, 9, shape).astype(dtype)
    if dtype == "bfloat16":  # NumPy has none: numbers that it holds, in the next wider dtype
        return (random.integers(-12, 13, shape) / 4).astype("float32")
    if dtype == "float16":
        return (random.integers(-12, 13, shape) / 4).astype("float16")
    made = random.uniform(-3, 3, shape)
    if dtype.startswith("complex"):
        made = made + 1j * random.uniform(-3, 3, shape)
    return made.astype(dtype)


def pair(random, dtype, shape, layout):
    """A tensor and an array of this shape."""
    shape = tuple(shape)
    if layout == "transposed":
        base = values(random, dtype, shape[::-1])
        return candelabra.tensor(base, dtype=getattr(candelabra, dtype)).permute(tuple(range(len(shape)))[::-1]), base.T
    if layout == "strided" and shape:
        base = values(random, dtype, (*shape[:-1], 2 * shape[-1]))
        return candelabra.tensor(base, dtype=getattr(candelabra, dtype))[..., ::2], base[..., ::2]
    if layout == "flipped" and shape:
        base = values(random, dtype, shape)
        return candelabra.tensor(base, dtype=getattr(candelabra, dtype)).flip(tuple(range(len(shape)))), numpy.flip(
            base
        )
    if layout == "expanded" and shape:
        base = values(random, dtype, (1, *shape[1:]))
        return candelabra.tensor(base, dtype=getattr(candelabra, dtype)).expand(shape), numpy.broadcast_to(base, shape)
    if layout == "overlapping" and len(shape) >= 2 and 0 not in shape:
        line = values(random, dtype, sum(shape))
        strides = (1,) * len(shape)
        tensor = candelabra.tensor(line, dtype=getattr(candelabra, dtype)).as_strided(shape, strides)
        return tensor, numpy.lib.stride_tricks.as_strided(line, shape, tuple(line.itemsize for _ in shape)).copy()
    base = values(random, dtype, shape)
    return candelabra.tensor(base, dtype=getattr(candelabra, dtype)).reshape(shape), base


shapes = st.lists(st.sampled_from([0, 1, 1, 2, 3, 5]), max_size=3).map(tuple)
layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)


def ours(array, dtype=None):
    """A tensor of an array, of its shape even where it is empty."""
    array = numpy.asarray(array)
    kind = getattr(candelabra, dtype or str(array.dtype))
    return candelabra.tensor(array, dtype=kind).reshape(array.shape)


def same(made, expected, tolerance=1e-9):
    """Compare shape and values; NaN equals NaN."""
    assert tuple(made.shape) == numpy.shape(expected)
    array = (made.to(candelabra.float32) if made.dtype == candelabra.bfloat16 else made).numpy()
    if array.dtype.kind in "fc":
        numpy.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        numpy.testing.assert_array_equal(array, expected)
