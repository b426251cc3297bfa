"""Test two GPUs in one process: copies, operators, streams, gradients, failures and collectives on
a device that is not the current one.
"""

from __future__ import annotations

import copy
import io
import threading

import numpy as np
import pytest

import candelabra
from candelabra import communication

DTYPES = ["float64", "float32", "float16", "bfloat16", "complex64", "int64", "int32", "int8", "uint8", "bool"]


@pytest.fixture
def two(cuda: candelabra.device):
    """Both devices. The first one is current before and after the test."""
    if candelabra.cuda.device_count() < 2:
        pytest.skip("needs 2 GPUs")
    assert candelabra.cuda.current_device() == 0
    yield candelabra.device("cuda", 0), candelabra.device("cuda", 1)
    assert candelabra.cuda.current_device() == 0
    for device in range(2):
        candelabra.cuda.synchronize(device)


def values(*sizes: int) -> np.ndarray:
    return np.random.default_rng(len(sizes)).normal(size=sizes).astype(np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_between_devices(two, dtype):
    first, second = two
    numbers = np.arange(-30, 30).reshape(3, 4, 5)
    there = candelabra.tensor(numbers).to(getattr(candelabra, dtype)).to(first)
    plain = there.cpu()
    for view, wanted in [
        (there, plain),
        (there.transpose(0, 2), plain.transpose(0, 2)),
        (there[:, 1:3, ::2], plain[:, 1:3, ::2]),
        (there[:, :1].expand(3, 4, 5), plain[:, :1].expand(3, 4, 5)),
        (there[:0], plain[:0]),
        (there[0, 0, 0], plain[0, 0, 0]),
    ]:
        moved = view.to(second)
        assert moved.device == second and moved.dtype == there.dtype
        assert moved.tolist() == wanted.tolist() and moved.to(first).tolist() == wanted.tolist()
        assert view.to("cuda:1", non_blocking=True).tolist() == wanted.tolist()
    assert there.to(first) is there


def test_copying_into_a_tensor_of_another_device(two):
    first, second = two
    numbers = values(4, 6)
    source = candelabra.tensor(numbers).to(first)
    target = candelabra.zeros(6, 4, dtype=candelabra.float64, device=second).t()
    assert target.copy_(source) is target
    np.testing.assert_array_equal(target.cpu().numpy(), numbers.astype(np.float64))
    target = candelabra.zeros(3, 4, 12, dtype=candelabra.int32, device=second)[:, :, ::2]
    target.copy_(source * 10)
    np.testing.assert_array_equal(
        target.cpu().numpy(), np.broadcast_to((numbers * np.float32(10)).astype(np.int32), (3, 4, 6))
    )
    overlapping = candelabra.arange(10.0, device=second)
    overlapping[1:].copy_(overlapping[:-1].to(first))
    assert overlapping.tolist() == [0, *range(9)]


def test_the_current_device(two):
    first, second = two
    with candelabra.cuda.device(1):
        assert candelabra.cuda.current_device() == 1
        assert candelabra.zeros(2, device="cuda").device == second
        assert candelabra.tensor([1.0]).cuda().device == second
        assert (candelabra.ones(3, device=first) + 1).device == first
        with candelabra.cuda.device(first):
            assert candelabra.zeros(2, device="cuda").device == first
        assert candelabra.cuda.current_device() == 1
    x = candelabra.ones(3, device=second)
    with candelabra.cuda.device_of(x):
        assert candelabra.empty(1, device="cuda").device == second
    for made in (
        candelabra.zeros_like(x),
        x.new_ones(2),
        x.new_tensor([1]),
        x.clone(),
        candelabra.rand_like(x),
        x[0],
        x.long(),
    ):
        assert made.device == second
    assert (
        candelabra.zeros(2, device=1).device == second
        and x.to(0).device == candelabra.device(0) == first
        and x.get_device() == 1
    )
    with pytest.raises(RuntimeError, match="cuda:2|device"):
        candelabra.zeros(1, device="cuda:2")


def test_operators_on_the_other_device(two):
    _, second = two
    a, b = values(37, 53), values(53, 29)
    x, y = candelabra.tensor(a).to(second), candelabra.tensor(b).to(second)
    wide = a.astype(np.float64) @ b
    np.testing.assert_allclose((x @ y).cpu().numpy(), wide, rtol=1e-4, atol=1e-4)
    order = np.argsort(a, axis=1, kind="stable")
    ranked, places = x.sort(dim=1, stable=True)
    np.testing.assert_array_equal(places.cpu().numpy(), order)
    np.testing.assert_array_equal(ranked.cpu().numpy(), np.sort(a, axis=1))
    np.testing.assert_array_equal(x[x > 0].cpu().numpy(), a[a > 0])
    np.testing.assert_array_equal(x.nonzero().cpu().numpy(), np.argwhere(a))
    np.testing.assert_allclose(candelabra.fft.fft(x).abs().cpu().numpy(), np.abs(np.fft.fft(a)), rtol=1e-4, atol=1e-4)
    square = a[:29, :29] @ a[:29, :29].T + 29 * np.eye(29, dtype=np.float32)
    factor = candelabra.linalg.cholesky(candelabra.tensor(square).to(second))
    np.testing.assert_allclose(factor.cpu().numpy(), np.linalg.cholesky(square), rtol=1e-4, atol=1e-4)
    image, weight = values(2, 3, 8, 8), values(4, 3, 1, 1)
    made = candelabra.nn.functional.conv2d(candelabra.tensor(image).to(second), candelabra.tensor(weight).to(second))
    np.testing.assert_allclose(
        made.cpu().numpy(), np.einsum("nchw,oc->nohw", image, weight[:, :, 0, 0]), rtol=1e-4, atol=1e-4
    )


def test_the_same_numbers_are_drawn(two):
    drawn = []
    for device in two:
        candelabra.cuda.manual_seed_all(7)
        drawn.append([candelabra.randn(100, device=device).tolist(), candelabra.randperm(50, device=device).tolist()])
    assert drawn[0] == drawn[1]
    states = candelabra.cuda.get_rng_state_all()
    assert len(states) == candelabra.cuda.device_count()
    before = candelabra.cuda.initial_seed()
    with candelabra.cuda.device(1):
        candelabra.cuda.manual_seed(9)
        assert candelabra.cuda.initial_seed() == 9
    assert candelabra.cuda.initial_seed() == before == 7


def test_streams_and_events_of_two_devices(two):
    first, second = two
    side = candelabra.cuda.Stream(second)
    assert side.device == second
    x = candelabra.ones(1 << 16, device=first)
    ready = candelabra.cuda.Event()
    x.mul_(3)
    ready.record()
    with candelabra.cuda.stream(side):
        assert candelabra.cuda.current_device() == 1 and candelabra.cuda.current_stream() == side
        side.wait_event(ready)
        y = x.to(second) + 1
        done = side.record_event()
    assert candelabra.cuda.current_device() == 0
    assert candelabra.cuda.current_stream(second) != side
    candelabra.cuda.current_stream(second).wait_event(done)
    y.record_stream(candelabra.cuda.current_stream(second))
    assert float(y.sum().item()) == 4.0 * (1 << 16)
    done.synchronize()
    assert done.query() and side.query()
    with pytest.raises(RuntimeError, match="does not match"):
        done.record(candelabra.cuda.current_stream(first))


def test_tensors_of_two_devices_are_refused(two):
    first, second = two
    a, b = candelabra.ones(3, device=first), candelabra.ones(3, device=second)
    index = candelabra.tensor([0, 1]).to(second)
    calls = [
        lambda: a + b,
        lambda: a.add_(b),
        lambda: candelabra.cat([a, b]),
        lambda: candelabra.add(a, a, out=b),
        lambda: candelabra.dot(a, b),
        lambda: candelabra.where(a > 0, a, b),
        lambda: a.index_select(0, index),
        lambda: a.gather(0, index),
        lambda: candelabra.nn.functional.linear(a[None], b[None]),
        lambda: candelabra.nn.functional.mse_loss(a, b),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match=r"same device.*cuda:[01].*cuda:[01]|cuda:1.*cuda:0|cuda:0.*cuda:1"):
            call()
    assert a.tolist() == b.tolist() == [1, 1, 1]
    assert (a + candelabra.tensor(2.0)).tolist() == [3, 3, 3]  # CPU scalars combine with any device
    with pytest.raises(RuntimeError, match="same device|cuda:1"):
        a + candelabra.ones((), device=second)


def test_gradients_go_back_across(two):
    first, second = two
    numbers = values(5, 3)
    x = candelabra.tensor(numbers).to(first).requires_grad_()
    weight = candelabra.full((3,), 2.0, device=second, requires_grad=True)
    y = (x * 3).to(second) * weight
    (y.to(first).square().sum() + y.sum().to(first)).backward()
    assert x.grad.device == first and weight.grad.device == second
    product = 6 * numbers.astype(np.float64)
    np.testing.assert_allclose(x.grad.cpu().numpy(), 6 * (2 * product + 1), rtol=1e-5)
    np.testing.assert_allclose(weight.grad.cpu().numpy(), ((2 * product + 1) * 3 * numbers).sum(0), rtol=1e-5)


def test_optimizers_and_clipping_with_parameters_on_two_devices(two):
    from candelabra import nn, optim

    for make in (
        lambda each, **options: optim.SGD(each, lr=0.1, momentum=0.9, **options),
        lambda each, **options: optim.AdamW(each, lr=0.1, **options),
    ):
        found = []
        for places, options in (((0, 0), {}), ((0, 1), {}), ((0, 1), {"foreach": True}), ((1, 0), {"fused": True})):
            parameters = [
                nn.Parameter(candelabra.tensor(values(4, k + 1)).to(two[place])) for k, place in enumerate(places)
            ]
            optimizer = make(parameters, **options)
            for _ in range(3):
                optimizer.zero_grad()
                for parameter in parameters:
                    (parameter**3).sum().backward()
                norm = nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
            assert norm.device == parameters[0].device
            found.append([float(norm)] + [number for each in parameters for number in each.detach().flatten().tolist()])
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-4, atol=1e-6)


def test_data_parallel(two):
    from candelabra import nn

    candelabra.manual_seed(0)
    module = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(two[0]).eval()
    x = candelabra.tensor(values(7, 6)).to(two[0])
    alone = module(x)
    alone.square().sum().backward()
    wanted = [parameter.grad.clone() for parameter in module.parameters()]
    module.zero_grad()
    spread = nn.DataParallel(module, device_ids=[0, 1])
    seen = []
    module[0].register_forward_hook(lambda module, given, result: seen.append(result.device.index))
    out = spread(x)
    assert out.device == two[0] and sorted(seen) == [0, 1]
    np.testing.assert_allclose(out.detach().cpu().numpy(), alone.detach().cpu().numpy(), rtol=1e-5, atol=1e-6)
    out.square().sum().backward()
    for parameter, gradient in zip(module.parameters(), wanted, strict=True):
        assert parameter.grad.device == two[0]
        np.testing.assert_allclose(parameter.grad.cpu().numpy(), gradient.cpu().numpy(), rtol=1e-4, atol=1e-5)


def test_memory_is_counted_by_device(two):
    before = [candelabra.cuda.memory_allocated(device) for device in two]
    x = candelabra.empty(1 << 18, device=two[1])
    assert candelabra.cuda.memory_allocated(two[0]) == before[0]
    assert candelabra.cuda.memory_allocated(two[1]) == before[1] + 4 * (1 << 18)
    del x
    assert candelabra.cuda.memory_allocated(two[1]) == before[1]


def test_failures_belong_to_their_device(two):
    first, second = two
    bad = candelabra.tensor([0, 9]).to(second)

    def work() -> None:
        candelabra.ones(3, device=second).index_select(0, bad)
        assert (candelabra.ones(3, device=first) + 1).tolist() == [2, 2, 2]
        candelabra.cuda.synchronize(first)
        candelabra.cuda.synchronize(second)

    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        work()
    assert (candelabra.ones(3, device=second) + 1).tolist() == [2, 2, 2]


def test_graphs_on_the_other_device(two):
    _, second = two
    with candelabra.cuda.device(1):
        x = candelabra.zeros(5, device=second)
        side = candelabra.cuda.Stream()
        side.wait_stream(candelabra.cuda.current_stream())
        with candelabra.cuda.stream(side):
            y = x * 2 + 1
        candelabra.cuda.current_stream().wait_stream(side)
        graph = candelabra.cuda.CUDAGraph()
        with candelabra.cuda.graph(graph):
            y = x * 2 + 1
        x.fill_(4)
        graph.replay()
        assert y.tolist() == [9] * 5
    x.fill_(5)
    graph.replay()  # also where another device is the current one
    candelabra.cuda.synchronize(second)
    assert y.tolist() == [11] * 5


def test_files_and_copies_keep_the_device(two):
    first, second = two
    x = candelabra.tensor(values(3, 4)).to(second)
    assert copy.deepcopy(x).device == second
    file = io.BytesIO()
    candelabra.save({"x": x}, file)
    for where, device in (
        (None, second),
        ("cpu", candelabra.device("cpu")),
        ("cuda:0", first),
        ({"cuda:1": "cuda:0"}, first),
    ):
        file.seek(0)
        loaded = candelabra.load(file, map_location=where)["x"]
        assert loaded.device == device
        np.testing.assert_array_equal(loaded.cpu().numpy(), x.cpu().numpy())


def test_collectives_between_two_threads(two):
    identity = communication.unique_id("cuda")
    results: list[object] = [None, None]

    def rank(number: int) -> None:
        device = two[number]
        candelabra.cuda.set_device(device)
        try:
            with communication.Communicator(device, identity, number, 2, timeout=60) as ranks:
                x = candelabra.full((5,), float(number + 1), device=device)
                ranks.all_reduce(x)
                parts = candelabra.empty(2, 3, device=device)
                ranks.all_gather(parts, candelabra.full((3,), 10.0 + number, device=device))
                here = candelabra.empty(4, device=device)
                with communication.group(device):
                    ranks.send(candelabra.full((4,), 5.0 + number, device=device), 1 - number)
                    ranks.receive(here, 1 - number)
                results[number] = (x.tolist(), parts.tolist(), here.tolist())
        except BaseException as error:
            results[number] = error

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for number, result in enumerate(results):
        assert result == ([3.0] * 5, [[10.0] * 3, [11.0] * 3], [6.0 - number] * 4), result
