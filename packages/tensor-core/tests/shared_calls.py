"""Calls of operators on inputs that several threads share, for tests that compare numbers of
threads.

The inputs are larger than what one thread is given, so that pieces begin at other places with each
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import candelabra
from candelabra.catalogue import FAMILIES, OPERATORS

Tensor = candelabra.Tensor
Call = Callable[[], Any]
Recipe = Callable[["Maker"], Iterator[Call]]

ROWS, COLUMNS = 311, 337  # more than three pieces of light work, and no multiple of any vector's length


class Maker:
    """Tensors of one dtype, the same whenever they are asked for."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.random = np.random.default_rng(0)

    def values(self, *shape: int, low: float = 0.1, high: float = 0.9) -> Tensor:
        """Numbers between `low` and `high`; whole ones from 1 to 7."""
        dtype = getattr(candelabra, self.dtype)
        if self.dtype == "bool":
            return candelabra.tensor(self.random.integers(0, 2, shape).astype(bool))
        if not (dtype.is_floating_point or dtype.is_complex):
            return candelabra.tensor(self.random.integers(1, 8, shape)).to(dtype)
        made = self.random.uniform(low, high, shape)
        if dtype.is_complex:
            made = made + 1j * self.random.uniform(low, high, shape)
        return candelabra.tensor(made).to(dtype)

    def indices(self, below: int, *shape: int) -> Tensor:
        return candelabra.tensor(self.random.integers(0, below, shape))

    def mask(self, *shape: int) -> Tensor:
        return candelabra.tensor(self.random.random(shape) < 0.4)

    def layouts(self) -> Iterator[Tensor]:
        """As many elements, side by side, transposed, and with gaps."""
        yield self.values(ROWS, COLUMNS)
        yield self.values(COLUMNS, ROWS).t()
        yield self.values(ROWS, 2 * COLUMNS)[:, ::2]

    def rows(self) -> Iterator[Tensor]:
        """Many short rows, few long ones, and some of each."""
        for shape in ((ROWS, COLUMNS), (30011, 5), (3, 50021)):
            yield self.values(*shape)
        yield self.values(COLUMNS, ROWS).t()


def _elementwise(count: int, *more: Any, name: str, **keywords: Any) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        for first in make.layouts():
            others = [make.values(*first.shape) for _ in range(count - 1)]
            yield lambda first=first, others=others: OPERATORS[name](first, *others, *more, **keywords)

    return recipe


def _along(name: str, *more: Any, dims: tuple[Any, ...] = (0, 1), **keywords: Any) -> Recipe:
    """An operator of a tensor and a dimension."""

    def recipe(make: Maker) -> Iterator[Call]:
        for x in make.rows():
            for dim in dims:
                yield lambda x=x, dim=dim: OPERATORS[name](x, dim, *more, **keywords)

    return recipe


def _reduction(name: str, *more: Any) -> Recipe:
    return _along(name, *more, dims=([0], [1], [0, 1]))


def _calls(*functions: Callable[[Maker], Any]) -> Recipe:
    """Each function draws its arguments and returns the call."""

    def recipe(make: Maker) -> Iterator[Call]:
        for function in functions:
            yield function(make)

    return recipe


CELLS = {"lstm": 4, "gru": 3, "rnn_tanh": 1}


def _recurrent(cells: Iterable[str], call: Callable[..., Any]) -> Recipe:
    """Recurrent cells with a small weight, of which threads take rows, and with one that they
    divide.
    """

    def recipe(make: Maker) -> Iterator[Call]:
        for cell in cells:
            gates = CELLS[cell]
            for steps, batch, hidden in ((5, 37, 33), (3, 17, 528)):
                x = make.values(steps, batch, gates * hidden, low=-1)
                h, w = make.values(batch, hidden, low=-1), make.values(gates * hidden, hidden, low=-1) / hidden**0.5
                c = make.values(batch, hidden) if cell == "lstm" else None
                bias = make.values(gates * hidden) if cell == "gru" else None
                yield lambda given=(x, h, c, w, bias, cell): call(*given)

    return recipe


def _seeded(name: str, *more: Any) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        for x in make.layouts():

            def call(x: Tensor = x) -> Any:
                candelabra.manual_seed(5)
                return OPERATORS[name](x.clone(), *more)

            yield call

    return recipe


def _norm_arguments(make: Maker, channels: int) -> tuple[Tensor, Tensor]:
    return make.values(channels), make.values(channels)


def _nll(make: Maker) -> Iterator[Call]:
    for shape in ((20011, 7), (9, 7, 61, 67)):
        x, target, weight = make.values(*shape), make.indices(7, shape[0], *shape[2:]), make.values(7)
        for reduction in (0, 1, 2):
            yield lambda x=x, t=target, r=reduction, w=weight: OPERATORS["nll_loss_forward"](x, t, w, r, 3)


def _nll_backward(make: Maker) -> Iterator[Call]:
    x, target, weight = make.values(9, 7, 61, 67), make.indices(7, 9, 61, 67), make.values(7)
    total = make.values(1)[0]
    for reduction, grad in ((0, make.values(9, 61, 67)), (1, make.values(1)[0])):
        yield lambda g=grad, r=reduction: OPERATORS["nll_loss_backward"](g, x, target, weight, r, 3, total)


def _cross_entropy(make: Maker) -> Iterator[Call]:
    for rows, classes in ((20011, 7), (331, 3001)):
        x, target, weight = make.values(rows, classes, low=-3), make.indices(classes, rows), make.values(classes)
        for reduction in ("none", "mean", "sum"):
            yield lambda x=x, t=target, r=reduction, w=weight: OPERATORS["cross_entropy_forward"](
                x, t, w, ignore_index=3, reduction=r
            )


def _cross_entropy_backward(make: Maker) -> Iterator[Call]:
    for rows, classes in ((20011, 7), (331, 3001)):
        x, target, weight = make.values(rows, classes, low=-3), make.indices(classes, rows), make.values(classes)
        for reduction, grad in (("none", make.values(rows)), ("mean", make.values(1)[0])):
            _, total, statistics = OPERATORS["cross_entropy_forward"](
                x, target, weight, ignore_index=3, reduction=reduction
            )
            given = (grad, x, target, weight, 3, reduction, total, statistics)
            yield lambda given=given: OPERATORS["cross_entropy_backward"](*given)


def _ctc(make: Maker) -> tuple[tuple[Any, ...], Tensor]:
    scores = make.values(40, 24, 60).log_softmax(2)
    return (scores, make.indices(59, 24, 12) + 1, [40] * 24, [12] * 24), make.values(24)


def _ctc_forward(make: Maker) -> Iterator[Call]:
    arguments, _ = _ctc(make)
    yield lambda: OPERATORS["_ctc_loss"](*arguments, 0, False)


def _ctc_backward(make: Maker) -> Iterator[Call]:
    arguments, grad = _ctc(make)
    loss, ways = OPERATORS["_ctc_loss"](*arguments, 0, False)
    yield lambda: OPERATORS["_ctc_loss_backward"](grad, *arguments, loss, ways, 0, False)


def _pool(name: str) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        x = make.values(3, 17, 53, 51)
        window: tuple[Any, ...] = ([3, 3], [2, 2], [1, 1])
        shape = [3, 17, 53, 51]
        if name == "max_pool" or name == "max_pool_values":
            yield lambda: OPERATORS[name](x, *window, [1, 1], True)
        elif name == "max_pool_backward":
            _, places = OPERATORS["max_pool"](x, *window, [1, 1], True)
            grad = make.values(*places.shape)
            yield lambda: OPERATORS[name](grad, places, shape)
        elif name in ("adaptive_max_pool", "adaptive_avg_pool"):
            yield lambda: OPERATORS[name](x, [20, 21])
        elif name == "avg_pool":
            yield lambda: OPERATORS[name](x, *window, True, True, None)
        elif name == "avg_pool_backward":
            grad = make.values(*OPERATORS["avg_pool"](x, *window, True, True, None).shape)
            yield lambda: OPERATORS[name](grad, shape, *window, True, True, None)
        else:
            grad = make.values(3, 17, 20, 21)
            yield lambda: OPERATORS[name](grad, shape)

    return recipe


def _normalization(name: str) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        for shape in ((8, 12, 31, 37), (700, 12, 13)):
            x, grad = make.values(*shape), make.values(*shape)
            if "batch" in name:
                weight, bias = _norm_arguments(make, 12)
                for training in (True, False):

                    def forward(
                        x: Tensor = x, weight: Tensor = weight, bias: Tensor = bias, training: bool = training
                    ) -> Any:
                        mean, var = candelabra.full((12,), 0.25), candelabra.full((12,), 0.5)
                        return [
                            *OPERATORS["native_batch_norm"](x, weight, bias, mean, var, training, 0.1, 1e-5),
                            mean,
                            var,
                        ]

                    if name == "native_batch_norm":
                        yield forward
                    else:
                        _, mean, rstd, *_ = forward()
                        if not training:
                            mean, rstd = _norm_arguments(make, 12)
                        yield lambda g=grad, x=x, w=weight, m=mean, r=rstd, t=training: OPERATORS[name](
                            g, x, w, m, r, t
                        )
            elif "rms" in name:
                size = list(shape[2:])
                weight = make.values(*size)
                if name == "_fused_rms_norm":
                    yield lambda x=x, s=size, w=weight: OPERATORS[name](x, s, w, 1e-5)
                else:
                    _, rstd = OPERATORS["_fused_rms_norm"](x, size, weight, 1e-5)
                    yield lambda g=grad, x=x, s=size, r=rstd, w=weight: OPERATORS[name](g, x, s, r, w)
            elif "layer" in name:
                size = list(shape[2:])
                weight, bias = make.values(*size), make.values(*size)
                if name == "native_layer_norm":
                    yield lambda x=x, s=size, w=weight, b=bias: OPERATORS[name](x, s, w, b, 1e-5)
                else:
                    _, mean, rstd = OPERATORS["native_layer_norm"](x, size, weight, bias, 1e-5)
                    yield lambda g=grad, x=x, s=size, m=mean, r=rstd, w=weight: OPERATORS[name](g, x, s, m, r, w)
            else:
                weight, bias = _norm_arguments(make, 12)
                if name == "native_group_norm":
                    yield lambda x=x, w=weight, b=bias: OPERATORS[name](x, w, b, 3, 1e-5)
                else:
                    _, mean, rstd = OPERATORS["native_group_norm"](x, weight, bias, 3, 1e-5)
                    yield lambda g=grad, x=x, m=mean, r=rstd, w=weight: OPERATORS[name](g, x, m, r, w, 3)

    return recipe


def _optimizer(name: str, lists: int, *numbers: Any) -> Recipe:
    """`lists` lists of tensors, which are changed in place, parameters and gradients among them."""

    def recipe(make: Maker) -> Iterator[Call]:
        drawn = [[make.values(ROWS, COLUMNS), make.values(7), make.values(40009)] for _ in range(lists)]

        def call() -> Any:
            copies = [[x.clone() for x in one] for one in drawn]
            OPERATORS[name](*copies, *numbers)
            return copies

        yield call

    return recipe


def _changed(name: str, change: Callable[[Maker], tuple[Any, ...]]) -> Recipe:
    """An operator that changes its first argument, of each layout."""

    def recipe(make: Maker) -> Iterator[Call]:
        for x in make.layouts():
            more = change(make)
            yield lambda x=x, more=more: OPERATORS[name](x.clone(), *more)

    return recipe


def _indexed(name: str, *more: Any, source: bool = True, **keywords: Any) -> Recipe:
    """An operator of a tensor, a dimension, places of slices, of which some are named often, and
    what is put there.
    """

    def recipe(make: Maker) -> Iterator[Call]:
        for rows, columns, count in ((ROWS, COLUMNS, 400), (20011, 5, 30011), (5, 20011, 3)):
            x, index = make.values(rows, columns), make.indices(rows, count)
            arguments = (x, 0, index, *([make.values(count, columns)] if source else []), *more)
            yield lambda arguments=arguments: OPERATORS[name](*arguments, **keywords)
            turned = (x.t(), 1, index, *([make.values(columns, count)] if source else []), *more)
            yield lambda turned=turned: OPERATORS[name](*turned, **keywords)

    return recipe


def _gridded(name: str, source: bool) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        for dim in (0, 1):
            for shape in ((ROWS, COLUMNS), (20011, 5)):
                x, index = make.values(*shape), make.indices(shape[dim], *shape)
                arguments = (x, dim, index, *([make.values(*shape)] if source else []))
                yield lambda arguments=arguments: OPERATORS[name](*arguments)

    return recipe


def _bisect(make: Maker) -> Iterator[Call]:
    edges, values = make.values(ROWS, 50).sort(1).values, make.values(ROWS, COLUMNS)
    yield lambda: OPERATORS["_searchsorted"](edges, values, False, False, None)
    line, flat = edges[0].clone(), make.values(120011)
    yield lambda: OPERATORS["_searchsorted"](line, flat, True, True, None)


def _scatter_reduce(make: Maker) -> Iterator[Call]:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for dim, shape in ((0, (ROWS, COLUMNS)), (1, (ROWS, COLUMNS)), (0, (20011, 5))):
            x, index, source = make.values(*shape), make.indices(7, *shape), make.values(*shape)
            yield lambda x=x, d=dim, i=index, s=source, r=reduce: OPERATORS["scatter_reduce"](
                x, d, i, s, r, include_self=False
            )


def _bags(name: str) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        weight, indices = make.values(500, 33), make.indices(500, 9001)
        offsets = candelabra.arange(0, 9001, 7)
        grad = make.values(offsets.shape[0], 33)
        for mode in ("sum", "mean", "max"):
            arguments = (weight, indices, offsets, mode, None, False, False, -1)
            if name == "_embedding_bag":
                yield lambda a=arguments: OPERATORS[name](*a)
                continue
            _, *places = OPERATORS["_embedding_bag"](*arguments)
            yield lambda p=places, m=mode: OPERATORS[name](grad, indices, *p, 500, m, None, False, -1)

    return recipe


def _resampling(name: str) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        modes = ("nearest", "linear", "cubic")
        for x, new in ((make.values(3, 7, 41, 53), [67, 59]), (make.values(2, 3, 97, 83).transpose(2, 3), [31, 40])):
            old = list(x.shape)
            grad = make.values(*old[:2], *new)
            for mode in modes:
                for antialias in (False, True) if mode != "nearest" else (False,):
                    if name == "_upsample":
                        yield lambda x=x, n=new, m=mode, a=antialias: OPERATORS[name](x, n, [], m, False, a)
                    else:
                        yield lambda g=grad, o=old, m=mode, a=antialias: OPERATORS[name](g, o, [], m, False, a)

    return recipe


def _grid(name: str) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        x, grid = make.values(3, 5, 41, 53), make.values(3, 67, 59, 2, low=-1.2, high=1.2)
        grad = make.values(3, 5, 67, 59)
        for mode in ("bilinear", "nearest", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                if name == "grid_sampler":
                    yield lambda m=mode, p=padding: OPERATORS[name](x, grid, m, p, False)
                else:
                    yield lambda m=mode, p=padding: OPERATORS[name](grad, x, grid, m, p, False, [True, True])

    return recipe


def _edges(name: str) -> Recipe:
    def recipe(make: Maker) -> Iterator[Call]:
        for shape, padding in (((5, 7, 61, 53), [3, 4, 5, 6]), ((ROWS, COLUMNS), [4, 9])):
            x = make.values(*shape)
            for mode in ("reflect", "replicate"):
                made = OPERATORS["_reflection_replication_pad"](x, padding, mode)
                if name == "_reflection_replication_pad":
                    yield lambda x=x, p=padding, m=mode: OPERATORS[name](x, p, m)
                else:
                    grad = make.values(*made.shape)
                    yield lambda g=grad, s=shape, p=padding, m=mode: OPERATORS[name](g, list(s), p, m)

    return recipe


def _distances(make: Maker) -> Iterator[Call]:
    x, y = make.values(2, 150, 9), make.values(2, 170, 9)
    for p in (0.0, 1.0, 2.0, 3.5, float("inf")):
        yield lambda p=p: OPERATORS["_cdist_forward"](x, y, p)


def _distances_backward(make: Maker) -> Iterator[Call]:
    x, y, grad = make.values(2, 150, 9), make.values(2, 170, 9), make.values(2, 150, 170)
    for p in (1.0, 2.0, 3.5, float("inf")):
        made = OPERATORS["_cdist_forward"](x, y, p)
        yield lambda p=p, made=made: OPERATORS["_cdist_backward"](grad, x, y, made, p)


def _patches_backward(make: Maker) -> Iterator[Call]:
    window: tuple[Any, ...] = ([3, 2], [1, 2], [1, 0], [2, 1])
    grad = make.values(*OPERATORS["im2col"](make.values(3, 5, 61, 53), *window).shape)
    yield lambda: OPERATORS["col2im"](grad, [61, 53], *window)


SHAPE = (ROWS, COLUMNS)
AMONG = ("all", "median", "nanmedian")
RECIPES: dict[str, Recipe] = {
    "fill_": _changed("fill_", lambda make: (0.3,)),
    "arange": _calls(lambda make: lambda: OPERATORS["arange"](0.5, 90000, 0.7, dtype=candelabra.float32)),
    "linspace": _calls(lambda make: lambda: OPERATORS["linspace"](-1.5, 3.7, 100003, dtype=candelabra.float32)),
    "copy_": _changed("copy_", lambda make: (make.values(COLUMNS, ROWS).t(),)),
    "lstm_sequence": _recurrent(["lstm"], lambda gates, h, c, w, _, cell: OPERATORS["lstm_sequence"](gates, h, c, w, False)),
    "recurrent_sequence": _recurrent(CELLS, lambda *given: OPERATORS["recurrent_sequence"](*given[:5], [], True, given[5])),
    "recurrent_states": _recurrent(CELLS, lambda *given: OPERATORS["recurrent_states"](*given[:5], [], True, given[5])),
    "where": _calls(
        lambda make: lambda m=make.mask(*SHAPE), a=make.values(*SHAPE), b=make.values(*SHAPE): OPERATORS["where"](m, a, b),
    ),
    "clamp": _elementwise(3, name="clamp"),
    "div": _calls(
        *(
            lambda make, mode=mode: lambda a=make.values(*SHAPE), b=make.values(*SHAPE): OPERATORS["div"](a, b, rounding_mode=mode)
            for mode in (None, "floor", "trunc")
        )
    ),
    "gelu": _calls(
        *(
            lambda make, way=way: lambda x=make.values(*SHAPE, low=-3, high=3): OPERATORS["gelu"](x, approximate=way)
            for way in ("none", "tanh")
        )
    ),
    "threshold_backward": _elementwise(2, 0.5, name="threshold_backward"),
    "nan_to_num": _elementwise(1, name="nan_to_num"),
    **{name: _reduction(name) for name in ("sum", "mean", "amax", "amin", "_aminmax", "all", "any", "var", "std", "logsumexp")},
    **{name: _along(name, dims=(0, 1, None)) for name in ("prod", "argmax", "argmin")},
    **{name: _along(name) for name in ("max_with_indices", "min_with_indices", "cumsum", "cumprod", "logcumsumexp", "sort", "softmax", "log_softmax")},
    "_lu_pivots_to_permutation": _calls(
        lambda make: lambda x=(make.values(*SHAPE).abs() * 90).floor().clamp(max=300).to(candelabra.int32) + 1: OPERATORS["_lu_pivots_to_permutation"](x, 1)
    ),
    "_cummax_cummin": _calls(
        *(
            lambda make, dim=dim, up=up: lambda x=make.values(*SHAPE): OPERATORS["_cummax_cummin"](x, dim, up)
            for dim in (0, 1)
            for up in (True, False)
        )
    ),
    "_constant_pad_nd": _calls(
        lambda make: lambda x=make.values(5, 7, 61, 53): OPERATORS["_constant_pad_nd"](x, [3, -4, 5, 6], 0.5),
        lambda make: lambda x=make.values(*SHAPE).t(): OPERATORS["_constant_pad_nd"](x, [4, 9], -1),
    ),
    "im2col": _calls(lambda make: lambda x=make.values(3, 5, 61, 53): OPERATORS["im2col"](x, [3, 2], [1, 2], [1, 0], [2, 1])),
    "col2im": _patches_backward,
    "_kthvalue_index": _calls(
        *(
            lambda make, among=among, dim=dim: lambda x=make.values(*SHAPE): OPERATORS["_kthvalue_index"](x, dim, 7, among)
            for among in AMONG
            for dim in (0, 1)
        )
    ),
    "_mode_index": _calls(
        *(lambda make, shape=shape, dim=dim: lambda x=(make.values(*shape) * 20).floor(): OPERATORS["_mode_index"](x, dim)
          for shape, dim in ((SHAPE, 0), (SHAPE, 1), ((100003,), 0)))
    ),
    "_tril_triu_indices": _calls(lambda make: lambda: OPERATORS["_tril_triu_indices"](701, 503, 3, True, dtype=candelabra.int64)),
    **{
        name: _calls(lambda make, name=name: lambda x=make.values(3, 36, 24, 54): OPERATORS[name](x, 3))
        for name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle")
    },
    "_histc": _calls(lambda make: lambda x=make.values(*SHAPE): OPERATORS["_histc"](x, 50, 0.0, 1.0)),
    "_pdist_forward": _calls(
        *(lambda make, p=p: lambda x=make.values(170, 9): OPERATORS["_pdist_forward"](x, p) for p in (0.0, 1.0, 2.0, 3.5))
    ),
    "_cdist_forward": _distances,
    "_cdist_backward": _distances_backward,
    "linalg_vector_norm": _calls(
        *(
            lambda make, p=p, dim=dim: lambda x=make.values(*SHAPE): OPERATORS["linalg_vector_norm"](x, p, dim)
            for p in (0, 1, 2, 3.5, float("inf"), -float("inf"))
            for dim in (None, [0], [1])
        )
    ),
    "topk": _calls(
        *(
            lambda make, dim=dim, k=k: lambda x=make.values(*SHAPE): OPERATORS["topk"](x, k, dim)
            for dim, k in ((0, 3), (1, 40), (1, 337))
        ),
        lambda make: lambda x=make.values(100003): OPERATORS["topk"](x, 1000, 0),
    ),
    "softmax_backward": _calls(
        *(lambda make, d=d: lambda g=make.values(*SHAPE), y=make.values(*SHAPE): OPERATORS["softmax_backward"](g, y, d) for d in (0, 1))
    ),
    "log_softmax_backward": _calls(
        *(
            lambda make, d=d: lambda g=make.values(*SHAPE), y=make.values(*SHAPE): OPERATORS["log_softmax_backward"](g, y, d)
            for d in (0, 1)
        )
    ),
    "cat": _calls(
        lambda make: lambda a=make.values(*SHAPE), b=make.values(99, COLUMNS): OPERATORS["cat"]([a, b], 0),
        lambda make: lambda a=make.values(*SHAPE), b=make.values(99, ROWS): OPERATORS["cat"]([a, b.t()], 1),
    ),
    "stack": _calls(
        *(lambda make, d=d: lambda a=make.values(*SHAPE), b=make.values(*SHAPE): OPERATORS["stack"]([a, b], d) for d in (0, 1, 2))
    ),
    "flip": _calls(*(lambda make, d=d: lambda x=make.values(*SHAPE): OPERATORS["flip"](x, d) for d in ([0], [1], [0, 1]))),
    "tril": _elementwise(1, name="tril"),
    "triu": _elementwise(1, name="triu"),
    "gather": _gridded("gather", False),
    "scatter": _gridded("scatter", True),
    "scatter_add": _gridded("scatter_add", True),
    "index_select": _indexed("index_select", source=False),
    "index_add": _indexed("index_add", alpha=2),
    "index_copy": _indexed("index_copy"),
    "index_fill": _indexed("index_fill", 1, source=False),
    "index": _calls(
        lambda make: lambda x=make.values(*SHAPE), i=make.indices(ROWS, 500): OPERATORS["index"](x, [i, None]),
        lambda make: lambda x=make.values(*SHAPE), i=make.indices(ROWS, 120011), j=make.indices(COLUMNS, 120011): OPERATORS["index"](
            x, [i, j]
        ),
    ),
    "index_put": _calls(
        *(
            lambda make, add=add: lambda x=make.values(*SHAPE), i=make.indices(ROWS, 120011), j=make.indices(COLUMNS, 120011), v=make.values(
                120011
            ): OPERATORS["index_put"](x, [i, j], v, add)
            for add in (False, True)
        ),
        lambda make: lambda x=make.values(*SHAPE), i=make.indices(ROWS, 500), v=make.values(500, COLUMNS): OPERATORS["index_put"](
            x, [i, None], v, True
        ),
    ),
    "take": _calls(lambda make: lambda x=make.values(*SHAPE), i=make.indices(ROWS * COLUMNS, 120011): OPERATORS["take"](x, i)),
    "masked_fill": _calls(
        lambda make: lambda x=make.values(*SHAPE), m=make.mask(*SHAPE), v=make.values(1)[0]: OPERATORS["masked_fill"](x, m, v)
    ),
    "masked_scatter": _calls(
        lambda make: lambda x=make.values(*SHAPE), m=make.mask(*SHAPE), v=make.values(*SHAPE): OPERATORS["masked_scatter"](x, m, v)
    ),
    "masked_select": _calls(lambda make: lambda x=make.values(*SHAPE), m=make.mask(*SHAPE): OPERATORS["masked_select"](x, m)),
    "nonzero": _calls(lambda make: lambda m=make.mask(*SHAPE): OPERATORS["nonzero"](m)),
    "embedding": _calls(lambda make: lambda w=make.values(1000, 33), i=make.indices(1000, 60, 70): OPERATORS["embedding"](w, i)),
    "embedding_backward": _calls(
        lambda make: lambda g=make.values(60, 70, 33), i=make.indices(50, 60, 70): OPERATORS["embedding_backward"](g, i, 50, 3),
    ),
    "nll_loss_forward": _nll, "threshold": _elementwise(1, 0.5, 2.0, name="threshold"),
    "nll_loss_backward": _nll_backward,
    "cross_entropy_forward": _cross_entropy,
    "cross_entropy_backward": _cross_entropy_backward,
    "_ctc_loss": _ctc_forward,
    "_ctc_loss_backward": _ctc_backward,
    **{name: _pool(name) for name in FAMILIES["pooling"]},
    **{name: _normalization(name) for name in FAMILIES["normalization"]},
    "uniform_": _seeded("uniform_"), "normal_": _seeded("normal_"), "bernoulli_": _seeded("bernoulli_", 0.3),
    "exponential_": _seeded("exponential_"), "random_range_": _seeded("random_range_", 0, 100), "bernoulli": _seeded("bernoulli"),
    "native_dropout": _seeded("native_dropout", 0.4),
    "randperm": _calls(lambda make: lambda: (candelabra.manual_seed(3), OPERATORS["randperm"](100003, dtype=candelabra.int64))[1]),
    "_searchsorted": _bisect,
    "scatter_reduce": _scatter_reduce,
    **{name: _bags(name) for name in ("_embedding_bag", "_embedding_bag_backward")},
    **{name: _resampling(name) for name in ("_upsample", "_upsample_backward")},
    **{name: _grid(name) for name in ("grid_sampler", "grid_sampler_backward")},
    **{name: _edges(name) for name in ("_reflection_replication_pad", "_reflection_replication_pad_backward")},
    "_fused_sgd_": _optimizer("_fused_sgd_", 3, 0.1, 0.01, 0.9, 0.1, True, False, False),
    "_fused_adam_": _optimizer("_fused_adam_", 5, 0.1, 0.9, 0.99, 1e-8, 0.01, False, True, False, 3),
    "_fused_rmsprop_": _optimizer("_fused_rmsprop_", 5, 0.1, 0.9, 1e-8, 0.01, 0.9, True, False),
    "_fused_adagrad_": _optimizer("_fused_adagrad_", 3, 0.1, 0.1, 0.01, 1e-8, False, 3),
    "_fused_adamax_": _optimizer("_fused_adamax_", 4, 0.1, 0.9, 0.99, 1e-8, 0.01, False, 3),
    "_fused_nadam_": _optimizer("_fused_nadam_", 4, 0.1, 0.9, 0.99, 1e-8, 0.01, 0.5, 0.6, 0.3, False, False, 3),
    "_fused_radam_": _optimizer("_fused_radam_", 4, 0.1, 0.9, 0.99, 1e-8, 0.01, False, False, 9),
    "_fused_adadelta_": _optimizer("_fused_adadelta_", 4, 0.1, 0.9, 1e-6, 0.01, False),
    "_fused_rprop_": _optimizer("_fused_rprop_", 4, 0.5, 1.2, 1e-6, 50.0, False),
    "_fused_asgd_": _optimizer("_fused_asgd_", 3, 0.1, 0.1, 0.5, 0.01, False),
}  # fmt: skip


def recipe_of(name: str) -> Recipe:
    """The calls of an operator: those of its recipe, or of as many tensors as it needs."""
    if name in RECIPES:
        return RECIPES[name]
    schema = OPERATORS[name].schema
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    parts = [part.strip() for part in inside.split("*")[0].split(",") if part.strip()]
    required = [part for part in parts if "=" not in part]
    assert all(part.startswith("Tensor ") for part in required), (
        f"{name} needs a recipe in {__name__}, or a reason to be left out"
    )
    return _elementwise(len(required), name=name)
