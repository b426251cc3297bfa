"""What ``out=`` has to be: its dtype, and what memory it may share with the inputs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

FIRST = c.tensor([0, 1, 2])

EXACT = {
    "abs": lambda x, out: c.abs(x, out=out),
    "floor": lambda x, out: c.floor(x, out=out),
    "clamp": lambda x, out: c.clamp(x, 0, 1, out=out),
    "where": lambda x, out: c.where(x > 0, x, x, out=out),
    "gather": lambda x, out: c.gather(x, 0, FIRST, out=out),
    "index_select": lambda x, out: c.index_select(x, 0, FIRST, out=out),
    "take": lambda x, out: c.take(x, FIRST, out=out),
    "amax": lambda x, out: c.amax(x.view(1, 3), 0, out=out),
    "mm": lambda x, out: c.mm(x.view(3, 1), x.view(1, 3), out=out),
    "softmax": lambda x, out: c.ops.softmax(x, 0, out=out),
    "masked_select": lambda x, out: c.masked_select(x, x > 0, out=out),
    "logcumsumexp": lambda x, out: c.logcumsumexp(x, 0, out=out),
    "histc": lambda x, out: c.histc(x, 3, out=out),
    "scatter_reduce": lambda x, out: c.scatter_reduce(x, 0, FIRST, x, "sum", out=out),
}


@pytest.mark.parametrize("name", EXACT)
def test_dtype_of_the_result(name):
    x = c.tensor([1.0, 2.0, 3.0])
    for dtype in (c.float64, c.bfloat16, c.complex64):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32"):
            EXACT[name](x, c.empty(0, dtype=dtype))
    EXACT[name](x, c.empty(0))


def test_dtypes_that_are_cast():
    x = c.tensor([1.5, 2.5, 3.0])
    assert c.add(x, 1, out=c.empty(3, dtype=c.float64)).tolist() == [2.5, 3.5, 4]
    assert c.sum(x, 0, out=c.empty((), dtype=c.int64)).item() == 6  # added up as whole numbers
    assert c.prod(x, 0, out=c.empty((), dtype=c.int64)).item() == 6
    assert c.sum(x, 0, out=c.empty((), dtype=c.bool)).item() is True
    with pytest.raises(RuntimeError, match="can't be cast"):
        c.mean(x, 0, out=c.empty((), dtype=c.int64))


def test_indices_are_int64():
    x = c.ones(2, 3)
    for call in (
        lambda out: c.argmax(x, 0, out=out[1]), lambda out: c.sort(x, 0, out=out), lambda out: c.topk(x, 2, 0, out=out),
        lambda out: c.max(x, 0, out=out), lambda out: c.median(x, 0, out=out), lambda out: c.kthvalue(x, 1, 0, out=out),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype int64"):
            call((c.empty(0), c.empty(0)))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype int64"):
        c.multinomial(c.ones(2), 1, out=c.empty(0))


def test_truths():
    bytes, bools = c.tensor([0, 2], dtype=c.uint8), c.tensor([False, True])
    for reduce, truth in ((c.all, False), (c.any, True)):
        assert reduce(bytes).dtype is c.uint8
        assert reduce(bytes).item() == int(truth)
        assert reduce(bytes, 0).dtype is c.uint8
        assert reduce(bools).dtype is c.bool
        assert reduce(bools, 0, out=c.empty((), dtype=c.uint8)).item() == int(truth)
        assert reduce(bytes, 0, out=c.empty((), dtype=c.bool)).item() is truth
        with pytest.raises(RuntimeError, match="only supports bool tensor for result, got: Float"):
            reduce(bools, 0, out=c.empty(()))


WHOLE = {
    "add": lambda x, out: c.add(x, 1, out=out),
    "mul": lambda x, out: c.mul(2.0, x, out=out),
    "exp": lambda x, out: c.exp(x, out=out),
    "lerp": lambda x, out: c.lerp(x, x, 0.5, out=out),
    "where": lambda x, out: c.where(x > 2, x, -x, out=out),
    "clamp": lambda x, out: c.clamp(x, 2, 3, out=out),
    "cumsum": lambda x, out: c.cumsum(x, 0, out=out),
    "scatter": lambda x, out: c.scatter(x, 0, c.tensor([0]), c.tensor([9.0]), out=out),
    "index_add": lambda x, out: c.index_add(x, 0, c.tensor([0]), c.tensor([9.0]), out=out),
    "index_copy": lambda x, out: c.index_copy(x, 0, c.tensor([0]), c.tensor([9.0]), out=out),
    "logcumsumexp": lambda x, out: c.logcumsumexp(x, 0, out=out),
    "msort": lambda x, out: c.msort(x, out=out),
    "addmv": lambda x, out: c.addmv(x, c.eye(3), c.ones(3), out=out),
    "kron": lambda x, out: c.kron(x, c.ones(1), out=out),
    "scatter_reduce": lambda x, out: c.scatter_reduce(x, 0, FIRST, c.ones(3), "sum", out=out),
    "index_reduce": lambda x, out: c.index_reduce(x, 0, FIRST, 2 * c.ones(3), "prod", out=out),
    "max": lambda x, out: c.max(x.view(3, 1), 1, out=(out, c.empty(0, dtype=c.int64)))[0],
    "median": lambda x, out: c.median(x.view(3, 1), 1, out=(out, c.empty(0, dtype=c.int64)))[0],
    "mode": lambda x, out: c.mode(x.view(3, 1), 1, out=(out, c.empty(0, dtype=c.int64)))[0],
    "sort": lambda x, out: c.sort(x, descending=True, out=(out, c.empty(0, dtype=c.int64)))[0],
}
APART = {
    "kthvalue": lambda x, out: c.kthvalue(x.view(3, 1), 1, 1, out=(out, c.empty(0, dtype=c.int64)))[0],
    "take_along_dim": lambda x, out: c.take_along_dim(x, FIRST, 0, out=out),
    "cross": lambda x, out: c.linalg.cross(x, c.ones(3), out=out),
    "gather": lambda x, out: c.gather(x, 0, FIRST, out=out),
    "index_select": lambda x, out: c.index_select(x, 0, FIRST, out=out),
    "take": lambda x, out: c.take(x, FIRST, out=out),
    "cat": lambda x, out: c.cat([x[:1], x[1:]], out=out),
    "masked_select": lambda x, out: c.masked_select(x, x > -1, out=out),
}


@pytest.mark.parametrize("name", [*WHOLE, *APART])
def test_another_place_of_an_input_is_refused(name):
    memory = c.arange(1.0, 7.0)
    call = (WHOLE | APART)[name]
    for out in (memory[1:4], memory[2:5], memory[:6:2]):
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            call(memory[:3], out)
    assert memory.tolist() == [1, 2, 3, 4, 5, 6]
    expected = call(c.arange(1.0, 4.0), c.empty(3)).tolist()
    assert call(memory[:3], memory[3:]).tolist() == expected
    assert memory[:3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", WHOLE)
def test_the_input_itself(name):
    memory = c.arange(1.0, 7.0)
    expected = WHOLE[name](memory[:3].clone(), c.empty(3)).tolist()
    assert WHOLE[name](memory[:3], memory[:3]).tolist() == expected
    assert memory[3:].tolist() == [4, 5, 6]


@pytest.mark.parametrize("name", APART)
def test_the_input_itself_is_refused(name):
    memory = c.arange(1.0, 7.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        APART[name](memory[:3], memory[:3])


def test_reductions_may_overwrite_what_they_read():
    memory = np.arange(1.0, 7.0)
    x = c.tensor(memory)
    assert c.sum(x.view(2, 3), 0, out=x[:3]).tolist() == memory.reshape(2, 3).sum(0).tolist()
    y = c.tensor(memory)
    assert c.mv(y[:4].view(2, 2), y[4:], out=y[1:3]).tolist() == (memory[:4].reshape(2, 2) @ memory[4:]).tolist()


def test_factories_resize():
    out = c.empty(0)
    assert c.eye(2, 1, out=out) is out
    assert out.tolist() == [[1], [0]]
    with pytest.warns(UserWarning, match="was resized"):
        assert c.ones(2, out=c.empty(3)).shape == (2,)


#: A kernel with several results, a decomposition, and a function on top.
SEVERAL = {
    "max": lambda x, out: c.max(x, 1, out=out),
    "linalg_slogdet": lambda x, out: c.linalg.slogdet(x, out=out),
    "aminmax": lambda x, out: c.aminmax(x, dim=1, out=out),
}


@pytest.mark.parametrize("kind", [tuple, list])
@pytest.mark.parametrize("name", SEVERAL)
def test_several_results(name, kind):
    x = c.tensor([[3.0, 1.0], [2.0, 4.0]])
    plain = SEVERAL[name](x, None)
    outs = [c.empty(0, dtype=result.dtype) for result in plain]
    given = SEVERAL[name](x, kind(outs))
    assert [out.tolist() for out in outs] == [result.tolist() for result in plain]
    assert all(result is out for result, out in zip(given, outs, strict=True))


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_of_which_one_cannot_be_given(name):
    x = c.tensor([[3.0, 1.0], [2.0, 4.0]])
    dtype = SEVERAL[name](x, None)[0].dtype
    first = c.full((7,), 9, dtype=dtype)
    for wrong, error in ((c.empty(0, dtype=c.bool), RuntimeError), (3, TypeError)):
        with pytest.raises(error, match="out"):
            SEVERAL[name](x, (first, wrong))
    for wrong in ((first,), (first, first, first), 3):
        with pytest.raises(TypeError, match="argument 'out' must"):
            SEVERAL[name](x, wrong)
    assert first.tolist() == [9] * 7
