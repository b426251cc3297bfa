"""Factorizations, eigenvalues and linear systems, of one matrix and of batches of small ones."""

from __future__ import annotations

from typing import Any

from ..inputs import normal
from ..workload import both_ways, forward

A, FEW, MANY = normal(512, 512), normal(64, 64), normal(1000, 8, 8)


def _definite(xp: Any, x: Any) -> Any:
    return x @ x.mT + x.shape[-1] * xp.eye(x.shape[-1])


WORKLOADS = [
    forward(
        "solve 8 by 1",
        lambda xp, a, b: xp.linalg.solve(_definite(xp, a), b),
        normal(8, 8),
        normal(8, 1, number=1),
        tolerance=1e-3,
    ),
    forward("inv 8", lambda xp, x: xp.linalg.inv(_definite(xp, x)), normal(8, 8), tolerance=1e-3),
    forward("cholesky 8", lambda xp, x: xp.linalg.cholesky(_definite(xp, x)), normal(8, 8), tolerance=1e-3),
    forward("inv 64", lambda xp, x: xp.linalg.inv(_definite(xp, x)), FEW, tolerance=1e-3),
    forward(
        "solve 512 by 16, transposed",
        lambda xp, a, b: xp.linalg.solve(a, b),
        normal(512, 512, layout="transposed"),
        normal(512, 16, number=1),
        operations=512**3 * 2 / 3,
        tolerance=1e-2,
    ),
    forward("cholesky 512", lambda xp, x: xp.linalg.cholesky(_definite(xp, x)), A, operations=512**3 * (2 + 1 / 3)),
    forward("cholesky, 1000 of 8", lambda xp, x: xp.linalg.cholesky(_definite(xp, x)), MANY, tolerance=1e-3),
    forward(
        "solve 512 by 16",
        lambda xp, a, b: xp.linalg.solve(a, b),
        A,
        normal(512, 16, number=1),
        operations=512**3 * 2 / 3,
        tolerance=1e-2,
    ),
    forward(
        "solve, 1000 of 8",
        lambda xp, a, b: xp.linalg.solve(_definite(xp, a), b),
        MANY,
        normal(1000, 8, 1, number=1),
        tolerance=1e-3,
    ),
    forward("inv 512", lambda xp, x: xp.linalg.inv(_definite(xp, x)), A, operations=512**3 * 4, tolerance=1e-3),
    forward("inv, 1000 of 8", lambda xp, x: xp.linalg.inv(_definite(xp, x)), MANY, tolerance=1e-3),
    forward("det 64", lambda xp, x: xp.linalg.slogdet(x), FEW, tolerance=1e-3),
    forward("lu_factor 512", lambda xp, x: xp.linalg.lu_factor(x)[0], A, operations=512**3 * 2 / 3, tolerance=1e-2),
    forward("qr 512", lambda xp, x: xp.linalg.qr(x)[1].abs(), A, operations=512**3 * 8 / 3, tolerance=1e-2),
    forward("svd 256", lambda xp, x: xp.linalg.svd(x, full_matrices=False)[1], normal(256, 256), tolerance=1e-3),
    forward("svdvals 256", lambda xp, x: xp.linalg.svdvals(x), normal(256, 256), tolerance=1e-3),
    forward("eigh 256", lambda xp, x: xp.linalg.eigh(x + x.mT)[0], normal(256, 256), tolerance=1e-3),
    forward("eigh, 1000 of 8", lambda xp, x: xp.linalg.eigh(x + x.mT)[0], MANY, tolerance=1e-3),
    forward("eigvals 128", lambda xp, x: xp.linalg.eigvals(x).abs().sort()[0], normal(128, 128), tolerance=1e-2),
    forward(
        "lstsq 512 x 64 by 8",
        lambda xp, a, b: xp.linalg.lstsq(a, b)[0],
        normal(512, 64),
        normal(512, 8, number=1),
        tolerance=1e-3,
    ),
    forward(
        "solve_triangular 512 by 64",
        lambda xp, a, b: xp.linalg.solve_triangular(_definite(xp, a).tril(), b, upper=False),
        A,
        normal(512, 64, number=1),
        tolerance=1e-3,
    ),
    forward("matrix_exp 128", lambda xp, x: xp.linalg.matrix_exp(x * 0.05), normal(128, 128), tolerance=1e-3),
    forward("lu 256", lambda xp, x: xp.linalg.lu(_definite(xp, x)), normal(256, 256), tolerance=1e-2),
    forward("det, 1000 of 4 x 4", lambda xp, x: xp.linalg.det(x), normal(1000, 4, 4), tolerance=1e-3),
    forward("inv, 1000 of 4 x 4", lambda xp, x: xp.linalg.inv(_definite(xp, x)), normal(1000, 4, 4), tolerance=1e-3),
    forward("pinv 128", lambda xp, x: xp.linalg.pinv(_definite(xp, x)), normal(128, 128), tolerance=1e-2),
    both_ways(
        "solve, forward and backward, 256 by 16",
        lambda xp, a, b: xp.linalg.solve(_definite(xp, a), b),
        normal(256, 256, grad=True),
        normal(256, 16, grad=True, number=1),
        tolerance=1e-2,
    ),
    both_ways(
        "cholesky, forward and backward, 256",
        lambda xp, x: xp.linalg.cholesky(_definite(xp, x)),
        normal(256, 256, grad=True),
        tolerance=1e-2,
    ),
]
