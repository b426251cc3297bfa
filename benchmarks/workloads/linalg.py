"""Matrix products and distances."""

from __future__ import annotations

from ..inputs import integers, normal
from ..workload import Workload, both_ways, forward


def _product(
    m: int, k: int, n: int, dtype: str = "float32", left: str = "contiguous", right: str = "contiguous", note: str = ""
) -> Workload:
    name = f"matmul {m}" if m == k == n else f"matmul {m} x {k} x {n}"
    name += (f", {dtype}" if dtype != "float32" else "") + note
    a, b = normal(m, k, dtype=dtype, layout=left), normal(k, n, dtype=dtype, layout=right, number=1)
    rate = dtype if dtype in ("float64", "bfloat16") else "float32"
    return forward(
        name,
        lambda xp, a, b: a @ b,
        a,
        b,
        operations=2.0 * m * k * n * (4 if dtype == "complex64" else 1),
        rate=rate,
        limit=_limit(m, k, n, dtype),
    )


def _limit(m: int, k: int, n: int, dtype: str) -> float:
    """Return the limit of the ratio. On AMD, MKL uses its AVX2 code, so autotuning the library
    gains more.
    """
    if m == k == n == 1024 and dtype == "float32":
        with open("/proc/cpuinfo") as file:
            return 0.6 if "AuthenticAMD" in file.read() else 1.0
    return 1.0


WORKLOADS = [
    _product(32, 32, 32),
    _product(128, 128, 128),
    _product(256, 256, 256),
    _product(1024, 1024, 1024),
    _product(1024, 1024, 1024, "float64"),
    _product(1024, 1024, 1024, "bfloat16"),
    _product(1024, 1024, 1024, "complex64"),
    _product(1024, 1024, 1024, left="transposed", note=", first transposed"),
    _product(1024, 1024, 1024, right="transposed", note=", second transposed"),
    _product(512, 512, 512, left="strided", note=", every second column"),
    _product(1, 1024, 1024),
    _product(4, 512, 2048),
    _product(32, 784, 512),
    _product(4096, 64, 64),
    _product(64, 4096, 64),
    _product(1000, 3, 1000),
    forward("matmul 256, int64", lambda xp, a, b: a @ b, integers(100, 256, 256), integers(100, 256, 256, number=1)),
    forward("matrix times vector, 4096 x 1024", lambda xp, a, b: a @ b, normal(4096, 1024), normal(1024, number=1)),
    forward("dot, 1 M", lambda xp, a, b: xp.dot(a, b), normal(1_000_000), normal(1_000_000, number=1), tolerance=1e-3),
    forward("outer, 2048 by 2048", lambda xp, a, b: xp.outer(a, b), normal(2048), normal(2048, number=1)),
    forward("bmm, 512 of 8", lambda xp, a, b: xp.bmm(a, b), normal(512, 8, 8), normal(512, 8, 8, number=1), operations=512 * 2 * 8**3),
    forward("bmm, 64 of 64", lambda xp, a, b: xp.bmm(a, b), normal(64, 64, 64), normal(64, 64, 64, number=1), operations=64 * 2 * 64**3),
    forward(
        "bmm, 64 of 256 x 64 x 256, second transposed", lambda xp, a, b: xp.bmm(a, b),
        normal(64, 256, 64), normal(64, 64, 256, layout="transposed", number=1), operations=64 * 2 * 256 * 64 * 256,
    ),
    forward("matmul 32 x 128 x 64 by 64 x 64", lambda xp, a, b: a @ b, normal(32, 128, 64), normal(64, 64, number=1), operations=2 * 32 * 128 * 64 * 64),
    forward("addmm 256", lambda xp, c, a, b: xp.addmm(c, a, b), normal(256), normal(256, 256), normal(256, 256, number=1), operations=2 * 256**3),
    forward(
        "baddbmm 16 of 128, alpha", lambda xp, c, a, b: xp.baddbmm(c, a, b, alpha=0.5),
        normal(16, 128, 128), normal(16, 128, 128, number=1), normal(16, 128, 128, number=2), operations=16 * 2 * 128**3,
    ),
    forward(
        "einsum bhqd,bhkd->bhqk, 8 x 8 x 128 x 64", lambda xp, a, b: xp.einsum("bhqd,bhkd->bhqk", a, b),
        normal(8, 8, 128, 64), normal(8, 8, 128, 64, number=1), operations=2 * 64 * 128 * 128 * 64,
    ),
    forward("tensordot, 64 x 32 x 32 by 32 x 32 x 64", lambda xp, a, b: xp.tensordot(a, b, 2), normal(64, 32, 32), normal(32, 32, 64), operations=2 * 64 * 64 * 1024),
    forward("linear, 1 x 512 to 512", lambda xp, x, w, b: xp.nn.functional.linear(x, w, b), normal(1, 512), normal(512, 512), normal(512), operations=2 * 512**2),
    forward(
        "linear, 32 x 784 to 2048", lambda xp, x, w, b: xp.nn.functional.linear(x, w, b),
        normal(32, 784), normal(2048, 784), normal(2048), operations=2 * 32 * 784 * 2048,
    ),
    forward(
        "linear, 1024 x 768 to 3072", lambda xp, x, w, b: xp.nn.functional.linear(x, w, b),
        normal(1024, 768), normal(3072, 768), normal(3072), operations=2 * 1024 * 768 * 3072,
    ),
    forward(
        "linear, 1024 x 768 to 3072, bfloat16", lambda xp, x, w, b: xp.nn.functional.linear(x, w, b),
        *(normal(*shape, dtype="bfloat16") for shape in ((1024, 768), (3072, 768), (3072,))), operations=2 * 1024 * 768 * 3072, rate="bfloat16",
    ),
    forward(
        "linear and relu, 1024 x 256 to 1024", lambda xp, x, w, b: xp._addmm_activation(b, x, w.t()),
        normal(1024, 256), normal(1024, 256, number=1), normal(1024), operations=2 * 1024 * 256 * 1024,
    ),
    forward(
        "linear and gelu, 1024 x 256 to 1024", lambda xp, x, w, b: xp._addmm_activation(b, x, w.t(), use_gelu=True),
        normal(1024, 256), normal(1024, 256, number=1), normal(1024), operations=2 * 1024 * 256 * 1024,
    ),
    forward(
        "linear and gelu, 1024 x 256 to 1024, bfloat16", lambda xp, x, w, b: xp._addmm_activation(b, x, w.t(), use_gelu=True),
        *(normal(*shape, dtype="bfloat16") for shape in ((1024, 256), (1024, 256), (1024,))), operations=2 * 1024 * 256 * 1024, rate="bfloat16",
    ),
    both_ways(
        "linear, forward and backward, 256 x 784 to 2048", lambda xp, x, w, b: xp.nn.functional.linear(x, w, b),
        normal(256, 784, grad=True), normal(2048, 784, grad=True), normal(2048, grad=True), operations=6 * 256 * 784 * 2048,
    ),
    both_ways("matmul, forward and backward, 512", lambda xp, a, b: a @ b, normal(512, 512, grad=True), normal(512, 512, grad=True, number=1), operations=6 * 512**3),
    forward("cdist 500 x 500 rows of 400", lambda xp, x: xp.cdist(x, x + 1), normal(500, 400), operations=2 * 500 * 500 * 400),
    both_ways("cdist, forward and backward", lambda xp, x, y: xp.cdist(x, y), normal(200, 50, grad=True), normal(100, 50, number=1)),
    forward("cdist of order 3, 500 x 400 rows of 32", lambda xp, x, y: xp.cdist(x, y, p=3.0), normal(500, 32), normal(400, 32, number=1), operations=45 * 500 * 400 * 32, tolerance=1e-3),
    forward("bmm, 1000 of 4 x 4, complex64", lambda xp, x: x @ x, normal(1000, 4, 4, dtype="complex64")),
    forward("dot, 100 K, complex64", lambda xp, x, y: xp.dot(x, y), normal(100_000, dtype="complex64"), normal(100_000, dtype="complex64", number=1), tolerance=1e-3),
    forward("triu, 1000 of 4 x 4", lambda xp, x: xp.triu(x), normal(1000, 4, 4)),
    forward("kron, 64 x 64 by 32 x 32", lambda xp, a, b: xp.kron(a, b), normal(64, 64), normal(32, 32)),
    forward("trace, 2048", lambda xp, x: xp.trace(x), normal(2048, 2048), read=2048 * 64),
]  # fmt: skip
