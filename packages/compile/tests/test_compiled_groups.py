"""Groups that the CPU compiles with LLVM: the same bits as ordinary calls."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_functions import random_function

import candelabra
from candelabra import nn

pytest.importorskip("llvmlite")

NUMEL = 70_003
INFINITY = float("inf")
F = nn.functional
FLOATS = [candelabra.float32, candelabra.float64, candelabra.float16, candelabra.bfloat16]
INTEGERS = [candelabra.uint8, candelabra.int8, candelabra.int16, candelabra.int32, candelabra.int64]

UNARY = [
    candelabra.neg, candelabra.abs, candelabra.relu, candelabra.square, lambda x: x * 3 + 1, lambda x: 2 - x,
    lambda x: x.clamp(-1, 2), lambda x: x.clamp(min=1), lambda x: x.clamp(max=1), lambda x: x.masked_fill(x > 1, 2),
    lambda x: candelabra.where(x != 1, x, 3),
]  # fmt: skip
UNARY_OF_FLOATS = [
    candelabra.sqrt, candelabra.rsqrt, candelabra.reciprocal, candelabra.floor, candelabra.ceil, candelabra.trunc,
    lambda x: x**2, lambda x: x**3, lambda x: x**-2, lambda x: x**-1, lambda x: x**0.5, lambda x: x / 3, lambda x: 3 / x,
    F.leaky_relu, F.hardtanh, lambda x: x.masked_fill(x.isnan(), 0.5),
]  # fmt: skip
BINARY = [
    candelabra.add, candelabra.sub, candelabra.mul, candelabra.maximum, candelabra.minimum,
    lambda a, b: a.add(b, alpha=3), lambda a, b: a.sub(b, alpha=2), lambda a, b: candelabra.rsub(a, b, alpha=2),
    lambda a, b: candelabra.where(a > b, a, b), lambda a, b: candelabra.where((a >= b) & (b < 1), b, a),
    lambda a, b: candelabra.where((a == b) | ~(a <= b), b, a), lambda a, b: candelabra.addcmul(a, a, b, value=2),
    lambda a, b: a.clamp(b, b + 1), lambda a, b: a.clamp(min=b), lambda a, b: a.clamp(max=b),
    lambda a, b: candelabra.where(candelabra.logical_xor(a > 0, b > 0), a, b),
]  # fmt: skip
BINARY_OF_FLOATS = [candelabra.div, lambda a, b: candelabra.addcdiv(a, a, b, value=0.3)]
BINARY_OF_INTEGERS = [candelabra.bitwise_and, candelabra.bitwise_or, candelabra.bitwise_xor]


def compiled(function, *arguments, **options):
    made = candelabra.compile(function, fullgraph=True, **options)
    for _ in range(3):
        made(*arguments)
    (program,) = made.programs
    return made, program


def identical(a, b):
    """Whether two tensors have the same bits, except for the signs and payloads of NaN."""
    assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
    if a.dtype in (candelabra.float16, candelabra.bfloat16):
        a, b = a.float(), b.float()
    mine, other = a.contiguous().numpy(), b.contiguous().numpy()
    if mine.dtype.kind == "f":
        return bool(
            (
                (mine.view(f"i{mine.itemsize}") == other.view(f"i{mine.itemsize}"))
                | ((mine != mine) & (other != other))
            ).all()
        )
    return bool((mine == other).all())


def values(dtype, shape=(NUMEL,), seed=0):
    """Random numbers with zeros of both signs, infinities, NaN and small numbers among them."""
    generator = np.random.default_rng(seed)
    if not dtype.is_floating_point:
        return candelabra.from_numpy(generator.integers(-9, 200, shape)).to(dtype)
    made = generator.normal(size=shape) * 3
    special = np.array([0.0, -0.0, INFINITY, -INFINITY, np.nan, 1.0, 2.0, 1e-40, -1e-310, 1e30, -1.0])
    where = generator.random(shape) < 0.2
    made[where] = generator.choice(special, int(where.sum()))
    return candelabra.from_numpy(made).to(dtype)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_groups_of_floats(data):
    function = random_function(data.draw, UNARY + UNARY_OF_FLOATS, BINARY + BINARY_OF_FLOATS)
    dtype = data.draw(st.sampled_from(FLOATS))
    x, y = values(dtype), values(dtype, seed=1)
    made, program = compiled(function, x, y)
    assert all(map(identical, made(x, y), function(x, y)))
    assert program.compiled_sizes == program.group_sizes


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_groups_of_integers(data):
    function = random_function(data.draw, UNARY, BINARY + BINARY_OF_INTEGERS)
    dtype = data.draw(st.sampled_from(INTEGERS))
    x, y = values(dtype), values(dtype, seed=1)
    made, _ = compiled(function, x, y)
    assert all(map(identical, made(x, y), function(x, y)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("number", range(len(UNARY) + len(UNARY_OF_FLOATS)))
def test_each_unary_operator(number, dtype):
    operator = (UNARY + UNARY_OF_FLOATS)[number]

    def function(x):
        return operator(-x) + 1

    x = values(dtype)
    made, program = compiled(function, x)
    assert identical(made(x), function(x))
    assert sum(program.group_sizes) >= 3
    if dtype.itemsize > 2:  # masked_fill of halves is no loop
        assert program.compiled_sizes == program.group_sizes


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_layouts_and_broadcasting(data):
    """Strided, transposed, shifted and broadcast arguments, of which not all can be in a group."""
    function = random_function(data.draw, UNARY, BINARY)
    base = values(candelabra.float32, (402, 400))
    views = [
        base[:300, :300], base[:300, :300].t(), base[1:301, 3:303], base[:300, 7:8], base[5, :300], base[3, 4],
        base[:300, :600:2][:, :1].expand(300, 300), base.as_strided((300, 300), (1, 2)), base[:0, :300],
        base[:300, :300].contiguous(), base.flatten()[:90_000].view(300, 300),
    ]  # fmt: skip
    x, y = data.draw(st.sampled_from(views)), data.draw(st.sampled_from(views))
    try:
        expected = function(x, y)
    except RuntimeError:
        return  # shapes that do not broadcast
    made, _ = compiled(function, x, y)
    assert all(map(identical, made(x, y), expected))


@pytest.mark.parametrize("numel", [65_536, 65_537, 65_599, 81_920 + 63, 1 << 20])
def test_ends_of_tensors_and_tiles(numel):
    def function(x, y):
        z = x * y + 1
        return z - x, z > y

    x, y = values(candelabra.float32, (numel,)), values(candelabra.float32, (numel,), seed=1)
    made, program = compiled(function, x, y)
    assert program.compiled_sizes == [4]
    assert all(map(identical, made(x, y), function(x, y)))


def test_large_results_are_stored_past_the_caches():
    def function(x):
        return (x * 2 + 1).relu() - x

    x = candelabra.randn(9_000_001)
    made, program = compiled(function, x)
    assert program.compiled_sizes == [4]
    assert made(x).equal(function(x))


def test_near_the_definition_in_float64():
    def function(x, y):
        return candelabra.addcmul((x * 1.01 + 0.5) * x - y / 3, x, y, value=0.7).sqrt()

    x, y = candelabra.rand(NUMEL) + 1, candelabra.rand(NUMEL)
    made, program = compiled(function, x, y)
    a, b = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
    expected = np.sqrt((a * 1.01 + 0.5) * a - b / 3 + 0.7 * a * b)
    assert program.compiled_sizes == program.group_sizes
    np.testing.assert_allclose(made(x, y).numpy(), expected, rtol=1e-6)


def test_loops_of_kernels_compute_the_others():
    def function(x):
        y = ((x * 2 + 1).exp() - x).abs()
        return (y * 0.5 - 1).tanh() * y

    x = candelabra.randn(NUMEL)
    made, program = compiled(function, x)
    assert program.group_sizes == [9] and program.compiled_sizes == [9]
    assert identical(made(x), function(x))


def test_in_place_operators_and_masks():
    scale = candelabra.tensor(0.3)

    def function(x):
        y = x * 2
        z = y + scale
        y.add_(z).mul_(x)
        filled = candelabra.empty_like(x).fill_(2.5)
        return y.relu_() + z, filled * z, candelabra.where((y > 0) & ~(z < 1), y, scale)

    x = values(candelabra.float32)
    made, program = compiled(function, x)
    assert sum(program.compiled_sizes) >= 9
    assert all(map(identical, made(x), function(x)))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads(threads):
    def function(x):
        return (x * 2 + 1).relu() - x

    before = candelabra.get_num_threads()
    candelabra.set_num_threads(threads)
    try:
        x = candelabra.randn(1 << 20)
        made, program = compiled(function, x)
        assert program.compiled_sizes == [4] and made(x).equal(function(x))
    finally:
        candelabra.set_num_threads(before)


def test_gradients():
    def plain(x, w):
        return ((x * w).relu() * 2 - x).square().sum()

    x, w = candelabra.randn(NUMEL), candelabra.randn(NUMEL)
    leaf, other = x.clone().requires_grad_(), w.clone().requires_grad_()

    def gradients():
        return candelabra.autograd.grad(plain(leaf, other), (leaf, other))

    made, program = compiled(gradients)
    assert sum(program.compiled_sizes) >= 4
    assert all(map(identical, made(), gradients()))


def test_integers_that_divide_run_one_after_the_other():
    def function(x, y):
        return (x + 1) // y * 2 + 3

    x, y = candelabra.arange(NUMEL), candelabra.ones(NUMEL, dtype=candelabra.int64)
    made, program = compiled(function, x, y)
    assert program.compiled_sizes == [2]
    assert made(x, y).equal(function(x, y))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        made(x, y * 0)
    assert made(x, y).equal(function(x, y))


def test_many_tensors_in_one_group():
    tensors = [candelabra.randn(NUMEL) for _ in range(60)]

    def function(x):
        for tensor in tensors:
            x = x * tensor + 0.5
        return x

    x = candelabra.randn(NUMEL)
    made, _ = compiled(function, x)
    assert made(x).equal(function(x))


def test_max_autotune_is_near():
    def function(x):
        y = x * 2
        parts = [y.exp(), y.tanh(), y.sigmoid(), F.silu(y), F.gelu(y), F.gelu(y, approximate="tanh")]
        return tuple(part * 2 + x for part in parts)

    x = candelabra.linspace(-6, 6, NUMEL)
    made, program = compiled(function, x, mode="max-autotune")
    assert program.compiled_sizes == program.group_sizes
    a = x.double()
    for mine, wanted in zip(made(x), function(a), strict=True):
        error = (mine.double() - wanted).abs() / (wanted.abs() + 1)
        assert error.max().item() < 3e-6
    exact, program = compiled(function, x)
    assert all(map(identical, exact(x), function(x)))


def test_max_autotune_at_the_limits():
    def function(x):
        return tuple(2 * part for part in (x.exp(), x.tanh(), x.sigmoid(), (x * 1).relu()))

    x = candelabra.tensor(
        [0.0, -0.0, INFINITY, -INFINITY, float("nan"), 88.7, 89.0, -87.0, -200.0, 1e-30, 3e38]
    ).repeat(7000)
    made, program = compiled(function, x, mode="max-autotune")
    assert program.compiled_sizes == program.group_sizes
    for mine, wanted in zip(made(x), function(x), strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-6, atol=1e-37)


def test_explain_tells_what_is_compiled():
    def function(x):
        return (x * 2 + 1).exp() - x

    x = candelabra.randn(NUMEL)
    explanation = candelabra.compiler.explain(function)(x)
    assert explanation.group_sizes == [4] and explanation.compiled_sizes == [4] and explanation.is_exact
    assert "Group of 4 operators: 4 compiled, exact" in str(explanation)
    explanation = candelabra.compiler.explain(function, mode="max-autotune")(x)
    assert "Group of 4 operators: 4 compiled, within rounding errors" in str(explanation)


PROGRAM = """
import sys
if "without" in sys.argv:
    sys.modules["llvmlite"] = None
import candelabra
function = lambda x: (x * 2 + 1).relu() - x
small, large = candelabra.randn(1000), candelabra.randn(70_000)
made = candelabra.compile(function, fullgraph=True)
for _ in range(5):
    assert made(small).equal(function(small))
assert "llvmlite.binding" not in sys.modules, "small programs load LLVM"
for _ in range(5):
    assert made(large).equal(function(large))
print(made.programs[0].group_sizes, made.programs[0].compiled_sizes)
"""


@pytest.mark.parametrize("arguments", [[], ["without"]])
def test_without_a_compiler_on_the_path(arguments, tmp_path):
    """LLVM needs no program. Without llvmlite, the loops of the kernels run."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        env={**os.environ, "PATH": "", "CANDELABRA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[4] [4]" and done.stderr == ""


def test_where_llvm_fails_the_kernels_run(monkeypatch, caplog):
    from candelabra_backend_cpu import llvm

    def fails(text):
        raise RuntimeError("no such instruction")

    def function(x):
        return ((x * 2 + 1).relu() - x * 3).floor().abs()

    monkeypatch.setattr(llvm, "compile_text", fails)
    monkeypatch.setenv("CANDELABRA_COMPILE_CACHE", "0")
    x = candelabra.randn(NUMEL)
    with caplog.at_level(logging.WARNING, logger="candelabra.backends.cpu"):
        made, program = compiled(function, x)
        assert made(x).equal(function(x))
    assert program.compiled_sizes == [0] and "no such instruction" in caplog.text


@pytest.mark.parametrize("dtype", [candelabra.float16, candelabra.bfloat16], ids=str)
def test_max_autotune_rounds_halves_once(dtype):
    def function(x):
        return (x * 1.01 + 0.5).sigmoid() * x - 0.25

    x = values(dtype).clamp(-100, 100)
    made, program = compiled(function, x, mode="max-autotune")
    assert program.compiled_sizes == program.group_sizes
    mine, wanted = made(x), function(x.float()).to(dtype)
    epsilon = candelabra.finfo(dtype).eps
    candelabra.testing.assert_close(mine, wanted, rtol=epsilon, atol=epsilon, equal_nan=True)
