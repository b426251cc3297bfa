"""A Cython function as an operator with a gradient: a recursive filter, which no row of array
operations computes well.

Cython compiles the text below when the program runs; in a project it is a .pyx file of its own. The
operator filters a batch of signals, and its gradient is the same filter backwards. The program then
finds the filter that a signal went through.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import candelabra
from candelabra import Tensor, autograd, library

SOURCE = """
# cython: language_level=3, boundscheck=False, wraparound=False

def smooth(const double[:, :] x, const double[:] decay, double[:, :] out, bint backwards):
    '''out[b, t] = x[b, t] + decay[b] * out[b, t - 1], or from the end to the start.'''
    cdef Py_ssize_t b, t, i, batch = x.shape[0], length = x.shape[1]
    cdef double last
    with nogil:
        for b in range(batch):
            last = 0.0
            for i in range(length):
                t = length - 1 - i if backwards else i
                last = x[b, t] + decay[b] * last
                out[b, t] = last
"""


def compiled(name: str, source: str) -> ModuleType:
    """Compile a Cython module from its source text."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name}.pyx")
        path.write_text(source)
        (extension,) = cythonize([Extension(name, [str(path)], extra_compile_args=["-O1"])], quiet=True)
        command = build_ext(Distribution({"ext_modules": [extension]}))
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        spec = importlib.util.spec_from_file_location(name, command.get_ext_fullpath(name))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


_cython = compiled("candelabra_filters", SOURCE)


@library.custom_op("cython_ops::smooth", mutates_args=())
def smooth(x: Tensor, decay: Tensor, backwards: bool = False) -> Tensor:
    """Filter signals (B, T), each with its own decay (B)."""
    out = candelabra.empty(x.shape, dtype=x.dtype)
    # Tensors support the buffer protocol, which Cython's memory views use; x may have any strides.
    _cython.smooth(x.numpy(), decay.numpy(), out.numpy(), backwards)
    return out


@smooth.register_fake
def _(x: Tensor, decay: Tensor, backwards: bool = False) -> Tensor:
    return candelabra.empty(x.shape, dtype=x.dtype)


def _keep(ctx: autograd.function.FunctionCtx, inputs: tuple, output: Tensor) -> None:
    _, decay, ctx.backwards = inputs
    ctx.save_for_backward(decay, output)


def _backward(ctx: autograd.function.FunctionCtx, grad: Tensor) -> tuple:
    decay, out = ctx.saved_tensors
    of_x = smooth(grad, decay, not ctx.backwards)
    # out[t] depends on the decay through out[t - 1], which was computed before.
    before, here = (out[:, 1:], of_x[:, :-1]) if ctx.backwards else (out[:, :-1], of_x[:, 1:])
    return of_x, (before * here).sum(1), None


smooth.register_autograd(_backward, setup_context=_keep)


def check() -> None:
    """Compare gradients, and second derivatives, with finite differences."""
    candelabra.manual_seed(0)
    x = candelabra.randn(5, 3, dtype=candelabra.float64).t().requires_grad_()
    decay = candelabra.rand(3, dtype=candelabra.float64).requires_grad_()
    for backwards in (False, True):
        inputs = (x, decay, backwards)
        assert autograd.gradcheck(smooth, inputs) and autograd.gradgradcheck(smooth, inputs)
    library.opcheck(smooth, (x, decay))
    assert smooth(x.detach(), decay.detach())[0, 1] == x[0, 1] + decay[0] * x[0, 0]


def find_filter(steps: int) -> tuple[float, float]:
    """Find the decay that signals were filtered with; return the true one and the one found."""
    candelabra.manual_seed(1)
    signals, true = (
        candelabra.randn(1, 500, dtype=candelabra.float64),
        candelabra.tensor([0.8], dtype=candelabra.float64),
    )
    heard = smooth(signals, true)
    logit = candelabra.zeros(1, dtype=candelabra.float64, requires_grad=True)
    optimizer = candelabra.optim.Adam([logit], lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        (smooth(signals, logit.sigmoid()) - heard).square().mean().backward()
        optimizer.step()
    return true.item(), logit.sigmoid().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="of the optimizer")
    options = parser.parse_args()
    check()
    print("the gradient of the filter is right")
    true, found = find_filter(options.steps)
    print(f"the decay is {true:.3f}, found as {found:.3f}")


if __name__ == "__main__":
    main()
