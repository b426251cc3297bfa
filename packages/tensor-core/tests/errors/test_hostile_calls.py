"""Every function with arguments that nobody means, in a process of their own: none ends it, and
what raises has written nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.testing import hostile

NAMESPACES = [
    ["candelabra.linalg"], ["candelabra.fft"], ["candelabra.special", "candelabra.signal.windows"], ["candelabra.ops"], ["candelabra"],
    ["candelabra.Tensor"],
]  # fmt: skip


@pytest.mark.parametrize("namespaces", NAMESPACES, ids=lambda names: names[0])
def test_namespace(namespaces):
    report = hostile.run(namespaces, calls=3)
    assert report.crashes == []
    assert report.wrong == []
    assert report.calls >= 3 * 10


def test_what_goes_wrong_is_seen():
    def ending(input: candelabra.Tensor) -> None:
        raise KeyError("a key")

    def changing(input: candelabra.Tensor, dim: int) -> None:
        input.resize_(0)
        raise ValueError("after it was changed")

    def growing(input: candelabra.Tensor) -> None:
        input.resize_(2**24)
        raise ValueError("after it has grown")

    assert "KeyError" in str(hostile.attack("ending", ending, 0, lambda line: None))
    assert any(
        "an argument was changed" in str(hostile.attack("changing", changing, seed, lambda line: None))
        for seed in range(9)
    )
    assert "an argument was changed" in str(hostile.attack("growing", growing, 1, lambda line: None))
    assert hostile.attack("abs", candelabra.abs, 0, lambda line: None) is None


def test_differences_end_with_the_elements():
    for sizes in ((3, 0), (3, 4)):
        assert candelabra.zeros(sizes).diff(2**63 - 1).shape == (3, 0)
    assert candelabra.arange(4).square().diff(3).tolist() == [0]
    assert candelabra.arange(4).square().diff(2).tolist() == [2, 2]


X = candelabra.tensor([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda out: candelabra.mode(X, 1, out=out),
        lambda out: candelabra.kthvalue(X, 1, 1, out=out),
        lambda out: candelabra.median(X, 1, out=out),
        lambda out: candelabra.max(X, 1, out=out),
        lambda out: candelabra.sort(X, 1, out=out),
        lambda out: candelabra.topk(X, 1, 1, out=out),
        lambda out: candelabra.cummax(X, 1, out=out),
        lambda out: candelabra.frexp(X, out=out),
        lambda out: candelabra.aminmax(X, dim=1, out=out),
        lambda out: candelabra.linalg.slogdet(X[:, 1:], out=out),
        lambda out: candelabra.linalg.qr(X, out=out),
        lambda out: candelabra.split_copy(X, [1, 1], out=out),
    ],
)
def test_of_several_results_none_is_written_when_one_is_refused(call):
    first, second = candelabra.zeros(7), candelabra.zeros(7, dtype=candelabra.bool)
    with pytest.raises(RuntimeError, match="dtype|can't be cast"):
        call((first, second))
    np.testing.assert_array_equal(first.numpy(), np.zeros(7))
    for wrong in ((first,), 3):
        with pytest.raises((TypeError, RuntimeError), match="out"):
            call(wrong)
    np.testing.assert_array_equal(first.numpy(), np.zeros(7))


@pytest.mark.parametrize(
    "call",
    [
        lambda out: candelabra.randn(3, out=out),
        lambda out: candelabra.rand(3, out=out),
        lambda out: candelabra.logspace(0, 1, 3, out=out, requires_grad=True),
        lambda out: candelabra.zeros(3, out=out, requires_grad=True),
        lambda out: candelabra.full((3,), 2, out=out, requires_grad=True),
        lambda out: candelabra.ops.ones(3, out=out, requires_grad=True),
        lambda out: candelabra.empty(3, out=out, requires_grad=True),
        lambda out: candelabra.eye(3, out=out, requires_grad=True),
        lambda out: candelabra.randint(3, (3,), out=out, requires_grad=True),
    ],
)
def test_memory_keeps_its_sizes_when_its_dtype_is_refused(call):
    out = candelabra.zeros(2, 2, dtype=candelabra.int64)
    with pytest.raises(
        (NotImplementedError, RuntimeError), match="not implemented for candelabra.int64|can require gradients"
    ):
        call(out)
    assert out.tolist() == [[0, 0], [0, 0]]


def test_the_triangle_is_a_string():
    for function in (candelabra.linalg.eigh, candelabra.linalg.eigvalsh):
        with pytest.raises(TypeError, match="argument 'UPLO' must be str, not Tensor"):
            function(candelabra.eye(2), X)


class Clearing:
    """An integer that empties a list when it is asked for."""

    def __init__(self, values: list[object]) -> None:
        self.values = values

    def __index__(self) -> int:
        self.values.clear()
        return 1


@pytest.mark.parametrize(
    "call",
    [
        lambda values: X.__dlpack__(dl_device=values),
        lambda values: X.__dlpack__(max_version=values),
        lambda values: candelabra.Tensor._make_wrapper_subclass(candelabra.Tensor, values, strides=values),
        lambda values: X.as_strided(values, values),
        lambda values: X.permute(values),
        lambda values: candelabra.tensor([values, values]),
        lambda values: candelabra.zeros(values),
        lambda values: X[values],
    ],
)
def test_a_list_that_is_emptied_while_it_is_parsed(call):
    values: list[object] = []
    values += [Clearing(values), 1]
    try:
        call(values)
    except (TypeError, ValueError, RuntimeError, IndexError, BufferError):
        assert values == [] or isinstance(values[0], Clearing)
    assert X.tolist() == [[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]]


def test_results_that_hold_themselves():
    class Subclass(candelabra.Tensor):
        pass

    results: list[object] = []
    results.append(results)
    with pytest.raises(RecursionError):
        Subclass.__torch_function__(lambda x: results, (Subclass,), (X,))


WIDE = candelabra.zeros((1,) * 64)


@pytest.mark.parametrize(
    "call",
    [
        lambda: candelabra.stack([WIDE, WIDE]),
        lambda: candelabra.stack([WIDE, WIDE], -1),
        lambda: candelabra.stack([WIDE[..., :0], WIDE[..., :0]], -1),
        lambda: WIDE[None],
        lambda: WIDE.unsqueeze(0),
        lambda: candelabra.diag_embed(WIDE),
        lambda: candelabra.tensordot(WIDE, WIDE, 0),
        lambda: candelabra.ops.embedding(candelabra.ones(3, 2), WIDE.long()),
        lambda: X[WIDE.long()],
        lambda: candelabra.view_as_real(WIDE.to(candelabra.complex64)),
        lambda: candelabra.kron(WIDE, WIDE).unsqueeze(-1),
        lambda: candelabra.stack([WIDE, WIDE], out=candelabra.zeros(0)),
        lambda: candelabra.take_along_dim(WIDE, WIDE.long(), 0)[None],
    ],
)
def test_no_tensor_has_more_than_64_dimensions(call):
    with pytest.raises((RuntimeError, IndexError), match="at most 64|dimensions|up to 64 dims"):
        call()


@pytest.mark.parametrize(
    "schema",
    [
        "(int[x] s) -> Tensor",
        "(int[0] s) -> Tensor",
        "(int[2x] s) -> Tensor",
        "(int[99999999999999999999] s) -> Tensor",
        "(int[] s=[[1]]) -> Tensor",
        "(int[] s=" + "[" * 200_000 + ") -> Tensor",
    ],
    ids=["name", "zero", "suffix", "large", "nested", "deep"],
)
def test_schemas_of_lists(schema):
    with pytest.raises(ValueError, match="schema: expected (the length of a list|no list in a list) at position"):
        candelabra._C.declare_operator(f"hostile_schemas::f{schema}", "custom", 0, "", {}, "")


def test_full_is_refused_before_out_is_resized():
    out = candelabra.tensor(1)
    for value in ([-2], None, object(), {}, "1"):
        with pytest.raises(TypeError):
            candelabra.full([2], value, out=out)
        assert out.shape == ()
    assert candelabra.full([2], 3, out=candelabra.zeros(0, dtype=candelabra.int64)).tolist() == [3, 3]


def test_cauchy_is_refused_before_anything_is_written():
    for arguments in (("ij",), (0.0, "1"), (0.0, X), (None,)):
        x = candelabra.ones(2)
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            x.cauchy_(*arguments)
        assert x.tolist() == [1, 1]
