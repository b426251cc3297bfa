"""Training steps: compiled, they give the numbers of ordinary ones bit for bit."""

import copy

import pytest
from replays import is_replayed

import candelabra
from candelabra import nn, optim
from candelabra.nn import functional as F


def train(build, steps, compiled, debug=False, before_step=None):
    """Train and return losses, parameters, buffers, gradients and the optimizer's state."""
    candelabra.manual_seed(0)
    model, optimizer, scheduler, step, batch = build()
    function = candelabra.compile(step, options={"debug_memory": debug}) if compiled else step
    losses = []
    for number in range(steps):
        if before_step:
            before_step(number, model, optimizer)
        losses.append(function(*batch()).detach().clone())
        if scheduler:
            scheduler.step()
    if compiled:
        assert is_replayed(function)
    state = optimizer.state_dict()["state"]
    return {
        "losses": losses,
        "model": list(model.state_dict().values()),
        "grads": [p.grad for p in model.parameters()],
        "state": [value for entry in state.values() for value in entry.values()],
    }


def check_equal(build, steps=10, **options):
    expected = train(build, steps, False, before_step=options.get("before_step"))
    computed = train(build, steps, True, **options)
    for part, values in expected.items():
        assert len(values) == len(computed[part])
        for a, b in zip(values, computed[part], strict=True):
            if a is None or b is None:
                assert a is b, part
            else:
                assert candelabra.as_tensor(a).equal(candelabra.as_tensor(b)), part


def mlp(make_optimizer, make_scheduler=None, late_zero=False):
    def build():
        model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 5))
        optimizer = make_optimizer(model.parameters())
        scheduler = make_scheduler(optimizer) if make_scheduler else None

        def step(x, y):
            if not late_zero:
                optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if late_zero:
                optimizer.zero_grad()
            return loss

        return model, optimizer, scheduler, step, lambda: (candelabra.randn(8, 12), candelabra.randint(0, 5, (8,)))

    return build


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.05, lr_decay=0.01),
    "adadelta": lambda p: optim.Adadelta(p),
    "adamax": lambda p: optim.Adamax(p),
    "nadam": lambda p: optim.NAdam(p),
    "radam": lambda p: optim.RAdam(p),
    "rprop": lambda p: optim.Rprop(p),
    "asgd": lambda p: optim.ASGD(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    check_equal(mlp(OPTIMIZERS[name]))


@pytest.mark.parametrize("name", ["sgd", "adamw"])
@pytest.mark.parametrize(
    "scheduler",
    [
        lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5),
        lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 10),
        lambda o: optim.lr_scheduler.LinearLR(o),
    ],
)
def test_schedules_of_the_learning_rate(name, scheduler):
    check_equal(mlp(OPTIMIZERS[name], scheduler))


def test_gradients_cleared_after_the_step():
    check_equal(mlp(OPTIMIZERS["adamw"], late_zero=True))


def test_accumulated_gradients():
    def build():
        model = nn.Linear(4, 3)
        optimizer = optim.SGD(model.parameters(), lr=0.1)

        def step(x):
            loss = model(x).square().mean()
            loss.backward()
            return loss

        return model, optimizer, None, step, lambda: (candelabra.randn(5, 4),)

    def before_step(number, model, optimizer):
        if number % 5 == 0:
            optimizer.step()
            optimizer.zero_grad()

    check_equal(build, 20, before_step=before_step)


def test_gradients_zeroed_in_place_stay_the_same_tensors():
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @candelabra.compile
    def step(x):
        optimizer.zero_grad(set_to_none=False)
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step(candelabra.randn(2, 4))
    before = model.weight.grad
    for _ in range(6):
        step(candelabra.randn(2, 4))
    assert is_replayed(step)
    assert model.weight.grad is before


def test_gradients_of_a_replay_are_new_tensors():
    model = nn.Linear(4, 3)

    @candelabra.compile
    def step(x):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    kept = []
    for _ in range(8):
        step(candelabra.randn(2, 4))
        kept.append((model.weight.grad, model.weight.grad.clone()))
    assert is_replayed(step)
    assert all(grad.equal(copy) for grad, copy in kept)


def cnn():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.4),
        nn.Conv2d(4, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, 5),
    )  # fmt: skip
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return model, optimizer, None, step, lambda: (candelabra.randn(4, 1, 12, 12), candelabra.randint(0, 5, (4,)))


def test_cnn_with_dropout_and_batch_norm():
    check_equal(cnn)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.after = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.dropout(self.out(attended.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.narrow(F.gelu(self.wide(self.after(x)))))


class GPT(nn.Module):
    def __init__(self, words=17, width=16, length=8):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 2) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, index):
        x = self.words(index) + self.positions(candelabra.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt():
    model = GPT()
    optimizer = optim.AdamW(model.parameters(), lr=0.003)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)

    def step(x, y):
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), y.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    return (
        model, optimizer, scheduler, step,
        lambda: (candelabra.randint(0, 17, (3, 8)), candelabra.randint(0, 17, (3, 8))),
    )  # fmt: skip


def test_gpt():
    check_equal(gpt)


@pytest.mark.parametrize("build", [cnn, gpt, mlp(OPTIMIZERS["adamw"])])
def test_memory_of_intermediate_tensors_is_not_used_after_their_last_use(build):
    check_equal(build, 6, debug=True)


def test_a_recurrent_network():
    def build():
        model = nn.GRUCell(3, 6)
        optimizer = optim.Adam(model.parameters(), lr=0.01)

        def step(x):
            optimizer.zero_grad()
            state = candelabra.zeros(2, 6)
            for part in x.unbind(1):
                state = model(part, state)
            loss = state.square().sum()
            loss.backward()
            optimizer.step()
            return loss

        return model, optimizer, None, step, lambda: (candelabra.randn(2, 5, 3),)

    check_equal(build)


def test_the_result_of_a_step_has_a_graph_that_is_used_up():
    model = nn.Linear(3, 1)

    @candelabra.compile
    def step(x):
        model.zero_grad()
        loss = model(x).sum()
        loss.backward()
        return loss

    for _ in range(6):
        loss = step(candelabra.ones(2, 3))
        assert loss.requires_grad
        assert loss.grad_fn.name() == "SumBackward0"
    assert is_replayed(step)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_a_compiled_optimizer_step():
    def run(compiled):
        candelabra.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = optim.AdamW(model.parameters(), lr=0.1)
        step = candelabra.compile(optimizer.step) if compiled else optimizer.step
        for _ in range(8):
            optimizer.zero_grad()
            model(candelabra.randn(3, 4)).square().sum().backward()
            step()
        assert not compiled or is_replayed(step)
        return model.weight.detach()

    assert run(True).equal(run(False))


def test_a_loaded_state_dict_is_used():
    candelabra.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = optim.AdamW(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()

    compiled = candelabra.compile(step)
    for _ in range(6):
        compiled(candelabra.randn(3, 4))
    saved = copy.deepcopy((optimizer.state_dict(), model.state_dict()))
    x = candelabra.randn(3, 4)
    compiled(x)
    expected = model.weight.detach().clone()
    optimizer.load_state_dict(saved[0])
    model.load_state_dict(saved[1])
    compiled(x)
    assert model.weight.equal(expected)


def test_a_parameter_group_that_is_added_is_stepped():
    model, other = nn.Linear(3, 1), nn.Parameter(candelabra.ones(1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @candelabra.compile
    def step(x):
        optimizer.zero_grad()
        (model(x) * other).sum().backward()
        optimizer.step()

    for _ in range(5):
        step(candelabra.ones(2, 3))
    assert other.item() == 1.0
    optimizer.add_param_group({"params": [other]})
    step(candelabra.ones(2, 3))
    assert other.item() != 1.0
