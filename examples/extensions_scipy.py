"""SciPy's functions as operators with gradients: sparse solving, a special function, a convolution.

Each becomes an operator by `candelabra.library.custom_op` and gets its gradient by
`register_autograd`; then it is one like all others, on the tape, within transformations and in
nets. Shows that the gradients are right, and uses them: the heat sources of a rod are found from
its temperatures.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
import scipy.special
from scipy.signal import fftconvolve

import candelabra
from candelabra import Tensor, autograd, library

# ---- A x = b with sparse A: its values in one vector, their indices in two others


def _matrix(values: Tensor, rows: Tensor, columns: Tensor, size: int) -> scipy.sparse.csc_array:
    return scipy.sparse.csc_array((values.numpy(), (rows.numpy(), columns.numpy())), shape=(size, size))


@library.custom_op("scipy_ops::sparse_solve", mutates_args=())
def sparse_solve(values: Tensor, rows: Tensor, columns: Tensor, b: Tensor, transposed: bool = False) -> Tensor:
    """Solve a sparse system of linear equations."""
    matrix = _matrix(values, rows, columns, b.shape[0])
    return candelabra.from_numpy(scipy.sparse.linalg.spsolve(matrix.T.tocsc() if transposed else matrix, b.numpy()))


@sparse_solve.register_fake
def _(values: Tensor, rows: Tensor, columns: Tensor, b: Tensor, transposed: bool = False) -> Tensor:
    return b.new_empty(b.shape)


def _keep_system(ctx: autograd.function.FunctionCtx, inputs: tuple, output: Tensor) -> None:
    values, rows, columns, _, ctx.transposed = inputs
    ctx.save_for_backward(values, rows, columns, output)


def _solve_backward(ctx: autograd.function.FunctionCtx, grad: Tensor) -> tuple:
    values, rows, columns, x = ctx.saved_tensors
    # The gradient of b solves the transposed system. The matrix's is minus the outer product of
    # that with x, at the stored entries.
    of_b = sparse_solve(values, rows, columns, grad, not ctx.transposed)
    left, right = (x, of_b) if ctx.transposed else (of_b, x)
    return -left[rows] * right[columns], None, None, of_b, None


sparse_solve.register_autograd(_solve_backward, setup_context=_keep_system)

# ---- a special function that Candelabra lacks: Lambert's W, w e^w = x


@library.custom_op("scipy_ops::lambertw", mutates_args=())
def lambertw(x: Tensor) -> Tensor:
    """Compute the principal branch of Lambert's W for x > -1/e."""
    return candelabra.as_tensor(scipy.special.lambertw(x.numpy()).real.copy(), dtype=x.dtype)


def _lambertw_backward(ctx: autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
    (w,) = ctx.saved_tensors
    return grad * candelabra.exp(-w) / (1 + w)


lambertw.register_autograd(_lambertw_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
# SciPy's function is elementwise, so that a batch needs one call.
lambertw.register_vmap(lambda info, in_dims, x: (lambertw(x), in_dims[0]))

# ---- a convolution by Fourier transforms


@library.custom_op("scipy_ops::convolve", mutates_args=())
def convolve(x: Tensor, kernel: Tensor, mode: str = "full") -> Tensor:
    """Convolve two signals of any number of dimensions."""
    return candelabra.from_numpy(fftconvolve(x.numpy(), kernel.numpy(), mode=mode))


def _keep_signals(ctx: autograd.function.FunctionCtx, inputs: tuple, output: Tensor) -> None:
    x, kernel, mode = inputs
    if mode != "full":
        raise NotImplementedError(f"the gradient of convolve() is there for mode='full' only, not for {mode!r}")
    ctx.save_for_backward(x, kernel)


def _convolve_backward(ctx: autograd.function.FunctionCtx, grad: Tensor) -> tuple:
    x, kernel = ctx.saved_tensors

    def correlated(with_: Tensor, like: Tensor) -> Tensor:
        whole = convolve(grad, with_.flip(tuple(range(with_.ndim))))
        for dim in range(whole.ndim):
            whole = whole.narrow(dim, with_.shape[dim] - 1, like.shape[dim])
        return whole

    return correlated(kernel, x), correlated(x, kernel), None


convolve.register_autograd(_convolve_backward, setup_context=_keep_signals)


def check() -> None:
    """Compare gradients, and second derivatives, with finite differences."""
    candelabra.manual_seed(0)
    rows, columns = candelabra.tensor([0, 1, 2, 0, 2]), candelabra.tensor([0, 1, 2, 1, 0])
    values = (candelabra.rand(5, dtype=candelabra.float64) + 1).requires_grad_()
    b = candelabra.rand(3, dtype=candelabra.float64).requires_grad_()

    def solve(values: Tensor, b: Tensor) -> Tensor:
        return sparse_solve(values, rows, columns, b)

    x = candelabra.rand(4, dtype=candelabra.float64).requires_grad_()
    y = candelabra.rand(3, dtype=candelabra.float64).requires_grad_()
    for function, inputs in ((solve, (values, b)), (lambertw, (x,)), (convolve, (x, y))):
        assert autograd.gradcheck(function, inputs) and autograd.gradgradcheck(function, inputs)
    library.opcheck(sparse_solve, (values, rows, columns, b))


def find_sources(size: int, steps: int) -> tuple[float, float]:
    """Find the heat sources of a rod from noisy temperatures; return the initial and the final
    error.
    """
    inside = np.arange(size)
    rows = candelabra.from_numpy(np.concatenate([inside, inside[1:], inside[:-1]]))
    columns = candelabra.from_numpy(np.concatenate([inside, inside[:-1], inside[1:]]))
    conductivity = candelabra.cat([candelabra.full((size,), 2.0), candelabra.full((2 * size - 2,), -1.0)]).double()
    sources = candelabra.zeros(size, dtype=candelabra.float64)
    sources[size // 4], sources[size // 2] = 1.0, 0.5
    measured = sparse_solve(conductivity, rows, columns, sources)
    guess = candelabra.zeros(size, dtype=candelabra.float64, requires_grad=True)
    optimizer = candelabra.optim.LBFGS([guess], max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        error = (sparse_solve(conductivity, rows, columns, guess) - measured).square().sum()
        error.backward()
        return error

    first = float(closure().sqrt())
    optimizer.step(closure)
    return first, float(closure().sqrt())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=200, help="places of the rod")
    parser.add_argument("--steps", type=int, default=200, help="of the optimizer")
    options = parser.parse_args()
    check()
    print("gradients of sparse_solve, lambertw and convolve are right")
    first, last = find_sources(options.size, options.steps)
    print(f"temperatures are off by {first:.3f} at first, {last:.6f} at last")


if __name__ == "__main__":
    main()
