"""Elementwise operators on a thousand to ten million elements, also strided and broadcast."""

from __future__ import annotations

from ..inputs import Input, booleans, integers, normal, uniform
from ..workload import Workload, both_ways, forward

SIZES = {"1 K": 1_000, "100 K": 100_000, "4 M": 4_000_000}

#: Name, function and operations per element. Transcendental functions count as a typical
#: full-accuracy polynomial.
UNARY = [
    ("exp", lambda xp, x: xp.exp(x), 15),
    ("log", lambda xp, x: xp.log(x), 18),
    ("tanh", lambda xp, x: xp.tanh(x), 20),
    ("sigmoid", lambda xp, x: xp.sigmoid(x), 18),
    ("relu", lambda xp, x: xp.relu(x), 1),
    ("gelu", lambda xp, x: xp.nn.functional.gelu(x), 25),
    ("x * 2.0", lambda xp, x: x * 2.0, 1),
]
#: Only with large tensors.
UNARY_LARGE = [
    ("sqrt", lambda xp, x: xp.sqrt(x), 1),
    ("rsqrt", lambda xp, x: xp.rsqrt(x), 2),
    ("reciprocal", lambda xp, x: xp.reciprocal(x), 1),
    ("sin", lambda xp, x: xp.sin(x), 18),
    ("atan", lambda xp, x: xp.atan(x), 20),
    ("erf", lambda xp, x: xp.erf(x), 25),
    ("log1p", lambda xp, x: xp.log1p(x), 20),
    ("expm1", lambda xp, x: xp.expm1(x), 18),
    ("abs", lambda xp, x: xp.abs(x), 1),
    ("floor", lambda xp, x: xp.floor(x), 1),
    ("silu", lambda xp, x: xp.nn.functional.silu(x), 19),
    ("softplus", lambda xp, x: xp.nn.functional.softplus(x), 35),
    ("leaky_relu", lambda xp, x: xp.nn.functional.leaky_relu(x), 2),
    ("elu", lambda xp, x: xp.nn.functional.elu(x), 17),
    ("hardswish", lambda xp, x: xp.nn.functional.hardswish(x), 4),
    ("x ** 1.7", lambda xp, x: x**1.7, 45),
    ("x ** 2", lambda xp, x: x**2, 1),
    ("clamp", lambda xp, x: xp.clamp(x, 0.7, 1.2), 2),
    ("isnan", lambda xp, x: xp.isnan(x), 1),
    ("nan_to_num", lambda xp, x: xp.nan_to_num(x), 3),
]


def _binary(name: str, function: object, *inputs: Input, operations: float = 1) -> Workload:
    count = max(_count(given) for given in inputs)
    return forward(name, function, *inputs, operations=operations * count)  # type: ignore[arg-type]


def _count(given: Input) -> int:
    product = 1
    for size in given.shape:
        product *= size
    return product


def _adds() -> list[Workload]:
    def add(xp: object, a: object, b: object) -> object:
        return a + b  # type: ignore[operator]

    n = 2048
    return [
        _binary("a + b, 1 K", add, normal(1_000), normal(1_000, number=1)),
        _binary("a + b, 100 K", add, normal(100_000), normal(100_000, number=1)),
        _binary("a + b, 10 M", add, normal(10_000_000), normal(10_000_000, number=1)),
        _binary("a + b, 2048 x 2048, one transposed", add, normal(n, n), normal(n, n, layout="transposed", number=1)),
        _binary(
            "a + b, 2048 x 2048, both transposed",
            add,
            normal(n, n, layout="transposed"),
            normal(n, n, layout="transposed", number=1),
        ),
        _binary(
            "a + b, 4 M, every second element",
            add,
            normal(4_000_000, layout="strided"),
            normal(4_000_000, layout="strided", number=1),
        ),
        _binary("a + row, 2048 x 2048", add, normal(n, n), normal(n, number=1)),
        _binary("a + column, 2048 x 2048", add, normal(n, n), normal(n, 1, number=1)),
        _binary("row + column, 2048 x 2048", add, normal(n), normal(n, 1, number=1)),
        _binary("a + channel, 16 x 64 x 56 x 56", add, normal(16, 64, 56, 56), normal(64, 1, 1, number=1)),
        _binary("a + b, 64 x 64, one transposed", add, normal(64, 64), normal(64, 64, layout="transposed", number=1)),
        _binary("a + row, 64 x 64", add, normal(64, 64), normal(64, number=1)),
        _binary("a + row, 256 x 512", add, normal(256, 512), normal(512, number=1)),
    ]


def _dtypes() -> list[Workload]:
    made = []
    for dtype in ("float64", "bfloat16", "float16"):
        a, b = uniform(4_000_000, dtype=dtype), uniform(4_000_000, dtype=dtype, number=1)
        made.append(forward(f"a + b, 4 M, {dtype}", lambda xp, a, b: a + b, a, b))
        made.append(forward(f"exp, 4 M, {dtype}", lambda xp, a: xp.exp(a), a))
    made += [
        forward("tanh, 4 M, float64", lambda xp, a: xp.tanh(a), uniform(4_000_000, dtype="float64")),
        forward("gelu, 4 M, bfloat16", lambda xp, a: xp.nn.functional.gelu(a), uniform(4_000_000, dtype="bfloat16")),
        forward("a + b, 4 M, int64", lambda xp, a, b: a + b, integers(1000, 4_000_000), integers(1000, 4_000_000, number=1)),
        forward("a // b, 4 M, int64", lambda xp, a, b: a // b, integers(1000, 4_000_000), integers(1000, 4_000_000, low=1, number=1)),
        forward(
            "a & b, 4 M, int32", lambda xp, a, b: a & b,
            integers(1000, 4_000_000, dtype="int32"), integers(1000, 4_000_000, dtype="int32", number=1),
        ),
        forward("a * b, 1 M, complex64", lambda xp, a, b: a * b, normal(1_000_000, dtype="complex64"), normal(1_000_000, dtype="complex64", number=1)),
        forward("abs, 1 M, complex64", lambda xp, a: a.abs(), normal(1_000_000, dtype="complex64")),
        forward("angle, 1 M, complex64", lambda xp, a: a.angle(), normal(1_000_000, dtype="complex64")),
        forward("exp, 1 M, complex64", lambda xp, a: a.exp(), normal(1_000_000, dtype="complex64")),
        forward("tanh, 1 M, complex64", lambda xp, a: a.tanh(), normal(1_000_000, dtype="complex64")),
        forward("a ** 1.5, 1 M, complex64", lambda xp, a: a**1.5, normal(1_000_000, dtype="complex64")),
        forward("nan_to_num, 1 M, complex64", lambda xp, a: xp.nan_to_num(a), normal(1_000_000, dtype="complex64")),
        forward("sqrt, 1 M, complex128", lambda xp, a: a.sqrt(), normal(1_000_000, dtype="complex128")),
        forward("log, 1 M, complex128", lambda xp, a: a.log(), normal(1_000_000, dtype="complex128")),
        forward("log2, 1 M, float64", lambda xp, a: xp.log2(a), uniform(1_000_000, dtype="float64")),
        forward("cos, 1 M, float64", lambda xp, a: xp.cos(a), uniform(1_000_000, dtype="float64")),
        forward("a / b, 4 M, float16", lambda xp, a, b: a / b, uniform(4_000_000, dtype="float16"), uniform(4_000_000, dtype="float16", number=1)),
        forward("silu, 4 M, bfloat16", lambda xp, a: xp.nn.functional.silu(a), uniform(4_000_000, dtype="bfloat16")),
        forward("sigmoid, 4 M, int32", lambda xp, a: xp.sigmoid(a), integers(100, 4_000_000, dtype="int32")),
        forward("a < b, 4 M, int64", lambda xp, a, b: a < b, integers(1000, 4_000_000), integers(1000, 4_000_000, number=1)),
        forward(
            "a << b, 4 M, uint8", lambda xp, a, b: a << b,
            integers(100, 4_000_000, dtype="uint8"), integers(8, 4_000_000, dtype="uint8", number=1),
        ),
        forward("logical_and, 4 M", lambda xp, a, b: a & b, booleans(4_000_000), booleans(4_000_000, number=1)),
        forward("float32 + float64, 4 M", lambda xp, a, b: a + b, normal(4_000_000), normal(4_000_000, dtype="float64", number=1)),
        forward("a * mask, 4 M", lambda xp, a, b: a * b, normal(4_000_000), booleans(4_000_000, number=1)),
        forward("a / b, 1 M, int32", lambda xp, a, b: a / b, integers(100, 1_000_000, dtype="int32"), integers(100, 1_000_000, dtype="int32", number=1, low=1)),
        forward("a * a, 100 K rows of 15 out of 31", lambda xp, x: x[:, :15] * x[:, :15], normal(100_000, 31)),
        forward("a / column, 4096 x 64", lambda xp, a, b: a / b, normal(4096, 64), uniform(4096, 1, low=1.0, high=2.0)),
    ]  # fmt: skip
    return made


def _others() -> list[Workload]:
    n = 4_000_000
    a, b, c = uniform(n), uniform(n, number=1), uniform(n, number=2)
    return [
        forward("where, 4 M", lambda xp, m, a, b: xp.where(m, a, b), booleans(n), a, b),
        forward(
            "where, 100 K",
            lambda xp, m, a, b: xp.where(m, a, b),
            booleans(100_000),
            uniform(100_000),
            uniform(100_000, number=1),
        ),
        forward("where(m, a, 0.0), 4 M", lambda xp, m, a: xp.where(m, a, 0.0), booleans(n), a),
        forward("a < b, 4 M", lambda xp, a, b: a < b, a, b),
        forward("maximum, 4 M", lambda xp, a, b: xp.maximum(a, b), a, b),
        forward("a / b, 4 M", lambda xp, a, b: a / b, a, b),
        forward("remainder, 4 M", lambda xp, a, b: xp.remainder(a, b), a, b),
        forward("a ** b, 4 M", lambda xp, a, b: a**b, a, b, operations=45 * n),
        forward("atan2, 4 M", lambda xp, a, b: xp.atan2(a, b), a, b, operations=25 * n),
        forward("addcmul, 4 M", lambda xp, a, b, c: xp.addcmul(a, b, c, value=0.5), a, b, c),
        forward("lerp, 4 M", lambda xp, a, b: xp.lerp(a, b, 0.3), a, b),
        forward("a.add_(b, alpha=), 4 M", lambda xp, a, b: a.add_(b, alpha=1e-9), a, b, in_place=True),
        forward(
            "a.mul_(0.5).mul_(2), 4 M",
            lambda xp, a: a.mul_(0.5).mul_(2.0),
            a,
            read=2 * 4 * n,
            written=2 * 4 * n,
            in_place=True,
        ),
        forward("add(out=), 4 M", lambda xp, a, b, out: xp.add(a, b, out=out), a, b, c, read=8 * n),
        forward("exp, 2048 x 2048, transposed", lambda xp, x: xp.exp(x), uniform(2048, 2048, layout="transposed")),
        forward("exp, 4 M, every second element", lambda xp, x: xp.exp(x), uniform(n, layout="strided")),
        forward("chain of 6 operators, 1 M", _chain, normal(1_000_000), normal(1_000_000, number=1)),
        both_ways("gelu, forward and backward, 4 M", lambda xp, x: xp.nn.functional.gelu(x), normal(n, grad=True)),
        both_ways("relu, forward and backward, 4 M", lambda xp, x: xp.relu(x), normal(n, grad=True)),
        both_ways(
            "a * b, forward and backward, 4 M",
            lambda xp, a, b: a * b,
            normal(n, grad=True),
            normal(n, grad=True, number=1),
        ),
        both_ways(
            "a + row, forward and backward, 2048 x 2048",
            lambda xp, a, b: a + b,
            normal(2048, 2048, grad=True),
            normal(2048, grad=True),
            linear=True,
        ),
        both_ways(
            "chain of 6 operators, forward and backward, 1 M",
            _chain,
            normal(1_000_000, grad=True),
            normal(1_000_000, number=1),
        ),
    ]


def _chain(xp: object, a: object, b: object) -> object:
    """A chain that a compiler would fuse into one pass."""
    return (xp.tanh(a * b + 1.0) - b).abs() * 0.5  # type: ignore[operator, attr-defined]


WORKLOADS = [
    *_adds(),
    *(
        forward(f"{name}, {size}", function, uniform(count), operations=cost * count)
        for name, function, cost in UNARY
        for size, count in SIZES.items()
    ),
    *(
        forward(f"{name}, 4 M", function, uniform(4_000_000), operations=cost * 4_000_000)
        for name, function, cost in UNARY_LARGE
    ),
    *_dtypes(),
    *_others(),
]
