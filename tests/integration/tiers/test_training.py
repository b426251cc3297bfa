"""Modules, optimizers and small networks on a device with exactly the kernels of the tier
"required" (few.py): the losses are those of the CPU.
"""

from __future__ import annotations

import pytest
from few_and_cpu import on_both, values

import candelabra
from candelabra import _C, nn, optim

F = nn.functional

MLP = lambda: nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 3))  # noqa: E731
CNN = lambda: nn.Sequential(  # noqa: E731
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, stride=2, groups=2),
    nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3),
)  # fmt: skip


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.encoder(self.embedding(tokens), mask=mask)).flatten(0, 1)


def _tokens(device):
    return candelabra.arange(24, device=device).view(4, 6) * 7 % 11


PROGRAMS = {
    "mlp": (MLP, lambda device: (values(8, 6, device=device), candelabra.arange(8, device=device) % 3)),
    "cnn": (CNN, lambda device: (values(8, 1, 8, 8, device=device), candelabra.arange(8, device=device) % 3)),
    "transformer": (Transformer, lambda device: (_tokens(device), _tokens(device).roll(-1, 1).flatten())),
}
STEPS = {
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "adamw": lambda parameters: optim.AdamW(parameters, lr=0.01),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_training(program, step):
    def compute(device):
        build, data = PROGRAMS[program]
        model = build().to(device)
        _C.manual_seed(4)  # the parameters were drawn on the CPU
        optimizer = STEPS[step](model.parameters())
        inputs, targets = data(device)
        for _ in range(6):
            loss = F.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.detach()

    on_both(compute)


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
        optimizer = OPTIMIZERS[name]([x], **({"lr": 0.1} if name != "Adafactor" else {}))

        def closure():
            optimizer.zero_grad()
            (x.sin() + x * x).sum().backward()
            return (x * x).sum()

        for _ in range(4):
            if name == "LBFGS":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
        yield x

    # Muon computes in bfloat16.
    on_both(compute, 0.2 if name == "Muon" else 1e-4)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_steps_need_no_kernel(name):
    def compute(device):
        x = values(5, device=device, requires_grad=True)
        optimizer = getattr(optim, name)([x], lr=0.1, fused=True)
        for _ in range(3):
            x.grad = x.detach().sin()
            optimizer.step()
        yield x

    on_both(compute)


MODULES = [
    (lambda: nn.ConvTranspose1d(2, 3, 3), (2, 2, 5)),
    (lambda: nn.Conv3d(2, 2, 2), (1, 2, 4, 4, 4)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    (lambda: nn.AvgPool2d(2, padding=1), (1, 2, 4, 4)),
    (lambda: nn.AdaptiveMaxPool2d(2), (1, 2, 5, 5)),
    (lambda: nn.LSTM(4, 3, 2), (3, 2, 4)),
    (lambda: nn.GRU(4, 3, bidirectional=True), (3, 2, 4)),
    (lambda: nn.Softplus(), (3, 4)),
    (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
]


@pytest.mark.parametrize(("build", "shape"), MODULES, ids=lambda value: str(value) if isinstance(value, tuple) else "")
def test_modules(build, shape):
    def compute(device):
        module = build().to(device)
        x = values(*shape, device=device, requires_grad=True)
        result = module(x)
        first = result[0] if isinstance(result, tuple) else result
        first.square().sum().backward()
        yield from (first, x.grad)
        yield from (parameter.grad for parameter in module.parameters())

    on_both(compute)
