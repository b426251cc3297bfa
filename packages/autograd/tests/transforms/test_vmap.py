"""Test vmap: every operator against a loop, dimensions, random numbers, in-place operations,
errors.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from checking import as_function
from samples import COMPLEX_OPERATORS, has_samples, samples

import candelabra
from candelabra import Tensor, vmap
from candelabra.autograd.structure import broadcast_prefix, flatten, map_leaves, unflatten
from candelabra.catalogue import OPERATORS

_RANDOM, _DATA_DEPENDENT = 4, 512
#: Operators that change their arguments, or need values saved by another operator: see
#: test_functions.
_ELSEWHERE = {"native_batch_norm", "cross_entropy_backward"}
NAMES = [
    name
    for name, operator in OPERATORS.items()
    if has_samples(name) and not operator.tags & (_RANDOM | _DATA_DEPENDENT) and name not in _ELSEWHERE
]
#: Operators with gradients.
DIFFERENTIABLE = [
    name
    for name in OPERATORS
    if has_samples(name) and not OPERATORS[name].tags & 8 and samples(name, candelabra.float64)
]


def _as_tuple(value):
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _one_by_one(function, size, batches, dims):
    rows = []
    for number in range(size):
        entries = [
            batch if dim is None else batch.select(dim, number) for batch, dim in zip(batches, dims, strict=True)
        ]
        rows.append(_as_tuple(function(*entries)))
    return [candelabra.stack(column) for column in zip(*rows, strict=True)]


def _compare(function, size, batches, dims):
    expected = _one_by_one(function, size, batches, dims)
    made = vmap(lambda *given: _as_tuple(function(*given)), in_dims=tuple(dims))(*batches)
    assert len(made) == len(expected)
    for a, b in zip(made, expected, strict=True):
        assert a.dtype is b.dtype
        assert a.shape == b.shape
        assert candelabra.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [candelabra.float64, candelabra.complex128], ids=["real", "complex"])
def test_operators(name, dtype):
    if dtype is candelabra.complex128 and name not in COMPLEX_OPERATORS:
        return
    for arguments, keywords in samples(name, dtype):
        if name == "as_strided" and arguments[3:]:
            continue  # storage offsets of a batch differ: see test_places_in_memory
        _, tensors = as_function(OPERATORS[name], arguments, keywords)
        recorded = _as_tuple(OPERATORS[name](*arguments, **keywords))
        places = [at for at, part in enumerate(recorded) if part.requires_grad]

        def run(*given, arguments=arguments, keywords=keywords, places=places):
            replacements = iter(given)

            def replace(value):
                if isinstance(value, Tensor) and value.requires_grad:
                    return next(replacements)
                if isinstance(value, (list, tuple)):
                    return type(value)([replace(entry) for entry in value])
                return value

            made = OPERATORS[name](
                *[replace(value) for value in arguments], **{key: replace(value) for key, value in keywords.items()}
            )
            return tuple(_as_tuple(made)[at] for at in places)

        values = [tensor.detach() for tensor in tensors]
        batches = [candelabra.stack([value, value * 0.75, value * 1.25]) for value in values]
        try:
            for scale in (0.75, 1.25):
                run(*(value * scale for value in values))
        except (RuntimeError, ValueError):
            continue
        _compare(run, 3, batches, [0] * len(batches))
        if len(batches) > 1:
            # Batch only the first argument, along its last dimension.
            _compare(run, 3, [batches[0].movedim(0, -1), *values[1:]], [-1, *(None,) * (len(values) - 1)])
            _compare(run, 3, [values[0], *batches[1:]], [None, *(0,) * (len(values) - 1)])


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_batches_of_gradients(name):
    for arguments, keywords in samples(name, candelabra.float64)[:2]:
        function, tensors = as_function(OPERATORS[name], arguments, keywords)
        outputs = [part for part in _as_tuple(function(*tensors)) if part.requires_grad]
        batches = [candelabra.randn((2, *output.shape), dtype=output.dtype) for output in outputs]
        together = candelabra.autograd.grad(
            outputs, tensors, batches, retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        for row in range(2):
            alone = candelabra.autograd.grad(
                outputs, tensors, [batch[row] for batch in batches], retain_graph=True, allow_unused=True
            )
            for a, b in zip(together, alone, strict=True):
                assert (a is None) == (b is None)
                assert a is None or candelabra.allclose(a[row], b, rtol=1e-9, atol=1e-9)


def _of_cross_entropy(x):
    target = candelabra.tensor([3, 0, 1, 1])
    _, *kept = candelabra.ops.cross_entropy_forward(x, target, None, ignore_index=0, reduction="mean")
    return candelabra.ops.cross_entropy_backward(x.new_tensor(0.5), x, target, None, 0, "mean", *kept)


_FUNCTIONS = {
    "var_mean": lambda x: candelabra.var_mean(x, 0),
    "norm": lambda x: candelabra.linalg.norm(x),
    "inv": lambda x: candelabra.linalg.inv(x + 5 * candelabra.eye(4, dtype=x.dtype)),
    "matrix_exp": lambda x: candelabra.linalg.matrix_exp(x),
    "solve": lambda x: candelabra.linalg.solve(x + 5 * candelabra.eye(4, dtype=x.dtype), x[0]),
    "eigvalsh": lambda x: candelabra.linalg.eigvalsh(x),
    "fft": lambda x: candelabra.fft.fft(x).abs(),
    "einsum": lambda x: candelabra.einsum("ij,kj->ik", x, x),
    "index": lambda x: x[[0, 2], 1:3],
    "index with None": lambda x: x[None, :, [1, 0]],
    "two indices apart": lambda x: x.unsqueeze(1)[[0, 1], :, [1, 2]],
    "mask": lambda x: x[candelabra.tensor([True, False, True, False])],
    "quantile": lambda x: x.quantile(0.3),
    "histogram of sizes": lambda x: x.sum() * x.shape[0] + x.numel() * x.ndim,
    "where": lambda x: candelabra.where(x > 0, x, 0),
    "sorted": lambda x: x.sort(1, descending=True)[0] + x.argsort(0).to(x.dtype),
    "flatten": lambda x: x.t().flatten()[::3].unflatten(0, (2, 3)),
    "loop over rows": lambda x: sum(row.sin() for row in x),
    "cov": lambda x: candelabra.cov(x),
    "cumprod": lambda x: x.cumprod(0),
    "pad": lambda x: candelabra.cat([x, candelabra.zeros(1, 4, dtype=x.dtype)]),
    "gradient of cross entropy": _of_cross_entropy,
    "float32": lambda x: x.float().double() + x.to(candelabra.float32).mean(),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_functions(name):
    batch = candelabra.randn(3, 4, 4, dtype=candelabra.float64)
    _compare(_FUNCTIONS[name], 3, [batch], [0])


def test_batched_indices():
    x = candelabra.arange(24.0).reshape(2, 3, 4)
    i = candelabra.tensor([[0, 2], [1, 1]])
    _compare(lambda x, i: x[i], 2, [x, i], [0, 0])
    _compare(lambda i: x[0][i], 2, [i], [0])
    _compare(lambda x, i: x[:, i], 2, [x, i], [0, 0])
    _compare(lambda x, i: x[i, :, None], 2, [x, i], [0, 0])
    _compare(lambda x, i: x.index_select(1, i), 2, [x, i], [0, 0])
    _compare(lambda x, i: x.gather(1, i.expand(3, 2)), 2, [x, i], [0, 0])
    _compare(lambda x, i: x.index_put((i,), candelabra.ones(4)), 2, [x, i], [0, 0])
    _compare(lambda x, i: x.index_put((candelabra.tensor([0, 1]), i), candelabra.tensor(5.0), True), 2, [x, i], [0, 0])
    _compare(lambda x, i: x[i[0]], 2, [x, i], [0, 0])
    _compare(lambda x, i: candelabra.take(x, i), 2, [x, i], [0, 0])


def test_dimensions():
    x = candelabra.randn(2, 3, 5)
    assert candelabra.equal(vmap(candelabra.sum, in_dims=1)(x), x.sum((0, 2)))
    assert candelabra.equal(vmap(lambda row: row * 2, in_dims=-1, out_dims=-1)(x), x * 2)
    assert vmap(lambda row: (row, row.sum()), out_dims=(1, 0))(x)[0].shape == (3, 2, 5)
    made = vmap(lambda both: both["a"] + both["b"][0], in_dims=({"a": 0, "b": [None]},))(
        {"a": x, "b": [candelabra.ones(3, 5)]}
    )
    assert candelabra.equal(made, x + 1)
    assert vmap(lambda row: candelabra.ones(2))(x).shape == (2, 2)
    assert vmap(lambda row, y=None: row + y)(x, y=candelabra.ones(5)).shape == x.shape
    assert vmap(lambda row: (row, 3), out_dims=(0, None))(x)[1] == 3


def test_places_in_memory():
    x = candelabra.arange(12.0).reshape(2, 6)
    made = vmap(lambda row: row[1:].as_strided((2, 2), (2, 1), 1))(x)
    assert made.tolist() == [[[1, 2], [3, 4]], [[7, 8], [9, 10]]]


def test_nested():
    x, y = candelabra.randn(2, 3, 4), candelabra.randn(5, 3, 4)
    made = vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x)
    assert candelabra.allclose(made, candelabra.einsum("aij,bij->ab", x, y), atol=1e-5)


def test_chunks():
    x = candelabra.randn(7, 3)
    for size in (1, 2, 7, 100):
        assert candelabra.equal(vmap(candelabra.sin, chunk_size=size)(x), x.sin())
    made = vmap(lambda row: (row.sum(), row), out_dims=(0, 1), chunk_size=3)(x)
    assert made[0].shape == (7,) and candelabra.equal(made[1], x.t())


def test_in_place():
    x = candelabra.randn(3, 4)

    def changed(row):
        row = row.clone()
        row[0] = row[1] * 2
        row[1:].mul_(3)
        row[row > 1] = 0
        return row

    _compare(changed, 3, [x], [0])
    y = x.clone()
    vmap(lambda row: row.add_(1))(y)
    assert candelabra.equal(y, x + 1)


def test_what_the_function_makes_may_get_a_batch():
    def made_inside(row):
        whole = candelabra.zeros(3, 4)
        view = whole[1]
        whole[0] = row
        view.copy_(row * 2)
        whole.t()[3].add_(row.sum())
        return whole, view

    _compare(made_inside, 2, [candelabra.randn(2, 4)], [0])


def test_what_was_made_outside_may_not():
    outside = candelabra.zeros(3)
    with pytest.raises(RuntimeError, match="vmapped over"):
        vmap(lambda row: outside.add_(row))(candelabra.ones(2, 3))


def test_saved_values_notice_changes():
    x = candelabra.ones(2, 3)

    def clobbering(row):
        def inner(row):
            row = row.clone()
            made = row.exp()
            made.add_(row)
            return made.sum()

        return candelabra.func.grad(inner)(row)

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(clobbering)(x)


def test_random_numbers():
    x = candelabra.zeros(4)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda row: row + candelabra.rand(3))(x)
    same = vmap(lambda row: row + candelabra.rand(3), randomness="same")(x)
    assert candelabra.equal(same, same[:1].expand(4, 3))
    different = vmap(lambda row: row + candelabra.rand(3), randomness="different")(x)
    assert len({tuple(row) for row in different.tolist()}) == 4
    dropped = vmap(
        lambda row: candelabra.ops.native_dropout(row + candelabra.ones(64), 0.5)[0], randomness="different"
    )(x)
    assert len({tuple(row) for row in dropped.tolist()}) == 4
    same = vmap(lambda row: candelabra.bernoulli(row + 0.5), randomness="same")(x)
    assert len(set(same.tolist())) == 1
    filled = vmap(lambda row: row.clone().normal_(), randomness="different")(x)
    assert len(set(filled.tolist())) == 4
    with pytest.raises(RuntimeError, match="Only allowed values"):
        vmap(candelabra.sin, randomness="none")


def test_gradients_through_it():
    x = candelabra.randn(3, 4, dtype=candelabra.float64, requires_grad=True)
    w = candelabra.randn(4, dtype=candelabra.float64, requires_grad=True)
    vmap(lambda row: (row * w).sin().sum())(x).sum().backward()
    expected = (x * w).cos()
    assert candelabra.allclose(x.grad, expected * w)
    assert candelabra.allclose(w.grad, (expected * x).sum(0))


def test_batched_gradients():
    x = candelabra.randn(3, dtype=candelabra.float64, requires_grad=True)
    (rows,) = candelabra.autograd.grad(x.exp() * x.sum(), x, candelabra.eye(3, dtype=x.dtype), is_grads_batched=True)
    value = x.detach()
    assert candelabra.allclose(rows, candelabra.diag(value.exp() * value.sum()) + value.exp().unsqueeze(1).expand(3, 3))
    y = candelabra.ones(1, requires_grad=True)
    made = candelabra.autograd.grad(
        x * 2, (x, y), candelabra.ones(2, 3, dtype=x.dtype), is_grads_batched=True, allow_unused=True
    )
    assert made[1] is None and made[0].shape == (2, 3)


def test_an_empty_batch():
    assert vmap(lambda row: row.sin().sum())(candelabra.ones(0, 3)).shape == (0,)


def test_values_are_refused():
    x = candelabra.ones(2)
    for function in (
        lambda v: v.item(),
        lambda v: v if v > 0 else -v,
        lambda v: v + float(v),
        lambda v: v.tolist(),
        lambda v: v.numpy(),
    ):
        with pytest.raises(RuntimeError, match="vmap|data pointer"):
            vmap(function)(x)
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(lambda v: v.nonzero())(candelabra.ones(2, 2))
    with pytest.raises(RuntimeError, match="boolean mask"):
        vmap(lambda v: v[v > 0])(candelabra.ones(2, 2))
    with pytest.raises(RuntimeError, match="out="):
        vmap(lambda v: candelabra.add(v, 1, out=candelabra.empty(2)))(candelabra.ones(2, 2))
    with pytest.raises(RuntimeError, match="requires_grad_"):
        vmap(lambda v: v.requires_grad_())(x)
    assert candelabra._C.set_dispatch_hook(None) is None


def test_arguments_are_checked():
    x = candelabra.ones(2, 3)
    add = candelabra.add
    for in_dims, arguments, text in [
        ([0, 0], (x, x), "expected `in_dims` to be int or"),
        (0, (), "got no inputs"),
        ((0, 0, 0), (x, x), "not compatible with the structure"),
        ((0, 2), (x, x), "dimensionality 2"),
        (0, (x, 2), "cannot vmap over non-Tensor"),
        (("a", 0), (x, x), "either an integer dimension or None"),
        ((0, 1), (x, x), "same size in the mapped dimension"),
        ((None, None), (x, x), "at least one"),
    ]:
        with pytest.raises(ValueError, match=text):
            vmap(add, in_dims=in_dims)(*arguments)
    with pytest.raises(ValueError, match="must only return Tensors"):
        vmap(lambda row: 3)(x)
    with pytest.raises(ValueError, match="out_dims is not compatible"):
        vmap(lambda row: (row, row), out_dims=(0, 0, 0))(x)
    with pytest.raises(ValueError, match="can not return a BatchedTensor"):
        vmap(lambda row: row, out_dims=None)(x)
    with pytest.raises(IndexError, match="Dimension out of range"):
        vmap(lambda row: row, out_dims=3)(x)
    with pytest.raises(ValueError, match="chunk_size"):
        vmap(add, chunk_size=0)


class _Pair(NamedTuple):
    first: int
    second: int


def test_structures():
    value = {"a": (1, [2, 3]), "b": _Pair(4, 5)}
    leaves, structure = flatten(value)
    assert leaves == [1, 2, 3, 4, 5] and structure.size == 5
    assert flatten(unflatten(leaves, structure))[1] == structure
    assert map_leaves(lambda leaf: leaf + 1, (1, {"x": 2})) == (2, {"x": 3})
    assert broadcast_prefix((0, None), flatten((1, (2, 3)))[1]) == [0, None, None]
    assert broadcast_prefix((0,), structure) is None


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_values_are_not_read_on_the_way_into_other_tensors():
    x = candelabra.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match="item"):
        vmap(lambda row: candelabra.tensor([row[0], row[1]]))(x)
    with pytest.raises(RuntimeError, match="item"):
        vmap(lambda row: candelabra.add(row, row, alpha=row[0]))(x)
    assert candelabra.equal(vmap(lambda row: candelabra.tensor(row) * 2)(x), x * 2)
    assert candelabra.func.grad(lambda v: (v * candelabra.tensor([v[0], 2.0])).sum())(x[0]).tolist() == [1.0, 2.0]


def test_promotion_is_that_of_the_entries():
    zero_dims, vector = candelabra.arange(2, dtype=candelabra.float64), candelabra.ones(2, 3, dtype=candelabra.float16)
    assert vmap(candelabra.add)(zero_dims, vector).dtype is candelabra.float16
    assert vmap(candelabra.mul)(vector, zero_dims).dtype is candelabra.float16
    assert (
        vmap(lambda a: a + candelabra.tensor(1.0, dtype=candelabra.float64))(zero_dims.half()).dtype
        is candelabra.float64
    )
    assert vmap(candelabra.add)(candelabra.arange(2), vector).dtype is candelabra.float16


def test_filling_with_a_number_of_each_entry():
    index, values = candelabra.tensor([0, 2]), candelabra.tensor([1.0, 2.0])
    expected = [[1.0, 0.0, 1.0], [2.0, 0.0, 2.0]]
    assert vmap(lambda x, v: x.index_fill(0, index, v))(candelabra.zeros(2, 3), values).tolist() == expected
    assert vmap(lambda v: candelabra.zeros(3).index_fill_(0, index, v))(values).tolist() == expected


def test_chunks_share_the_random_numbers():
    x = candelabra.zeros(5)
    for size in (1, 2, 5, None):
        candelabra.manual_seed(3)
        made = vmap(lambda entry: entry + candelabra.rand(()), randomness="same", chunk_size=size)(x)
        candelabra.manual_seed(3)
        assert candelabra.equal(made, candelabra.rand(()).expand(5))


@pytest.mark.parametrize("rank", [4, 5])
def test_memory_formats_are_of_one_entry(rank):
    wanted = {4: candelabra.channels_last, 5: candelabra.channels_last_3d}[rank]
    batch = candelabra.arange(float(2 * 2**rank)).reshape(2, *[2] * rank)
    made = candelabra.vmap(lambda t: t.contiguous(memory_format=wanted) * 2)(batch)
    assert made.tolist() == (batch * 2).tolist()
