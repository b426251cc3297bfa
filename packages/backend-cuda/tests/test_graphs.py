"""Test graph capture on any accelerator, and functions and modules that run as graphs, forward and
backward.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.cuda import make_graphed_callables

nn, optim = pytest.importorskip("candelabra.nn"), pytest.importorskip("candelabra.optim")
pytest.importorskip("candelabra.autograd")


def test_graphs_of_the_accelerator(cuda):
    x = candelabra.zeros(10, device=cuda)
    recorded = candelabra.accelerator.Graph()
    with candelabra.accelerator.Stream(), recorded:
        y = x + 1
    for value in (1.0, 5.0):
        x.fill_(value)
        recorded.replay()
        assert y.tolist() == [value + 1] * 10
    shared = candelabra.accelerator.Graph(pool=recorded.pool(), capture_error_mode="thread_local")
    with candelabra.accelerator.Stream(), shared:
        z = y * 2
    shared.replay()
    assert z.tolist() == [12] * 10 and shared.pool() == recorded.pool()
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        recorded.capture_begin()
    recorded.reset()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        recorded.replay()
    with candelabra.accelerator.Stream(), pytest.raises(RuntimeError, match="capture error mode"):
        candelabra.accelerator.Graph(capture_error_mode="strict").capture_begin()


def test_what_cannot_be_recorded_is_said(cuda):
    x = candelabra.arange(4.0, device=cuda)
    for call in (lambda: x.nonzero(), lambda: x.sum().item(), lambda: x.cpu()):
        with pytest.raises(RuntimeError, match="captur"), candelabra.cuda.graph(candelabra.cuda.CUDAGraph()):
            call()
    assert not candelabra.cuda.is_current_stream_capturing()
    assert (x + 1).tolist() == [1, 2, 3, 4]


def test_random_numbers_go_on(cuda):
    candelabra.cuda.manual_seed(3)
    wanted = [candelabra.rand(100, device=cuda).tolist() for _ in range(3)]
    candelabra.cuda.manual_seed(3)
    recorded = candelabra.cuda.CUDAGraph()
    with candelabra.cuda.graph(recorded):
        x = candelabra.rand(100, device=cuda)
    found = []
    for _ in range(3):
        recorded.replay()
        found.append(x.tolist())
    assert found == wanted


def test_a_function_and_its_gradients(cuda):
    x = candelabra.randn(4, 3, device=cuda, requires_grad=True)
    weight = candelabra.randn(3, 2, device=cuda, requires_grad=True)
    plain = candelabra.randn(4, 2, device=cuda)

    def function(x, others):
        return {"product": (x @ others["weight"]).tanh(), "sum": others["plain"].sum(0)}

    replayed = make_graphed_callables(function, (x, {"weight": weight, "plain": plain}))
    for seed in range(3):
        generator = np.random.default_rng(seed)
        a, b, c = (generator.normal(size=size).astype(np.float32) for size in ((4, 3), (3, 2), (4, 2)))
        given = [
            candelabra.tensor(a).to(cuda).requires_grad_(),
            candelabra.tensor(b).to(cuda).requires_grad_(),
            candelabra.tensor(c).to(cuda),
        ]
        results = replayed(given[0], {"weight": given[1], "plain": given[2]})
        np.testing.assert_allclose(results["product"].detach().cpu().numpy(), np.tanh(a @ b), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(results["sum"].cpu().numpy(), c.sum(0), rtol=1e-5, atol=1e-6)
        assert results["product"].requires_grad and not results["sum"].requires_grad
        slopes = generator.normal(size=(4, 2)).astype(np.float32)
        results["product"].backward(candelabra.tensor(slopes).to(cuda))
        back = slopes * (1 - np.tanh(a @ b) ** 2)
        np.testing.assert_allclose(given[0].grad.cpu().numpy(), back @ b.T, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(given[1].grad.cpu().numpy(), a.T @ back, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="takes 3 tensors, but got 1"):
        replayed(x)


def network() -> nn.Module:
    candelabra.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)).to("cuda")


def test_modules_train_as_without_graphs(cuda):
    losses = []
    for with_graph in (False, True):
        body, head = network(), nn.Linear(3, 2).to(cuda)
        with candelabra.no_grad():
            head.weight.fill_(0.25)
            head.bias.zero_()
        optimizer = optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        if with_graph:
            x = candelabra.randn(5, 6, device=cuda)
            y = candelabra.randn(5, 3, device=cuda, requires_grad=True)
            recorded = make_graphed_callables((body, head), ((x,), (y,)))
            assert recorded == (body, head)
        found = []
        for step in range(4):
            numbers = np.random.default_rng(0).normal(size=(5, 6)) * (1 + step / 100)
            data = candelabra.tensor(numbers.astype(np.float32)).to(cuda)
            optimizer.zero_grad()
            loss = head(body(data)).square().mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert losses[0][-1] < losses[0][0]
    body.eval()
    assert body(candelabra.ones(2, 6, device=cuda)).shape == (2, 3), "another mode runs as ever"


def test_what_make_graphed_callables_refuses(cuda):
    x = candelabra.ones(2, 6, device=cuda)
    hooked = network()
    hooked.register_forward_hook(lambda *arguments: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        make_graphed_callables(hooked, (x,))
    buffered = network()
    buffered.register_buffer("mean", candelabra.ones(1, device=cuda, requires_grad=True))
    with pytest.raises(RuntimeError, match="only parameters may be trainable"):
        make_graphed_callables(buffered, (x,))
    with pytest.raises(TypeError, match="only Tensors"):
        make_graphed_callables(lambda x, y: x, (x, 3))
    with pytest.raises(ValueError, match="2 callables, but sample_args for 1"):
        make_graphed_callables((network(), network()), ((x,),))
    with candelabra.autocast("cuda"), pytest.raises(RuntimeError, match="cache_enabled=False"):
        make_graphed_callables(network(), (x,))
    unused = candelabra.ones(3, device=cuda, requires_grad=True)
    used = candelabra.ones(3, device=cuda, requires_grad=True)
    with pytest.raises(RuntimeError, match="allow_unused"):
        make_graphed_callables(lambda a, b: a * 2, (used, unused))
    recorded = make_graphed_callables(lambda a, b: a * 2, (used, unused), allow_unused_input=True)
    a, b = (candelabra.ones(3, device=cuda, requires_grad=True) for _ in range(2))
    recorded(a, b).sum().backward()
    assert a.grad.tolist() == [2, 2, 2] and b.grad is None
