"""Numba's functions as operators with gradients: a loop over pixels, an elementwise formula, and a
function of rows.

``@njit`` compiles loops, ``@vectorize`` and ``@guvectorize`` make NumPy's ufuncs; each is called
with the tensors' memory as arrays. The program renders the Mandelbrot set's escape times as an
operator without a gradient, checks the gradients of the other two, and fits a curve with one of
them.
"""

from __future__ import annotations

import argparse
import math

import numba
import numpy as np

import candelabra
from candelabra import Tensor, autograd, library

# ---- @njit: loops, on several threads


@numba.njit(parallel=True)
def _escape_times(x: np.ndarray, y: np.ndarray, limit: int) -> np.ndarray:
    out = np.empty((y.size, x.size), np.int64)
    for i in numba.prange(y.size):
        for j in range(x.size):
            c, z, n = complex(x[j], y[i]), 0j, 0
            while n < limit and z.real * z.real + z.imag * z.imag <= 4.0:
                z = z * z + c
                n += 1
            out[i, j] = n
    return out


@library.custom_op("numba_ops::escape_times", mutates_args=())
def escape_times(x: Tensor, y: Tensor, limit: int = 100) -> Tensor:
    """Count the steps until z**2 + c escapes, for c = x + iy."""
    return candelabra.from_numpy(_escape_times(x.numpy(), y.numpy(), limit))


@escape_times.register_fake
def _(x: Tensor, y: Tensor, limit: int = 100) -> Tensor:
    return x.new_empty((y.numel(), x.numel()), dtype=candelabra.int64)


# ---- @vectorize: one element, with broadcasting


@numba.vectorize(["float32(float32, float32)", "float64(float64, float64)"])
def _soft_step(x: float, width: float) -> float:
    if x <= -width:
        return 0.0
    if x >= width:
        return 1.0
    return 0.5 + 0.5 * math.sin(0.5 * math.pi * x / width)


@library.custom_op("numba_ops::soft_step", mutates_args=())
def soft_step(x: Tensor, width: Tensor) -> Tensor:
    """Step from 0 to 1 between -width and width."""
    return candelabra.from_numpy(np.asarray(_soft_step(x.numpy(), width.numpy())))


def _keep(ctx: autograd.function.FunctionCtx, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _soft_step_backward(ctx: autograd.function.FunctionCtx, grad: Tensor) -> tuple:
    x, width = ctx.saved_tensors
    slope = candelabra.where(x.abs() < width, (0.5 * math.pi * x / width).cos() * (0.25 * math.pi) / width, 0)
    # The gradient of a broadcast argument is summed to the argument's sizes.
    return grad * slope, -grad * slope * x / width


soft_step.register_autograd(_soft_step_backward, setup_context=_keep)

# ---- @guvectorize: one row, with any number of leading dimensions


@numba.guvectorize(["(float64[:], float64[:], float64[:])"], "(n),(m)->(n)")
def _horner(x: np.ndarray, coefficients: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.size):
        total = 0.0
        for k in range(coefficients.size):
            total = total * x[i] + coefficients[k]
        out[i] = total


@library.custom_op("numba_ops::horner", mutates_args=())
def horner(x: Tensor, coefficients: Tensor) -> Tensor:
    """Evaluate polynomials (..., M), highest power first, at points (..., N)."""
    return candelabra.from_numpy(_horner(x.numpy(), coefficients.numpy()))


def _horner_backward(ctx: autograd.function.FunctionCtx, grad: Tensor) -> tuple:
    x, coefficients = ctx.saved_tensors
    degree = coefficients.shape[-1] - 1
    powers = candelabra.arange(degree, -1, -1, dtype=x.dtype)
    # The derivative is a polynomial of one degree less.
    slope = horner(x, (coefficients * powers)[..., :-1]) if degree > 0 else candelabra.zeros_like(grad)
    of_coefficients = (grad.unsqueeze(-1) * x.unsqueeze(-1) ** powers).sum(-2)
    return grad * slope, of_coefficients


horner.register_autograd(_horner_backward, setup_context=_keep)


def check() -> None:
    """Compare gradients, and second derivatives, with finite differences."""
    candelabra.manual_seed(0)
    x = candelabra.linspace(-0.9, 0.9, 6, dtype=candelabra.float64).requires_grad_()
    width = candelabra.tensor([0.5, 1.0], dtype=candelabra.float64).reshape(2, 1).requires_grad_()
    coefficients = candelabra.randn(2, 4, dtype=candelabra.float64).requires_grad_()
    for function, inputs in ((soft_step, (x, width)), (horner, (x, coefficients))):
        assert autograd.gradcheck(function, inputs) and autograd.gradgradcheck(function, inputs)
    library.opcheck(escape_times, (x.detach(), x.detach()))


def fit(steps: int) -> float:
    """Fit a polynomial to a sine by gradient descent; return the largest error."""
    x = candelabra.linspace(-1.5, 1.5, 200, dtype=candelabra.float64)
    coefficients = candelabra.zeros(6, dtype=candelabra.float64, requires_grad=True)
    optimizer = candelabra.optim.LBFGS([coefficients], max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        error = (horner(x, coefficients) - x.sin()).square().mean()
        error.backward()
        return error

    optimizer.step(closure)
    return float((horner(x, coefficients) - x.sin()).abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="of the optimizer")
    options = parser.parse_args()
    check()
    print("gradients of soft_step and horner are right")
    times = escape_times(candelabra.linspace(-2.2, 0.8, 61).double(), candelabra.linspace(-1.2, 1.2, 25).double())
    shades = " .:-=+*#%@"
    for row in times.tolist():
        print("".join(shades[min(n * len(shades) // 101, len(shades) - 1)] for n in row))
    print(f"a polynomial of degree 5 is a sine up to {fit(options.steps):.6f}")


if __name__ == "__main__":
    main()
