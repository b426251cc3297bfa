"""Test that algorithms and plans of NVIDIA's libraries are cached for similar calls, and timed on
request.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np
import pytest

import candelabra
import candelabra_backend_cuda
from candelabra import backends


@pytest.fixture
def choices(emulated) -> Callable[[str], int]:
    """Return how often an emulated library was asked for algorithms."""

    def count(name: str) -> int:
        (path,) = [path for folder in candelabra_backend_cuda.library_folders() for path in folder.glob(f"{name}.so.*")]
        return ctypes.CDLL(str(path)).emulated_choices()

    return count


def image(cuda: candelabra.device, *sizes: int) -> candelabra.Tensor:
    return candelabra.tensor(np.random.default_rng(len(sizes)).normal(size=sizes).astype(np.float32)).to(cuda)


REST = ([1, 1], [1, 1], [1, 1], 1)


def test_products(cuda, choices):
    a, b = image(cuda, 24, 40), image(cuda, 40, 8)
    wanted = a @ b
    before = choices("libcublasLt")
    for factor in (1.0, 2.0, 4.0):
        assert candelabra.equal((a * factor) @ b, wanted * factor)
    assert choices("libcublasLt") == before
    _ = image(cuda, 24, 41) @ image(cuda, 41, 8)
    assert choices("libcublasLt") > before


def test_convolutions(cuda, choices):
    x, weight = image(cuda, 2, 3, 9, 7), image(cuda, 4, 3, 3, 3)
    candelabra.ops.convolution(x, weight, None, *REST)
    before = choices("libcudnn")
    again = candelabra.ops.convolution(x * 2, weight, None, *REST)
    assert choices("libcudnn") == before
    candelabra.ops.convolution(x[:, :, 1:], weight, None, *REST)
    other = choices("libcudnn")
    assert other > before
    # Another setting needs another plan, which is cached as well.
    for options in ({"benchmark": True}, {"deterministic": True}, {"allow_tf32": not backends.cudnn.allow_tf32}):
        with backends.cudnn.flags(enabled=True, **options):
            first = choices("libcudnn")
            results = [candelabra.ops.convolution(x * 2, weight, None, *REST) for _ in range(2)]
            middle = choices("libcudnn")
            assert middle > first
            candelabra.ops.convolution(x, weight, None, *REST)
            assert choices("libcudnn") == middle
        for result in results:
            np.testing.assert_allclose(result.cpu().numpy(), again.cpu().numpy(), rtol=1e-4, atol=1e-5)
    made: list[candelabra.Tensor] = []
    thread = threading.Thread(target=lambda: made.append(candelabra.ops.convolution(x * 2, weight, None, *REST)))
    thread.start()
    thread.join()
    np.testing.assert_allclose(made[0].cpu().numpy(), again.cpu().numpy(), rtol=1e-4, atol=1e-5)


def test_without_cudnn(cuda, choices):
    x, weight = image(cuda, 2, 3, 9, 7), image(cuda, 4, 3, 3, 3)
    wanted = candelabra.ops.convolution(x, weight, None, *REST)
    with backends.cudnn.flags(enabled=False):
        before = choices("libcudnn")
        found = candelabra.ops.convolution(x, weight, None, *REST)
        assert choices("libcudnn") == before
    np.testing.assert_allclose(found.cpu().numpy(), wanted.cpu().numpy(), rtol=1e-4, atol=1e-4)


def test_transforms(cuda):
    plans = backends.cuda.cufft_plan_cache
    plans.clear()
    candelabra.fft.fft(image(cuda, 3, 16))
    kept = plans.size
    assert kept >= 1
    candelabra.fft.fft(image(cuda, 3, 16) * 2)
    assert plans.size == kept
    candelabra.fft.fft(image(cuda, 3, 20))
    assert plans.size == kept + 1
    plans.max_size = 1
    try:
        for length in (8, 10, 12):
            x = image(cuda, 2, length)
            np.testing.assert_allclose(
                candelabra.fft.fft(x).abs().cpu().numpy(), np.abs(np.fft.fft(x.cpu().numpy())), rtol=1e-4, atol=1e-4
            )
        assert plans.size <= 1
    finally:
        plans.max_size = 4096
