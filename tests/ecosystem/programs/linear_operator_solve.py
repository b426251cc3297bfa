"""linear-operator: structured matrices are multiplied, solved and decomposed without being
built.
"""

from __future__ import annotations

from typing import Any

import linear_operator
import torch
from harness import run
from linear_operator.operators import (
    DiagLinearOperator,
    KroneckerProductLinearOperator,
    LowRankRootLinearOperator,
    ToeplitzLinearOperator,
)


def main() -> dict[str, Any]:
    factor = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    diagonal = torch.rand(20, dtype=torch.float64) + 0.5
    matrix = LowRankRootLinearOperator(factor) + DiagLinearOperator(diagonal)
    right = torch.randn(20, 2, dtype=torch.float64)
    solved = matrix.solve(right)
    quadratic, determinant = matrix.inv_quad_logdet(right, logdet=True)
    (solved.sum() + quadratic + determinant).backward()
    toeplitz = ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5, 0.2, 0.1]))
    kronecker = KroneckerProductLinearOperator(
        *(linear_operator.to_linear_operator(torch.eye(3) * 2 + 0.1) for _ in range(2))
    )
    return {
        "solved": solved.norm(), "quadratic": quadratic, "determinant": determinant, "gradient": factor.grad.norm(),
        "product": toeplitz @ torch.ones(5), "trace": kronecker.to_dense().trace(), "root": kronecker.cholesky().to_dense().sum(),
        "sum": torch.add(toeplitz, toeplitz).to_dense().sum(),
    }  # fmt: skip


if __name__ == "__main__":
    run(main)
