"""Autocasting and the scaling of gradients."""

import pickle
import threading

import numpy as np
import pytest

import candelabra as c
from candelabra import _C
from candelabra.amp import GradScaler, custom_bwd, custom_fwd


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert _C.set_dispatch_hook(None) is None and not c.is_autocast_enabled()


MATRIX = c.ones(3, 3) + c.eye(3)
LOW = MATRIX.to(c.bfloat16)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda: MATRIX @ MATRIX, c.bfloat16),
        (lambda: MATRIX @ LOW, c.bfloat16),
        (lambda: c.bmm(MATRIX[None], MATRIX[None]), c.bfloat16),
        (lambda: c.addmm(MATRIX, MATRIX, MATRIX), c.bfloat16),
        (lambda: c.einsum("ij,jk->ik", MATRIX, MATRIX), c.bfloat16),
        (lambda: c.ops.linear(MATRIX, MATRIX, MATRIX[0]), c.bfloat16),
        (lambda: c.ops.linear(MATRIX.double(), MATRIX.double()), c.float64),
        (lambda: MATRIX + LOW, c.float32),
        (lambda: LOW.exp(), c.bfloat16),
        (lambda: c.cat([MATRIX, LOW]), c.float32),
        (lambda: c.linalg.inv(LOW), c.float32),
        (lambda: c.linalg.svdvals(LOW), c.float32),
        (lambda: c.linalg.det(LOW), c.float32),
        (lambda: c.fft.fft(LOW), c.complex64),
        (lambda: c.prod(LOW), c.float32),
        (lambda: c.mm(MATRIX.long(), MATRIX.long()), c.int64),
    ],
)
def test_dtypes(act, expected):
    with c.autocast("cpu"):
        assert act().dtype == expected


def test_values_are_those_of_cast_arguments():
    rng = np.random.default_rng(0)
    a, b = c.tensor(rng.standard_normal((5, 7))).float(), c.tensor(rng.standard_normal((7, 3))).float()
    with c.autocast("cpu"):
        found = a @ b
    assert found.tolist() == (a.bfloat16() @ b.bfloat16()).tolist()
    assert (a @ b).dtype == c.float32


def test_arguments_by_name_are_cast():
    a, b = c.randn(2, 3), c.randn(3, 2)
    with c.autocast("cpu"):
        expected = c.tensordot(a, b, 1)
        assert c.tensordot(a, b=b, dims=1).equal(expected)
        assert c.tensordot(a=a, b=b.bfloat16(), dims=1).equal(expected)
    assert expected.dtype is c.bfloat16


def test_in_place_and_out_are_left_alone():
    with c.autocast("cpu"):
        out = c.empty(3, 3)
        c.mm(MATRIX, MATRIX, out=out)
        assert out.tolist() == [[6.0, 5.0, 5.0], [5.0, 6.0, 5.0], [5.0, 5.0, 6.0]]
        changed = MATRIX.clone()
        changed.addmm_(MATRIX, MATRIX)
        assert changed.dtype == c.float32


def test_blocks_within_blocks():
    assert c.get_autocast_dtype("cpu") == c.bfloat16
    with c.autocast("cpu", dtype=c.float16):
        assert c.is_autocast_enabled("cpu") and c.get_autocast_dtype("cpu") == c.float16
        assert (MATRIX @ MATRIX).dtype == c.float16
        with c.autocast("cpu", enabled=False):
            assert not c.is_autocast_enabled() and (MATRIX @ MATRIX).dtype == c.float32
            with c.autocast("cpu", dtype=c.bfloat16):
                assert (MATRIX @ MATRIX).dtype == c.bfloat16
        assert (MATRIX @ MATRIX).dtype == c.float16
        with pytest.raises(ZeroDivisionError), c.autocast("cpu"):
            1 / 0
        assert (MATRIX @ MATRIX).dtype == c.float16
    assert c.get_autocast_dtype("cpu") == c.bfloat16

    @c.autocast("cpu")
    def product(x):
        """What it does."""
        return x @ x

    assert product(MATRIX).dtype == c.bfloat16 and product.__doc__ == "What it does."
    c.set_autocast_enabled("cpu", True)
    assert (MATRIX @ MATRIX).dtype == c.bfloat16
    c.set_autocast_enabled("cpu", False)


def test_threads_have_their_own_state():
    seen = []
    with c.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((MATRIX @ MATRIX).dtype))
        thread.start()
        thread.join()
        assert (MATRIX @ MATRIX).dtype == c.bfloat16
    assert seen == [c.float32]


def test_errors_and_warnings():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        c.autocast(3)
    with pytest.raises(RuntimeError, match="User specified an unsupported autocast device_type 'toaster'"):
        c.autocast("toaster")
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast."):
        block = c.autocast("cpu", dtype=c.float64)
    with block:
        assert (MATRIX @ MATRIX).dtype == c.float32
    with pytest.raises(RuntimeError, match="size mismatch|shapes cannot be multiplied"), c.autocast("cpu"):
        c.mm(MATRIX, c.ones(2, 2))


def test_custom_functions():
    class Context:
        pass

    @custom_fwd(device_type="cpu", cast_inputs=c.float32)
    def plain(ctx, x, rest):
        return x.dtype, rest["y"].dtype, c.is_autocast_enabled("cpu")

    @custom_fwd(device_type="cpu")
    def cast(ctx, x):
        return (x @ x).dtype

    @custom_bwd(device_type="cpu")
    def backward(ctx, x):
        return (x @ x).dtype

    one, two = Context(), Context()
    with c.autocast("cpu", dtype=c.float16):
        assert plain(one, LOW, {"y": MATRIX.double()}) == (c.float32, c.float64, False)
        assert cast(two, MATRIX) == c.float16
    assert backward(one, MATRIX) == c.float32 and backward(two, MATRIX) == c.float16
    assert plain(Context(), LOW, {"y": MATRIX})[0] == c.bfloat16


# ---- gradients scaled


class Descent:
    """The least that a scaler needs of an optimizer."""

    def __init__(self, *parameters):
        self.param_groups = [{"params": list(parameters)}]
        self.steps = 0

    def step(self):
        self.steps += 1
        for parameter in self.param_groups[0]["params"]:
            parameter.sub_(parameter.grad)
        return "stepped"


def one(scaler, parameter, optimizer, grad):
    parameter.grad = scaler.scale(c.tensor(grad))
    return scaler.step(optimizer)


def test_scaler():
    scaler = GradScaler("cpu", init_scale=4.0, growth_interval=2)
    parameter = c.zeros(2)
    optimizer = Descent(parameter)
    assert one(scaler, parameter, optimizer, [1.0, 2.0]) == "stepped"
    assert parameter.tolist() == [-1.0, -2.0] and scaler.get_scale() == 4.0
    scaler.update()
    assert one(scaler, parameter, optimizer, [1.0, 2.0]) == "stepped"
    scaler.update()
    assert scaler.get_scale() == 8.0  # two updates in a row
    assert one(scaler, parameter, optimizer, [1.0, float("inf")]) is None
    assert optimizer.steps == 2 and parameter.tolist() == [-2.0, -4.0]
    scaler.update()
    assert scaler.get_scale() == 4.0
    assert one(scaler, parameter, optimizer, [float("nan"), 0.0]) is None
    scaler.update(16.0)
    assert scaler.get_scale() == 16.0
    parameter.grad = scaler.scale(c.ones(2))
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [1.0, 1.0]
    with pytest.raises(
        RuntimeError, match="unscale_\\(\\) has already been called on this optimizer since the last update\\(\\)."
    ):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called since the last update\\(\\)."):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="unscale_\\(\\) is being called after step\\(\\)."):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled at the beginning of an iteration"):
        pickle.dumps(scaler)
    scaler.update()
    other = pickle.loads(pickle.dumps(scaler))
    assert other.state_dict() == scaler.state_dict() == {
        "scale": 16.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 1,
    }  # fmt: skip
    fresh = GradScaler("cpu")
    fresh.load_state_dict(scaler.state_dict())
    assert fresh.get_scale() == 16.0 and fresh.get_growth_interval() == 2
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        fresh.load_state_dict({})


def test_scaler_errors():
    with pytest.raises(AssertionError, match="The growth factor must be > 1.0."):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="The backoff factor must be < 1.0."):
        GradScaler("cpu", backoff_factor=1.0)
    scaler = GradScaler("cpu")
    optimizer = Descent(c.zeros(1))
    with pytest.raises(AssertionError, match="has not scaled anything yet"):
        scaler.step(optimizer)
    assert [x.item() for x in scaler.scale([c.ones(()), c.ones(())])] == [65536.0, 65536.0]
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer."):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported if GradScaler is enabled."):
        scaler.step(optimizer, closure=lambda: None)
    half = c.zeros(1, dtype=c.float16)
    half.grad = half.clone()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients."):
        scaler.unscale_(Descent(half))
    with pytest.warns(UserWarning, match="is not available.  Disabling."):
        off = GradScaler("toaster")
    loss = c.ones(())
    assert off.scale(loss) is loss and off.get_scale() == 1.0 and off.state_dict() == {} and not off.is_enabled()


def test_scaler_of_an_optimizer_that_scales():
    class Own(Descent):
        _step_supports_amp_scaling = True

        def step(self):
            self.seen = (self.grad_scale.item(), self.found_inf.item())

    scaler = GradScaler("cpu", init_scale=2.0)
    parameter = c.zeros(1)
    optimizer = Own(parameter)
    for grad, found in (([1.0], 0.0), ([float("inf")], 1.0)):
        one(scaler, parameter, optimizer, grad)
        assert optimizer.seen == (2.0, found) and not hasattr(optimizer, "found_inf")
        scaler.update()
    assert scaler.get_scale() == 1.0
