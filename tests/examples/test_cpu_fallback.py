"""The CPU fallback on the example backend minic: few kernels, and memory that the core cannot
read.
"""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import candelabra
from candelabra import _C, nn, optim
from candelabra.autograd.functional import hessian
from candelabra.catalogue import OPERATORS
from candelabra.testing.conformance import _stable
from candelabra.testing.reference import references
from candelabra.testing.sampling import Input

pytestmark = pytest.mark.filterwarnings("ignore:the operator .* runs on the CPU:RuntimeWarning")
F = nn.functional


@pytest.fixture(autouse=True)
def with_fallback():
    candelabra.backends.cpu_fallback("minic")
    yield
    candelabra.backends.cpu_fallback("minic", False)


def calls(name):
    return candelabra.backends.fallback_calls("minic").get(name, 0)


def on_both(compute, *, exact=True):
    """Check that a function of the device gives the same on both devices, with the same seed."""
    results = []
    for device in ("cpu", "minic"):
        _C.manual_seed(3)
        results.append([part.detach().to("cpu") for part in compute(device)])
    for expected, got in zip(*results, strict=True):
        assert got.dtype is expected.dtype
        assert got.shape == expected.shape
        if exact:
            assert got.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(np.array(got.tolist()), np.array(expected.tolist()), rtol=2e-4, atol=2e-5)


def values(*shape, device="cpu", seed=0, **options):
    """Return the same numbers on each device."""
    drawn = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return candelabra.tensor(drawn.tolist(), device=device, **options)


# ---- the operator database

#: Their samples take long and show nothing that others do not.
SLOW = {"_mode_index", "_cummax_cummin", "_kthvalue_index", "_histc", "_tril_triu_indices"}


def made(value, device):
    if isinstance(value, Input):
        return value.tensor(device)
    return [made(part, device) for part in value] if isinstance(value, list) else value


def facts(value):
    """Return what must be equal of a result: bits, geometry and type."""
    if isinstance(value, candelabra.Tensor):
        bits = value.to("cpu").contiguous().reshape(-1).view(candelabra.uint8).tolist()
        return value.dtype, tuple(value.shape), value.stride(), bits
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [facts(part) for part in value]
    return value


def outcome(operator, sample, device):
    arguments = [made(argument, device) for argument in sample.arguments]
    keywords = {name: made(value, device) for name, value in sample.keywords.items()}
    if "device" in operator.parameters:
        keywords["device"] = device
    _C.manual_seed(7)
    try:
        result = operator(*arguments, **keywords)
    except Exception as error:
        return type(error), str(error).replace(device, "")
    versions = [argument._version for argument in arguments if isinstance(argument, candelabra.Tensor)]
    state = _C.default_generator(candelabra.device(device)).get_state().tolist()
    return facts(result), facts(arguments), [result is argument for argument in arguments], versions, state


def test_results_are_those_of_the_cpu_bit_for_bit():
    known = references()
    names = [name for name in OPERATORS if name in known and name not in SLOW]
    compared = set()
    for name in names:
        for dtype in known[name].dtypes:
            for number, sample in enumerate(known[name].samples(np.random.default_rng(_stable(name + dtype)), dtype)):
                if number % 4:
                    continue
                before = calls(name)
                result = outcome(OPERATORS[name], sample, "minic")
                if calls(name) > before:
                    compared.add(name)
                    assert result == outcome(OPERATORS[name], sample, "cpu"), f"{name}({sample})"
    assert len(compared) > 150


# ---- memory and versions


def test_views_of_one_storage():
    x = candelabra.arange(12, device="minic").view(3, 4)  # int64: minic adds floats only
    x[0].add_(10)
    x[:, 1].mul_(2)
    assert x.tolist() == [[10, 22, 12, 13], [4, 10, 6, 7], [8, 18, 10, 11]]
    assert calls("add_")
    x[1:].copy_(x[:2].clone())
    x.t()[2].sub_(x[2, 0])
    assert x.tolist() == [[10, 22, 8, 13], [10, 22, 8, 13], [4, 10, 2, 7]]


def test_in_place_change_leaves_the_rest_of_the_storage_alone():
    x = candelabra.zeros(1 << 12, dtype=candelabra.int64, device="minic")

    def add_to(part):
        for _ in range(40):
            part.add_(1)

    threads = [threading.Thread(target=add_to, args=(part,)) for part in x.chunk(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(x.tolist()) == {40}


def test_versions_rise_once():
    x = candelabra.ones(3, dtype=candelabra.int64, device="minic")
    assert x._version == 0
    x.add_(1)
    assert x._version == 1
    assert candelabra.rand(3, device="minic")._version == 0


@pytest.mark.parametrize("dtype", [candelabra.float32, candelabra.int64])
def test_out(dtype):
    a = candelabra.tensor([3, 1, 2], device="minic", dtype=dtype)
    out = candelabra.empty(3, device="minic", dtype=dtype)
    assert candelabra.maximum(a, a.flip(0), out=out) is out
    assert out.tolist() == [3, 1, 3]
    sizeless = candelabra.empty(0, device="minic", dtype=dtype)
    candelabra.bitwise_not(a.long(), out=candelabra.empty(3, device="minic", dtype=candelabra.int64))
    candelabra.maximum(a, a, out=sizeless)
    assert sizeless.tolist() == [3, 1, 2]
    sorted_, indices = (
        candelabra.empty(3, device="minic", dtype=dtype),
        candelabra.empty(3, device="minic", dtype=candelabra.int64),
    )
    result = candelabra.sort(a, out=(sorted_, indices))
    assert result.values is sorted_
    assert (sorted_.tolist(), indices.tolist()) == ([1, 2, 3], [1, 2, 0])


def test_overlapping_memory():
    x = candelabra.arange(6, device="minic")
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        x.as_strided((3, 3), (0, 1)).add_(1)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1])
    x[:3].add_(x[3:])
    assert x.tolist() == [3, 5, 7, 3, 4, 5]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_small_tensors(shape):
    on_both(
        lambda device: [
            candelabra.full(shape, 2, device=device) % 3,
            candelabra.ones(shape, device=device).sin(),
            candelabra.zeros(shape, device=device).cumsum(0) if shape else candelabra.zeros((), device=device).cos(),
            candelabra.full(shape, 5, device=device).bitwise_and_(4),
        ]
    )


# ---- kinds of operators


def test_data_dependent_shapes_and_lists():
    def compute(device):
        x = values(4, 5, device=device)
        chosen = x > 0
        yield from (x.nonzero(), x.masked_select(chosen), x[chosen], x.unique())
        yield from candelabra.cat([x, x]).split(3)
        yield from candelabra.where(chosen)
        yield from (candelabra.stack([x, x], 1), candelabra.bincount(candelabra.tensor([1, 3, 1], device=device)))
        yield x.index_put((candelabra.tensor([0, 1], device=device),), candelabra.tensor(9.0, device=device))
        x[1, ::2] = 7
        x[chosen] = 0
        yield x

    on_both(compute)


def test_factory_functions():
    def compute(device):
        yield candelabra.arange(5, device=device)
        yield candelabra.linspace(0, 1, 7, device=device)
        yield candelabra.eye(3, dtype=candelabra.int32, device=device)
        yield candelabra.full((2,), 3 + 1j, device=device)
        yield candelabra.tril_indices(3, 3, device=device)
        yield candelabra.tensor([1.5, 2.5], dtype=candelabra.bfloat16, device=device).to(candelabra.float64)
        with candelabra.device(device):
            made = candelabra.arange(3)
            assert made.device.type == device
            yield made

    on_both(compute)


def test_named_results():
    result = candelabra.sort(values(6, device="minic"))
    assert type(result).__name__ == "sort"
    assert result.indices.device.type == "minic"
    assert result.values.tolist() == sorted(values(6).tolist())


def test_scalars_of_the_host_and_numbers():
    x = candelabra.tensor([5, 7], device="minic")
    assert (x % 4).tolist() == [1, 3]
    assert (x // candelabra.tensor(2)).tolist() == [2, 3]
    with pytest.raises(RuntimeError, match="same device"):
        x % candelabra.tensor([2, 3])


def test_a_refusal_with_a_message_falls_back():
    before = calls("div")
    result = candelabra.div(candelabra.tensor([5.0, -5.0], device="minic"), 2.0, rounding_mode="floor")
    assert result.tolist() == [2.0, -3.0]
    assert calls("div") == before + 1


def test_custom_operators():
    @candelabra.library.custom_op("fallback_test::triple", mutates_args=())
    def triple(x: candelabra.Tensor) -> candelabra.Tensor:
        return x * 3

    @candelabra.library.custom_op("fallback_test::halve_", mutates_args=("x",), device_types="cpu")
    def halve_(x: candelabra.Tensor) -> None:
        x //= 2

    x = candelabra.tensor([2, 4], device="minic")
    assert triple(x).tolist() == [6, 12]
    halve_(x)
    assert x.tolist() == [1, 2]


# ---- random numbers


def test_random_numbers():
    def compute(device):
        for _ in range(2):
            yield candelabra.rand(5, device=device)
            yield candelabra.randn(3, 3, device=device)
            yield candelabra.randint(0, 100, (7,), device=device)
            yield candelabra.randperm(9, device=device)
            yield candelabra.empty(4, device=device).exponential_()
            yield candelabra.bernoulli(candelabra.full((6,), 0.5, device=device))
            yield candelabra.multinomial(candelabra.tensor([0.2, 0.3, 0.5], device=device), 2)
            yield F.dropout(candelabra.ones(8, device=device))

    on_both(compute)
    generator = candelabra.Generator("minic").manual_seed(4)
    first = candelabra.rand(4, device="minic", generator=generator)
    second = candelabra.rand(4, device="minic", generator=generator)
    again = candelabra.rand(8, generator=candelabra.Generator("cpu").manual_seed(4))
    assert first.tolist() == again[:4].tolist()
    assert second.tolist() != first.tolist()


def test_threads_draw_different_numbers():
    drawn = []
    threads = [
        threading.Thread(target=lambda: drawn.append(tuple(candelabra.rand(4, device="minic").tolist())))
        for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 16


# ---- autograd, modules, optimizers


def test_gradients():
    def compute(device):
        x = values(3, 4, device=device, requires_grad=True)
        y = (x.sin() * x.cumsum(1)).sort(1).values.prod(1).sum()
        (gradient,) = candelabra.autograd.grad(y, x, create_graph=True)
        (second,) = candelabra.autograd.grad(gradient.square().sum(), x)
        yield from (y, gradient, second)
        yield hessian(lambda t: (t.sigmoid() * t.cos()).sum(), values(4, device=device))
        z = values(5, device=device, requires_grad=True)
        changed = z.clone()
        changed[1:3].atan_()
        changed.sigmoid_()
        changed.sum().backward()
        yield z.grad

    on_both(compute, exact=False)


MODULES = [
    (lambda: nn.Linear(4, 3), (2, 4)),
    (lambda: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 5, 5)),
    (lambda: nn.ConvTranspose1d(2, 3, 3), (2, 2, 5)),
    (lambda: nn.BatchNorm2d(2), (3, 2, 4, 4)),
    (lambda: nn.LayerNorm(4), (3, 4)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.MaxPool2d(2), (1, 2, 4, 4)),
    (lambda: nn.AdaptiveAvgPool2d(2), (1, 2, 5, 5)),
    (lambda: nn.MultiheadAttention(4, 2), (3, 2, 4)),
    (lambda: nn.TransformerEncoderLayer(4, 2, 8), (3, 2, 4)),
    (lambda: nn.LSTM(4, 3, 2), (3, 2, 4)),
    (lambda: nn.GRU(4, 3, bidirectional=True), (3, 2, 4)),
    (lambda: nn.GELU(), (3, 4)),
    (lambda: nn.Softplus(), (3, 4)),
    (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
    (lambda: nn.Dropout(0.3), (6, 6)),
]


@pytest.mark.parametrize(("build", "shape"), MODULES, ids=lambda value: str(value) if isinstance(value, tuple) else "")
def test_modules(build, shape):
    def compute(device):
        module = build().to(device)
        _C.manual_seed(4)  # the parameters were drawn on the CPU
        x = values(*shape, device=device, requires_grad=True)
        result = module(x, x, x) if isinstance(module, nn.MultiheadAttention) else module(x)
        first = result[0] if isinstance(result, tuple) else result
        first.square().sum().backward()
        yield from (first, x.grad)
        yield from (parameter.grad for parameter in module.parameters())

    on_both(compute, exact=False)


OPTIMIZERS = {
    name: kind
    for name, kind in vars(optim).items()
    if isinstance(kind, type) and issubclass(kind, optim.Optimizer) and kind not in (optim.Optimizer, optim.SparseAdam)
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    def compute(device):
        shape = (4, 3) if name == "Muon" else (5,)
        x = values(*shape, device=device, requires_grad=True)
        options = {"lr": 0.1} if name != "Adafactor" else {}
        optimizer = OPTIMIZERS[name]([x], **options)

        def closure():
            optimizer.zero_grad()
            (x.sin() + x * x).sum().backward()
            return (x * x).sum()

        for _ in range(4):
            closure() if name != "LBFGS" else None
            optimizer.step(closure) if name == "LBFGS" else optimizer.step()
        yield x

    on_both(compute, exact=False)


def losses(model, inputs, targets, steps=6):
    _C.manual_seed(4)  # the parameters were drawn on the CPU
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.detach()


def test_a_small_cnn_trains_as_on_the_cpu():
    def compute(device):
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(64, 3),
        ).to(device)  # fmt: skip
        yield from losses(model, values(8, 1, 8, 8, device=device), candelabra.arange(8, device=device) % 3)

    on_both(compute, exact=False)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.encoder(self.embedding(tokens), mask=mask)).flatten(0, 1)


def test_a_small_transformer_trains_as_on_the_cpu():
    def compute(device):
        tokens = candelabra.arange(24, device=device).view(4, 6) * 7 % 11
        yield from losses(Language().to(device), tokens, tokens.roll(-1, 1).flatten())

    on_both(compute, exact=False)


# ---- what users see


def test_the_warning_comes_once_and_names_the_caller():
    candelabra.backends.fallback._calls.get("minic", {}).pop("erfinv", None)
    x = candelabra.zeros(2, device="minic")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x.erfinv()
        x.erfinv()
    assert [str(warning.message).split(" has ")[0] for warning in caught] == ["the operator erfinv"]
    assert caught[0].filename == __file__
    assert calls("erfinv") == 2


def test_without_the_fallback_the_call_is_refused():
    candelabra.backends.cpu_fallback("minic", False)
    with pytest.raises(NotImplementedError, match="i0 has no kernel on device minic"):
        candelabra.zeros(2, device="minic").i0()


def test_the_cpu_has_none():
    with pytest.raises(ValueError, match="the CPU itself has no fallback"):
        candelabra.backends.cpu_fallback("cpu")
