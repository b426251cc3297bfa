"""Test parameter groups, states, state dicts, closures, hooks and errors."""

import copy
import pickle

import numpy as np
import pytest
from update_rules import CONFIGURATIONS, RULES

import candelabra
from candelabra import optim
from candelabra.optim import hooks


def tensors(count=2):
    made = [candelabra.ones(2, dtype=candelabra.float64) * (i + 1) for i in range(count)]
    for tensor in made:
        tensor.grad = candelabra.ones(2, dtype=candelabra.float64)
    return made


def test_groups():
    a, b, c = tensors(3)
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.1, momentum=0.5)
    optimizer.add_param_group({"params": iter([c]), "momentum": 0.0})
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.1, 0.1]
    assert [group["momentum"] for group in optimizer.param_groups] == [0.5, 0.5, 0.0]
    optimizer.step()
    assert [t[0].item() for t in (a, b, c)] == [0.0, 1.9, 2.9]


def test_named_parameters():
    a, b = tensors()
    optimizer = optim.SGD([("first", a), ("second", b)], lr=0.1)
    assert optimizer.param_groups[0]["params"] == [a, b] or all(
        x is y for x, y in zip(optimizer.param_groups[0]["params"], [a, b], strict=True)
    )
    assert optimizer.param_groups[0]["param_names"] == ["first", "second"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    optimizer.load_state_dict(optim.SGD([a, b], lr=0.5).state_dict())
    assert optimizer.param_groups[0]["param_names"] == ["first", "second"] and optimizer.param_groups[0]["lr"] == 0.5


def test_zero_grad():
    a, b = tensors()
    optimizer = optim.SGD([a, b])
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert a.grad is None and b.grad is None
    optimizer.step()
    assert a.tolist() == [1, 1]


@pytest.mark.parametrize("name", RULES)
def test_closure(name):
    (a,) = tensors(1)
    optimizer = getattr(optim, name)([a])
    seen = []

    def closure():
        seen.append(candelabra.is_grad_enabled())
        a.grad = candelabra.ones(2, dtype=candelabra.float64)
        return 42

    with candelabra.no_grad():
        assert optimizer.step(closure) == 42
    assert seen == [True] and a[0].item() != 1
    assert optimizer.step() is None


def test_repr():
    optimizer = optim.SGD([{"params": tensors(1)}, {"params": tensors(1), "lr": 1.0}], lr=0.5)
    group = (
        "Parameter Group {}\n    dampening: 0\n    differentiable: False\n    foreach: None\n    fused: None\n    lr: {}\n"
        "    maximize: False\n    momentum: 0\n    nesterov: False\n    weight_decay: 0\n"
    )
    assert repr(optimizer) == "SGD (\n" + group.format(0, 0.5) + "\n" + group.format(1, 1.0) + ")"


def run(optimizer, parameters, steps, rng):
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = candelabra.tensor(rng.standard_normal(tuple(parameter.shape)))
        optimizer.step()


@pytest.mark.parametrize(("name", "options"), CONFIGURATIONS, ids=str)
def test_state_dict_resumes(name, options):
    rng = np.random.default_rng(3)
    one = tensors()
    first = getattr(optim, name)(one, **options)
    run(first, one, 3, rng)
    two = [t.clone() for t in one]
    second = getattr(optim, name)(two)
    second.load_state_dict(first.state_dict())
    third = pickle.loads(pickle.dumps(first))
    fourth = copy.deepcopy(first)
    for other in (second, third, fourth):
        params = other.param_groups[0]["params"]
        assert params[0] is not one[0] and repr(other) == repr(first)
    follow = np.random.default_rng(4)
    run(first, one, 3, follow)
    for other in (second, third, fourth):
        params = other.param_groups[0]["params"]
        run(other, params, 3, np.random.default_rng(4))
        for mine, theirs in zip(params, one, strict=True):
            np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


#: The entries of a state, by PyTorch's names.
STATES = {
    "SGD": ({"momentum": 0.9}, ["momentum_buffer"]),
    "Adam": ({"amsgrad": True}, ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]),
    "AdamW": ({}, ["step", "exp_avg", "exp_avg_sq"]),
    "RMSprop": ({"momentum": 0.9, "centered": True}, ["step", "square_avg", "momentum_buffer", "grad_avg"]),
    "Adagrad": ({}, ["step", "sum"]),
    "Adadelta": ({}, ["step", "square_avg", "acc_delta"]),
    "Adamax": ({}, ["step", "exp_avg", "exp_inf"]),
    "NAdam": ({}, ["step", "mu_product", "exp_avg", "exp_avg_sq"]),
    "RAdam": ({}, ["step", "exp_avg", "exp_avg_sq"]),
    "ASGD": ({}, ["step", "eta", "mu", "ax"]),
    "Rprop": ({}, ["step", "prev", "step_size"]),
}


@pytest.mark.parametrize("name", STATES)
def test_format_of_state_dicts(name):
    options, entries = STATES[name]
    parameters = tensors()
    optimizer = getattr(optim, name)(parameters, **options)
    run(optimizer, parameters, 2, np.random.default_rng(0))
    saved = optimizer.state_dict()
    assert list(saved) == ["state", "param_groups"] and list(saved["state"]) == [0, 1]
    assert list(saved["state"][1]) == entries and saved["param_groups"][0]["params"] == [0, 1]
    assert all(value is not parameters for value in saved["param_groups"][0].values())
    for key, value in saved["state"][0].items():
        assert isinstance(value, candelabra.Tensor)
        if key == "step":
            assert value.shape == () and value.dtype == candelabra.float32 and value.item() == 2
        elif key in ("mu_product", "eta", "mu"):
            assert value.shape == () and value.dtype == candelabra.float64
        else:
            assert value.shape == (2,) and value.dtype == candelabra.float64


def test_loading_a_state_of_pytorch():
    # What torch.optim.Adam.state_dict() holds after one step, with our tensors.
    (a,) = tensors(1)
    saved = {
        "state": {0: {"step": candelabra.tensor(1.0), "exp_avg": candelabra.tensor([0.1, 0.1]), "exp_avg_sq": candelabra.tensor([0.001, 0.001])}},
        "param_groups": [
            {"lr": 0.5, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False, "maximize": False, "foreach": None,
             "capturable": False, "differentiable": False, "fused": None, "params": [0]}
        ],
    }  # fmt: skip
    optimizer = optim.Adam([a])
    optimizer.load_state_dict(saved)
    state = optimizer.state[a]
    assert state["exp_avg"].dtype == candelabra.float64 and optimizer.param_groups[0]["lr"] == 0.5
    optimizer.step()
    assert optimizer.state_dict()["state"][0]["step"].item() == 2
    m, v = 0.9 * float(np.float32(0.1)) + 0.1, 0.999 * float(np.float32(0.001)) + 0.001
    expected = 1 - 0.5 * (m / (1 - 0.81)) / (np.sqrt(v / (1 - 0.999**2)) + 1e-8)
    np.testing.assert_allclose(a.numpy(), [expected] * 2, rtol=1e-9)


def test_loaded_state_is_a_copy():
    parameters = tensors()
    first, second = (optim.SGD(parameters, momentum=0.9) for _ in range(2))
    first.step()
    second.load_state_dict(first.state_dict())
    second.state[parameters[0]]["momentum_buffer"].zero_()
    assert first.state[parameters[0]]["momentum_buffer"][0].item() == 1


def test_state_can_be_taken_away():
    (a,) = tensors(1)
    optimizer = optim.SGD([a], lr=1.0, momentum=0.5)
    optimizer.step()
    optimizer.state.clear()
    optimizer.step()
    assert a[0].item() == -1.0
    optimizer.state[a] = {}
    optimizer.step()
    assert a[0].item() == -2.0
    optimizer.state[a]["momentum_buffer"] = candelabra.zeros(2, dtype=candelabra.float64)
    optimizer.step()
    assert a[0].item() == -3.0


def test_step_hooks():
    (a,) = tensors(1)
    optimizer, calls = optim.SGD([a], lr=1.0), []
    before = optimizer.register_step_pre_hook(lambda *arguments: calls.append("pre"))
    after = optimizer.register_step_post_hook(lambda *arguments: calls.append("post"))
    everywhere = [
        hooks.register_optimizer_step_pre_hook(lambda *arguments: calls.append("all pre")),
        hooks.register_optimizer_step_post_hook(lambda *arguments: calls.append("all post")),
    ]
    try:
        optimizer.step()
    finally:
        for handle in everywhere:
            handle.remove()
    assert calls == ["all pre", "pre", "post", "all post"]
    with before, after:
        optimizer.step()
    optimizer.step()
    assert calls[4:] == ["pre", "post"] and a[0].item() == -2
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((lambda: 7,), kwargs))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_hooks_of_a_step_that_calls_its_base():
    class Own(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    (a,) = tensors(1)
    optimizer, calls = Own([a], lr=1.0), []
    optimizer.register_step_post_hook(lambda *arguments: calls.append(1))
    optimizer.step()
    optimizer.step()
    assert calls == [1, 1] and a[0].item() == -1


def test_capturable_states_load():
    (a,) = tensors(1)
    optimizer = optim.Adam([a])
    saved = optimizer.state_dict()
    saved["param_groups"][0]["capturable"] = True
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["capturable"] is False


def test_state_dict_hooks():
    (a,) = tensors(1)
    optimizer, calls = optim.SGD([a], lr=1.0), []
    optimizer.register_state_dict_pre_hook(lambda optimizer: calls.append("second"))
    optimizer.register_state_dict_pre_hook(lambda optimizer: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda optimizer, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: calls.append(state.pop("more")))
    optimizer.register_load_state_dict_post_hook(lambda optimizer: calls.append("loaded"))
    saved = optimizer.state_dict()
    assert saved["more"] == 1
    optimizer.load_state_dict(saved)
    assert calls == ["first", "second", 1, "loaded"] and saved["more"] == 1


def test_own_optimizers():
    class Signs(optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for parameter in group["params"]:
                    self.state[parameter]["step"] = self.state[parameter].get("step", 0) + 1
                    parameter.sub_(parameter.grad.sign(), alpha=group["lr"])

    (a,) = tensors(1)
    optimizer, calls = Signs([a]), []
    optimizer.register_step_post_hook(lambda *arguments: calls.append(1))
    optimizer.step()
    other = Signs([a])
    other.load_state_dict(optimizer.state_dict())
    assert calls == [1] and other.state[a] == {"step": 1} and abs(a[0].item() - 0.9) < 1e-12


def z():
    return candelabra.zeros(2)


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
        (
            lambda: optim.SGD(z()),
            TypeError,
            "params argument given to the optimizer should be an iterable of Tensors or dicts",
        ),
        (lambda: optim.SGD([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([{"params": {z()}}]), TypeError, "parameters need to be organized in ordered collections"),
        (
            lambda: optim.SGD([{"params": [p := z()]}, {"params": [p]}]),
            ValueError,
            "some parameters appear in more than one parameter group",
        ),
        (lambda: optim.SGD([("a", z()), z()]), ValueError, "Some param names are missing"),
        (
            lambda: optim.SGD([("a", z())]).add_param_group({"params": [z()]}),
            ValueError,
            "should be with/without names",
        ),
        (lambda: optim.SGD([z()]).add_param_group(3), TypeError, "param_group must be a dict"),
        (
            lambda: optim.SGD([z()]).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "different number of parameter groups",
        ),
        (
            lambda: optim.SGD([z()]).load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
            ValueError,
            "doesn't match the size of optimizer's group",
        ),
        (lambda: optim.Optimizer([z()], {}).step(), NotImplementedError, "defines no step()"),
        (
            lambda: optim.Optimizer([z()], {"lr": optim.optimizer.required}),
            ValueError,
            "required optimization parameter lr",
        ),
        (lambda: optim.SGD([z()], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
        (lambda: optim.SGD([z()], lr=z()), ValueError, "Tensor lr must be 1-element"),
        (lambda: optim.SGD([z()], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.SGD([z()], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (
            lambda: optim.SGD([z()], nesterov=True),
            ValueError,
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (lambda: optim.Adam([z()], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam([z()], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([z()], betas=(0.9, -1)), ValueError, "Invalid beta parameter at index 1: -1"),
        (lambda: optim.AdamW([z()], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.RMSprop([z()], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda: optim.RMSprop([z()], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.RMSprop([z()], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: optim.RMSprop([z()], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.Adagrad([z()], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
        (
            lambda: optim.Adagrad([z()], initial_accumulator_value=-1),
            ValueError,
            "Invalid initial_accumulator_value value: -1",
        ),
        (lambda: optim.Adagrad([z()], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adagrad([z()], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (
            lambda: optim.Adam([z()], fused=True, foreach=True),
            RuntimeError,
            "`fused` and `foreach` cannot be `True` together.",
        ),
        (lambda: optim.Adam([z()], capturable=True), RuntimeError, "capturable=True is not supported"),
        (
            lambda: optim.Adam([z()], differentiable=True, fused=True),
            RuntimeError,
            "`fused` does not support `differentiable`",
        ),
        (
            lambda: optim.Adam([z()], betas=(0.9, candelabra.tensor(0.9))),
            ValueError,
            "betas must be either both floats or both Tensors",
        ),
        (
            lambda: optim.Adam([z()], lr=candelabra.tensor(0.1), foreach=True),
            ValueError,
            "lr as a Tensor is not supported",
        ),
        (
            lambda: optim.Adam([z().to(candelabra.complex64)], fused=True),
            RuntimeError,
            "`fused=True` requires all the params to be floating point Tensors",
        ),
    ],
)
def test_errors(act, error, text):
    with pytest.raises(error) as caught:
        act()
    assert text in str(caught.value)


def test_duplicates_warn():
    a = z()
    with pytest.warns(UserWarning, match="parameter group with duplicate parameters"):
        optim.SGD([a, a])


def test_mismatched_gradient_is_an_error_and_changes_nothing():
    a, b = tensors()
    optimizer = optim.Adam([a, b], fused=True)
    optimizer.step()
    before = a.tolist(), copy.deepcopy(optimizer.state_dict()["state"][0]["step"].item())
    optimizer.state[b]["exp_avg"] = candelabra.zeros(3, dtype=candelabra.float64)
    with pytest.raises(RuntimeError, match="fused_adam"):
        optimizer.step()
    assert (a.tolist(), optimizer.state_dict()["state"][0]["step"].item()) == before


def test_a_subclass_may_skip_the_base_class_constructor():
    class Wrapper(optim.Optimizer):
        def __init__(self, base):
            self.base = base
            self.param_groups, self.state, self.defaults = base.param_groups, {}, base.defaults

        def step(self, closure=None):
            return self.base.step(closure)

    weight = candelabra.ones(2, requires_grad=True)
    optimizer = Wrapper(optim.SGD([weight], lr=0.1))
    schedule = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    weight.grad = 2 * weight.detach()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    np.testing.assert_allclose(weight.tolist(), [0.8, 0.8], rtol=1e-6)
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert weight.grad is None


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD"])
def test_fused_steps_of_meta_parameters_are_refused(kind):
    parameter = candelabra.zeros(2, device="meta")
    optimizer = getattr(optim, kind)([parameter], lr=0.1, fused=True)
    parameter.grad = candelabra.zeros(2, device="meta")
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
        optimizer.step()


def test_loading_adds_no_option_that_the_optimizer_lacks():
    first, second = (optim.Adafactor([candelabra.zeros(2)]) for _ in range(2))
    second.load_state_dict(first.state_dict())
    assert "differentiable" not in second.param_groups[0]


def test_lbfgs_of_a_zero_gradient_with_no_tolerance():
    parameter = candelabra.zeros(2)
    optimizer = optim.LBFGS([parameter], tolerance_grad=-1.0)

    def closure():
        parameter.grad = parameter * 2
        return (parameter**2).sum()

    assert optimizer.step(closure).item() == 0.0
    assert parameter.tolist() == [0.0, 0.0]
