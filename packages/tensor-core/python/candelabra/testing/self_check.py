"""The check of ``python -m candelabra``: each part computes something whose result is known, and
prints how fast it was.
"""

from __future__ import annotations

import io
import math
import time

import candelabra
from candelabra import Tensor, accelerator

from ..assembly import MissingPackageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds for which a part is repeated.
REPEATED = 0.5
_MATRIX = 1024
_VECTOR = 1 << 24


def best_time(function: Callable[[], object], device: candelabra.device, seconds: float = REPEATED) -> float:
    """Return the shortest time that a function took, in seconds."""
    best, end = math.inf, time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        function()
        if device.type != "cpu":
            accelerator.synchronize(device)
        now = time.perf_counter()
        best = min(best, now - begin)
        if now >= end:
            return best


def matrix_product(device: candelabra.device) -> str:
    """Multiply matrices whose product is known."""
    rows = candelabra.arange(_MATRIX, device=device, dtype=candelabra.float32) % 7
    a, b = rows[:, None].expand(_MATRIX, _MATRIX).contiguous(), candelabra.ones(_MATRIX, _MATRIX, device=device)
    expected = (rows * _MATRIX)[:, None].expand(_MATRIX, _MATRIX)
    _require(bool(candelabra.equal(a @ b, expected)), "a product of matrices is wrong")
    return f"{2 * _MATRIX**3 / best_time(lambda: a @ b, device) / 1e9:.0f} GFLOP/s (float32, {_MATRIX}³)"


def elementwise(device: candelabra.device) -> str:
    """Add vectors, and sum what exp and log give."""
    x = candelabra.full((_VECTOR,), 2.0, device=device)
    total = float((x[:1000].log().exp() - x[:1000]).abs().max())
    _require(total < 1e-5, "exp(log(x)) is not x")
    seconds = best_time(lambda: x.add(1.0), device)
    return f"{2 * 4 * _VECTOR / seconds / 1e9:.1f} GB/s (x + 1, {4 * _VECTOR >> 20} MiB)"


def random_numbers(device: candelabra.device) -> str:
    """Draw normal numbers, the same twice."""
    generator = candelabra.Generator(device)
    first = candelabra.randn(1 << 20, generator=generator.manual_seed(1), device=device)
    again = candelabra.randn(1 << 20, generator=generator.manual_seed(1), device=device)
    _require(bool(candelabra.equal(first, again)), "the same seed gives other numbers")
    _require(abs(float(first.mean())) < 0.01 and abs(float(first.std()) - 1) < 0.01, "randn is not normal")
    seconds = best_time(lambda: candelabra.randn(1 << 20, device=device), device)
    return f"{(1 << 20) / seconds / 1e6:.0f} million normal numbers a second"


def saved_file(device: candelabra.device) -> str:
    """Save and load."""
    x = candelabra.arange(1 << 20, device=device)
    file = io.BytesIO()
    candelabra.save({"x": x}, file)
    file.seek(0)
    _require(bool(candelabra.equal(candelabra.load(file)["x"].to(device), x)), "a loaded tensor is not what was saved")
    return f"{file.getbuffer().nbytes >> 20} MiB written and read"


def gradient(device: candelabra.device) -> str:
    """Compare a gradient with its formula (candelabra-autograd)."""
    _ = candelabra.autograd  # which says what to install where it is missing
    x = candelabra.linspace(-2, 2, 101, device=device, requires_grad=True)
    (x.sin() * x).sum().backward()
    grad: Tensor = x.grad
    x = x.detach()
    _require(bool(candelabra.allclose(grad, x.sin() + x * x.cos(), atol=1e-5)), "a gradient is wrong")
    return "as its formula says"


def training(device: candelabra.device) -> str:
    """Train a small network until it has learnt a function (candelabra-nn, -optim, -autograd)."""
    nn, optim = candelabra.nn, candelabra.optim
    _ = candelabra.autograd
    with candelabra.random.fork_rng():
        candelabra.manual_seed(0)
        model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
    x = candelabra.linspace(-3, 3, 256, device=device)[:, None]
    target, optimizer = x.sin(), optim.Adam(model.parameters(), lr=0.02)
    first, begin, steps = math.inf, time.perf_counter(), 300
    for step in range(steps):
        loss = nn.functional.mse_loss(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 0:
            first = loss.item()
    last = loss.item()
    _require(last < first / 20, f"the loss went only from {first:.3g} to {last:.3g}")
    return f"loss {first:.2g} → {last:.2g}, {steps / (time.perf_counter() - begin):.0f} steps a second"


PARTS = (matrix_product, elementwise, random_numbers, saved_file, gradient, training)


class WrongResultError(AssertionError):
    """A part of the check gave another result than is known."""


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise WrongResultError(fault)


def run(name: str) -> list[str]:
    """Run all parts on a device, print a line for each, and return the faults."""
    print(f"check of {name}:")
    faults = []
    for part in PARTS:
        title = part.__name__.replace("_", " ")
        begin = time.perf_counter()
        try:
            result = part(candelabra.device(name))
        except (MissingPackageError, AttributeError) as error:
            if "is not installed" not in str(error):
                raise
            result = str(error)
        except (WrongResultError, RuntimeError) as error:  # the other parts are checked as well
            result = f"FAILED: {error}"
            faults.append(f"{name}, {title}: {error}")
        print(f"  {title:<16} {result} [{time.perf_counter() - begin:.1f} s]", flush=True)
    return faults
