"""Programs of functions that autocast, batch and differentiate."""

import io

import pytest

import candelabra
from candelabra import func, nn
from candelabra.export import Dim, export, load, save
from candelabra.nn import functional as F


class Model(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.layer = nn.Linear(4, 4)

    def forward(self, *args):
        return self.function(self.layer, *args)


def lower(function):
    def cast(*args):
        with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
            return function(*args)

    return cast


def _outside(layer, x):
    hidden = layer(x)
    with candelabra.autocast("cpu", enabled=False):
        return layer(hidden.float())


def _gradients(layer, x):
    """Return gradients of a loss that is computed in bfloat16."""
    with candelabra.enable_grad():
        x = x.detach().requires_grad_()
        with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
            loss = (layer(x).float() ** 2).sum()
        return candelabra.autograd.grad(loss, [x, layer.weight])


def _zeros(row):
    made = candelabra.zeros(4)
    made.copy_(row)
    made[0] = row[1]
    return made


def _sample_gradients(layer, x, y):
    parameters = {name: value.detach() for name, value in layer.named_parameters()}

    def loss(parameters, one, other):
        return ((func.functional_call(layer, parameters, (one,)) - other) ** 2).sum()

    found = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    return found["weight"], found["bias"]


CASES = {
    "autocast": (lower(lambda layer, x: layer(F.relu(layer(x))) + layer(x)), 1),
    "autocast and float32": (lower(lambda layer, x: F.layer_norm(layer(x), (4,)).softmax(-1)), 1),
    "autocast in part": (lower(_outside), 1),
    "autocast and gradients": (_gradients, 1),
    "vmap": (lambda layer, x: func.vmap(lambda row: candelabra.dot(row, row) * layer.weight[0].sum())(x), 1),
    "vmap of columns": (lambda layer, x, y: func.vmap(lambda a, b: (a * b).sum(), in_dims=(0, 0))(x.t(), y.t()), 2),
    "vmap in vmap": (lambda layer, x, y: func.vmap(lambda a: func.vmap(lambda b: candelabra.dot(a, b))(y))(x), 2),
    "vmap in place": (lambda layer, x: func.vmap(lambda row: row.clone().add_(1).mul_(layer.bias))(x), 1),
    "vmap and new tensors": (lambda layer, x: func.vmap(lambda row: (_zeros(row), candelabra.arange(4)))(x), 1),
    "vmap and random numbers": (
        lambda layer, x: func.vmap(lambda row: row + candelabra.randn(4), randomness="different")(x), 1,
    ),
    "vmap and indices": (lambda layer, x: func.vmap(lambda row: row[candelabra.argsort(row)])(x), 1),
    "autocast around vmap": (lower(lambda layer, x: func.vmap(layer)(x)), 1),
    "vmap around autocast": (lambda layer, x: func.vmap(lower(layer))(x), 1),
    "gradients of samples": (_sample_gradients, 2),
    "reverse mode": (lambda layer, x: func.jacrev(lambda row: layer(row).tanh())(x[0]) + x.sum(), 1),
    "forward mode": (lambda layer, x: func.jvp(lambda rows: layer(rows).tanh(), (x,), (x,))[1], 1),
    "hessian": (lambda layer, x: func.hessian(lambda row: layer(row).tanh().sum())(x[0]) + x.sum(), 1),
}  # fmt: skip


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_programs_compute_the_same(name, is_dynamic):
    function, count = CASES[name]
    model = Model(function).eval()
    sizes = tuple({0: Dim("rows", max=64)} for _ in range(count)) if is_dynamic else None
    example = tuple(candelabra.randn(5, 4) for _ in range(count))
    program = export(model, example, dynamic_shapes=sizes)
    assert not program.constants
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    loaded = load(file).module()
    args = tuple(candelabra.randn(7 if is_dynamic else 5, 4) for _ in range(count))
    found = []
    for one in (model, loaded):
        candelabra.manual_seed(3)
        result = one(*args)
        found.append(result if isinstance(result, tuple) else (result,))
    for expected, result in zip(*found, strict=True):
        assert expected.dtype == result.dtype
        assert expected.equal(result)


def test_a_program_that_is_exported_under_autocast_has_its_conversions():
    model, x = nn.Linear(4, 4), candelabra.randn(5, 4)
    with candelabra.autocast("cpu", dtype=candelabra.bfloat16):
        expected = model(x)  # the converted weight of this call is no constant of the program
        program = export(model, (x,))
    assert not program.constants
    assert program.module()(x).equal(expected)
    changed = {name: 2 * value for name, value in model.state_dict().items()}
    module = program.module()
    module.load_state_dict(changed)
    assert module(x).float().allclose(2 * expected.float(), rtol=0.02)


def test_a_program_with_conversions_runs_without_python(tmp_path):
    model = Model(lower(lambda layer, x: func.vmap(layer)(x))).eval()
    path = tmp_path / "model.cex"
    save(export(model, (candelabra.randn(5, 4),)), path, runner=True)
    x = candelabra.randn(5, 4)
    assert load(path).module()(x).equal(model(x))
