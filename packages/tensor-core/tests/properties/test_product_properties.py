"""Norms, distances, contractions and renormalization against NumPy and SciPy, over random shapes,
layouts and dtypes.
"""

import numpy
import pytest
import scipy.spatial.distance
from drawing import layouts, ours, pair, same, seeds, shapes
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import candelabra

FLOATS = ["float64", "float32", "complex128", "bfloat16", "float16"]
FEW = settings(max_examples=40, deadline=None, derandomize=True)
INFINITE = float("inf")


def drawn(data, shape, layout, seed, dtypes=FLOATS):
    dtype = data.draw(st.sampled_from(dtypes))
    return pair(numpy.random.default_rng(seed), dtype, shape, layout)


def tolerance(tensor):
    names = {"bfloat16": 3e-2, "float16": 4e-3, "float32": 2e-5, "complex64": 2e-5}
    return names.get(str(tensor.dtype).rpartition(".")[2], 1e-9)


def precise(array):
    return array.astype("complex128" if array.dtype.kind == "c" else "float64")


def p_norm(array, p, axis, keepdims):
    size = numpy.abs(precise(array))
    if p == INFINITE:
        return size.max(axis=axis, keepdims=keepdims, initial=0)
    if p == -INFINITE:
        return size.min(axis=axis, keepdims=keepdims, initial=INFINITE)
    if p == 0:
        return (size != 0).sum(axis=axis, keepdims=keepdims).astype(float)
    with numpy.errstate(divide="ignore"):
        return (size**p).sum(axis=axis, keepdims=keepdims) ** (1 / p)


def some_dims(data, shape):
    return tuple(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_vector_norm(data, shape, layout, seed, keepdim):
    tensor, array = drawn(data, shape, layout, seed)
    p = data.draw(st.sampled_from([0, 0.5, 1, 2, 3.5, -1, INFINITE, -INFINITE]))
    dims = some_dims(data, shape) if shape and data.draw(st.booleans()) else None
    reduced = [shape[d] for d in (dims if dims is not None else range(len(shape)))]
    assume(not (p in (INFINITE, -INFINITE) or p < 0) or 0 not in reduced)
    expected = p_norm(array, p, dims, keepdim)
    made = candelabra.linalg.vector_norm(tensor, p, dims, keepdim)
    assert made.dtype == (candelabra.float64 if tensor.dtype == candelabra.complex128 else tensor.dtype)
    same(made, expected, tolerance(tensor))
    same(candelabra.norm(tensor, p, dims, keepdim), expected, tolerance(tensor))
    if dims is not None and len(dims) == 1:
        same(candelabra.linalg.norm(tensor, p, dims[0], keepdim), expected, tolerance(tensor))
    if tensor.dtype in (candelabra.float32, candelabra.bfloat16):
        same(candelabra.linalg.vector_norm(tensor, p, dims, keepdim, dtype=candelabra.float64), expected, 1e-9)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, keepdim=st.booleans())
def test_matrix_norm(data, shape, layout, seed, keepdim):
    assume(len(shape) >= 2)
    p = data.draw(st.sampled_from(["fro", "nuc", 1, -1, 2, -2, INFINITE, -INFINITE]))
    tensor, array = drawn(data, shape, layout, seed, ["float64", "float32", "complex128"])
    dims = tuple(data.draw(st.permutations(range(len(shape))))[:2])
    assume(0 not in (shape[dims[0]], shape[dims[1]]))
    expected = numpy.linalg.norm(precise(array), p, dims, keepdim)
    bound = 1e-4 if tensor.dtype == candelabra.float32 else 1e-8
    same(candelabra.linalg.matrix_norm(tensor, p, dims, keepdim), expected, bound)
    same(candelabra.linalg.norm(tensor, p, dims, keepdim), expected, bound)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds, largest=st.sampled_from([0.0, 0.5, 2.0, 50.0]))
def test_renorm(data, shape, layout, seed, largest):
    """Slices whose norm is greater are scaled down, the others left alone; the 1e-7 in the quotient
    is PyTorch's.
    """
    assume(len(shape) >= 2)
    tensor, array = drawn(data, shape, layout, seed, ["float64", "float32", "complex128"])
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    p = data.draw(st.sampled_from([1, 2, 3, INFINITE]))
    others = tuple(d for d in range(len(shape)) if d != dim % len(shape))
    assume(p != INFINITE or 0 not in [shape[d] for d in others])
    size = p_norm(array, p, others, True)
    expected = precise(array) * numpy.where(size > largest, largest / (size + 1e-7), 1)
    same(candelabra.renorm(tensor, p, dim, largest), expected, tolerance(tensor))
    made = tensor.clone()
    made.renorm_(p, dim, largest)
    same(made, expected, tolerance(tensor))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), seed=seeds, rows=st.integers(0, 4), others=st.integers(0, 30), features=st.integers(0, 3))
def test_cdist(data, seed, rows, others, features):
    """Every p; batches that broadcast; the way by a product of matrices and the one without."""
    random = numpy.random.default_rng(seed)
    batches = data.draw(st.sampled_from([((), ()), ((2,), (2,)), ((1,), (3,)), ((2, 1), (3,)), ((0,), (1,))]))
    rows = data.draw(st.sampled_from([rows, 28]))
    a, first = pair(random, "float64", (*batches[0], rows, features), data.draw(layouts))
    b, second = pair(random, "float64", (*batches[1], others, features), data.draw(layouts))
    p = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, INFINITE]))
    expected = p_norm(first[..., :, None, :] - second[..., None, :, :], p, -1, False)
    for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        same(candelabra.cdist(a, b, p, compute_mode=mode), expected, 2e-7 if p == 2 else 1e-9)
    if batches == ((), ()) and features and p >= 1:
        names = {1.0: "cityblock", 2.0: "euclidean", 3.0: "minkowski", INFINITE: "chebyshev"}
        options = {"p": p} if p == 3 else {}
        same(candelabra.cdist(a, b, p), scipy.spatial.distance.cdist(first, second, names[p], **options), 1e-9)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda x: candelabra.cdist(x, x, compute_mode="fast"),
            ValueError,
            "fast is not a valid value for compute_mode",
        ),
        (lambda x: candelabra.cdist(x, x, -1.0), RuntimeError, "only supports non-negative p values"),
        (lambda x: candelabra.cdist(x.long(), x), RuntimeError, "floating-point dtypes, X1 got"),
        (lambda x: candelabra.cdist(x, x.to(candelabra.complex64)), RuntimeError, "floating-point dtypes, X2 got"),
        (lambda x: candelabra.cdist(x, x.double()), RuntimeError, "expected tensors of one dtype"),
        (lambda x: candelabra.cdist(x, x[:, :1]), RuntimeError, "same number of columns"),
        (lambda x: candelabra.cdist(x, x[0]), RuntimeError, "at least 2D"),
        (lambda x: candelabra.renorm(x[0], 2, 0, 1.0), RuntimeError, "at least 2 dimensions"),
        (lambda x: candelabra.linalg.matrix_norm(x, 3), RuntimeError, "3"),
        (lambda x: candelabra.linalg.matrix_norm(x, "nuc", (0, 0)), RuntimeError, "dim"),
        (lambda x: candelabra.linalg.vector_norm(x[:0], INFINITE), RuntimeError, "does not have an identity"),
        (lambda x: candelabra.einsum("ij,jk", x), RuntimeError, "einsum"),
        (lambda x: candelabra.tensordot(x, x, [[0], [0, 1]]), RuntimeError, "same length"),
        (lambda x: candelabra.tensordot(x, x, 3), RuntimeError, "tensordot"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call(candelabra.ones(2, 3))


EQUATIONS = [
    "ab,bc->ac", "ab,cb->ac", "ab,bc", "ab->ba", "aa->a", "aa", "ab->", "ab,ab->", "ab,ab->ab", "a,b->ab", "abc,acd->abd",
    "...ab,...bc->...ac", "a...,a...->...", "ab,bc,cd->ad", "abc,bd,cd->ad", "aab->b", "ab,b->a", "...a->a...", "abc,abd->cd",
]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data(), seed=seeds)
def test_einsum(equation, data, seed):
    random = numpy.random.default_rng(seed)
    size = {letter: data.draw(st.sampled_from([0, 1, 2, 3])) for letter in "abcd"}
    more = data.draw(st.sampled_from([(), (2,), (1, 3)])) if "..." in equation else ()
    dtype = data.draw(st.sampled_from(["float64", "complex128", "int64"]))
    tensors, arrays = [], []
    for term in equation.split("->")[0].split(","):
        shape = []
        for part in term.replace("...", "."):
            shape += [*more] if part == "." else [size[part]]
        tensor, array = pair(random, dtype, shape, data.draw(layouts))
        tensors.append(tensor)
        arrays.append(array)
    same(candelabra.einsum(equation, *tensors), numpy.einsum(equation, *arrays), 1e-9)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_tensordot_and_kron(data, shape, layout, seed):
    random = numpy.random.default_rng(seed)
    dtype = data.draw(st.sampled_from(["float64", "complex128", "int64"]))
    tensor, array = pair(random, dtype, shape, layout)
    count = data.draw(st.integers(0, len(shape)))
    mine = data.draw(st.permutations(range(len(shape))))[:count]
    free = data.draw(st.sampled_from([(), (2,), (0,), (1, 2)]))
    other, other_array = pair(random, dtype, (*[shape[d] for d in mine], *free), data.draw(layouts))
    dims = [list(mine), list(range(count))]
    same(candelabra.tensordot(tensor, other, dims), numpy.tensordot(array, other_array, dims), 1e-9)
    turned, turned_array = pair(random, dtype, (*shape[len(shape) - count :], *free), data.draw(layouts))
    same(candelabra.tensordot(tensor, turned, count), numpy.tensordot(array, turned_array, count), 1e-9)
    small, small_array = pair(random, dtype, data.draw(shapes), data.draw(layouts))
    same(candelabra.kron(tensor, small), numpy.kron(array, small_array), 1e-9)


@FEW
@given(data=st.data(), shape=shapes, layout=layouts, seed=seeds)
def test_products_of_matrices_and_vectors(data, shape, layout, seed):
    """matmul of any two numbers of dimensions, inner, outer, vdot, multi_dot, cross, trace."""
    assume(shape)
    random = numpy.random.default_rng(seed)
    dtype = data.draw(st.sampled_from(["float64", "complex128", "int64"]))
    tensor, array = pair(random, dtype, shape, layout)
    other_shape = data.draw(st.sampled_from([shape[-1:], (shape[-1], 2), (1, shape[-1], 3), (2, 1, shape[-1], 2)]))
    if len(shape) == 3 and len(other_shape) >= 3:
        other_shape = (*other_shape[:-3], data.draw(st.sampled_from([1, shape[0]])), *other_shape[-2:])
    other, other_array = pair(random, dtype, other_shape, data.draw(layouts))
    same(candelabra.matmul(tensor, other), numpy.matmul(array, other_array), 1e-9)
    same(candelabra.inner(tensor, tensor), numpy.inner(array, array), 1e-9)
    vector, vector_array = tensor.flatten(), array.reshape(-1)
    same(candelabra.outer(vector, vector), numpy.outer(vector_array, vector_array), 1e-9)
    same(candelabra.vdot(vector, vector), numpy.vdot(vector_array, vector_array), 1e-9)
    if dtype != "int64" and 0 not in shape:
        flat = array.reshape(shape[0], -1)
        chain = [flat, flat.T.conj(), flat]
        same(candelabra.linalg.multi_dot([ours(a) for a in chain]), numpy.linalg.multi_dot(chain), 1e-9)
    three, three_array = pair(random, dtype, (*shape[:-1], 3), data.draw(layouts))
    same(
        candelabra.linalg.cross(three, three.flip(-1), dim=-1),
        numpy.cross(three_array, numpy.flip(three_array, -1)) if three_array.size else three_array,
        1e-9,
    )
    if len(shape) == 2:
        same(candelabra.trace(tensor), numpy.trace(array), 1e-9)
