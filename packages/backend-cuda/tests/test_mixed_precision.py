"""Test autocasting and gradient scaling on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import candelabra

nn, optim = pytest.importorskip("candelabra.nn"), pytest.importorskip("candelabra.optim")
pytest.importorskip("candelabra.autograd")


def made(*sizes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=sizes).astype(np.float32)


#: PyTorch's autocast lists for accelerators, as functions of `x` and `y`.
FULL = {
    "acos": lambda c, F, x: c.acos(x), "asin": lambda c, F, x: c.asin(x), "cosh": lambda c, F, x: c.cosh(x),
    "erfinv": lambda c, F, x: c.erfinv(x), "exp": lambda c, F, x: x.exp(), "expm1": lambda c, F, x: c.expm1(x),
    "log": lambda c, F, x: c.log(x), "log10": lambda c, F, x: c.log10(x), "log2": lambda c, F, x: c.log2(x),
    "log1p": lambda c, F, x: c.log1p(x), "reciprocal": lambda c, F, x: c.reciprocal(x), "rsqrt": lambda c, F, x: c.rsqrt(x),
    "sinh": lambda c, F, x: c.sinh(x), "tan": lambda c, F, x: c.tan(x), "pow": lambda c, F, x: c.pow(x, 2),
    "power": lambda c, F, x: x**x, "square": lambda c, F, x: x.square(), "softplus": lambda c, F, x: F.softplus(x),
    "layer_norm": lambda c, F, x: F.layer_norm(x, (4,)), "group_norm": lambda c, F, x: F.group_norm(x, 2),
    "rms_norm": lambda c, F, x: F.rms_norm(x, (4,)), "cosine_similarity": lambda c, F, x: F.cosine_similarity(x, x),
    "norm": lambda c, F, x: c.norm(x), "vector_norm": lambda c, F, x: c.linalg.vector_norm(x, dim=1),
    "matrix_norm": lambda c, F, x: c.linalg.matrix_norm(x), "normalize": lambda c, F, x: F.normalize(x), "dist": lambda c, F, x: c.dist(x, x),
    "cdist": lambda c, F, x: c.cdist(x, x), "renorm": lambda c, F, x: c.renorm(x, 2, 0, 1.0), "logsumexp": lambda c, F, x: c.logsumexp(x, 1),
    "prod": lambda c, F, x: c.prod(x), "softmax": lambda c, F, x: F.softmax(x, 1), "log_softmax": lambda c, F, x: F.log_softmax(x, 1),
    "softmin": lambda c, F, x: F.softmin(x, 1), "cumprod": lambda c, F, x: c.cumprod(x, 0), "cumsum": lambda c, F, x: c.cumsum(x, 0),
    "sum": lambda c, F, x: x.sum(1), "nll_loss": lambda c, F, x: F.nll_loss(x, x.argmax(1)),
    "cross_entropy": lambda c, F, x: F.cross_entropy(x, x.argmax(1)), "mse_loss": lambda c, F, x: F.mse_loss(x, x),
    "l1_loss": lambda c, F, x: F.l1_loss(x, x), "smooth_l1_loss": lambda c, F, x: F.smooth_l1_loss(x, x),
    "huber_loss": lambda c, F, x: F.huber_loss(x, x), "kl_div": lambda c, F, x: F.kl_div(x, x, reduction="sum"),
    "bce_with_logits": lambda c, F, x: F.binary_cross_entropy_with_logits(x, x),
    "interpolate": lambda c, F, x: F.interpolate(x[None], scale_factor=2.0),
}  # fmt: skip
FAST = {
    "matmul": lambda c, F, x: x @ x, "mm": lambda c, F, x: c.mm(x, x), "mv": lambda c, F, x: c.mv(x, x[0]), "bmm": lambda c, F, x: c.bmm(x[None], x[None]),
    "addmm": lambda c, F, x: c.addmm(x, x, x), "addmv": lambda c, F, x: c.addmv(x[0], x, x[0]), "addr": lambda c, F, x: c.addr(x, x[0], x[0]),
    "baddbmm": lambda c, F, x: c.baddbmm(x[None], x[None], x[None]), "addbmm": lambda c, F, x: c.addbmm(x, x[None], x[None]),
    "einsum": lambda c, F, x: c.einsum("ij,jk->ik", x, x), "multi_dot": lambda c, F, x: c.linalg.multi_dot([x, x, x]),
    "vecdot": lambda c, F, x: c.linalg.vecdot(x, x), "linear": lambda c, F, x: F.linear(x, x), "conv1d": lambda c, F, x: F.conv1d(x[None], x[:, :, None]),
    "conv_transpose1d": lambda c, F, x: F.conv_transpose1d(x[None], x[:, :, None]), "prelu": lambda c, F, x: F.prelu(x, x[0]),
    "attention": lambda c, F, x: F.scaled_dot_product_attention(*[x[None, None]] * 3),
}  # fmt: skip
KEPT = {
    "relu": lambda c, F, x: F.relu(x), "gelu": lambda c, F, x: F.gelu(x), "silu": lambda c, F, x: F.silu(x), "tanh": lambda c, F, x: x.tanh(),
    "sigmoid": lambda c, F, x: x.sigmoid(), "sqrt": lambda c, F, x: x.sqrt(), "mean": lambda c, F, x: x.mean(), "std": lambda c, F, x: x.std(),
    "amax": lambda c, F, x: x.amax(1), "batch_norm": lambda c, F, x: F.batch_norm(x, None, None, training=True),
    "instance_norm": lambda c, F, x: F.instance_norm(x[None]), "dropout": lambda c, F, x: F.dropout(x), "pool": lambda c, F, x: F.max_pool1d(x[None], 2),
    "mish": lambda c, F, x: F.mish(x), "add": lambda c, F, x: x + x, "sin": lambda c, F, x: x.sin(),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("recorded", [False, True], ids=["plain", "recorded"])
def test_dtypes(cuda, dtype, recorded):
    low = getattr(candelabra, dtype)
    numbers = np.random.default_rng(0).uniform(0.2, 0.8, (4, 4)).astype(np.float32)
    full = candelabra.tensor(numbers).to(cuda).requires_grad_(recorded)
    half = full.detach().to(low).requires_grad_(recorded)
    found, wanted = {}, {}
    for calls, of_half, of_full in ((FULL, "float32", "float32"), (FAST, dtype, dtype), (KEPT, dtype, "float32")):
        for name, call in calls.items():
            with candelabra.autocast("cuda", dtype=low):
                results = [call(candelabra, nn.functional, x) for x in (half, full)]
            found[name] = tuple(str(result.dtype).partition(".")[2] for result in results)
            wanted[name] = (of_half, of_full)
            if recorded and name not in ("interpolate",):
                gradient, *_ = candelabra.autograd.grad(results[0].sum(), half)
                assert gradient.dtype == low, name
    assert found == wanted


def test_mixed_arguments_and_blocks(cuda):
    x = candelabra.tensor(made(4, 4)).to(cuda)
    low = x.half()
    with candelabra.autocast("cuda"):
        for result in (
            candelabra.tensordot(x, low, 1), candelabra.inner(x, low), candelabra.dot(x[0], low[0]), candelabra.addcmul(x, low, low), x + low,
            low.scatter_add(0, candelabra.zeros(4, 4, dtype=candelabra.int64, device=cuda), x), candelabra.cat([x, low]),
            low.index_put((candelabra.tensor([0], device=cuda),), x[:1]), nn.functional.bilinear(x, low, x[None].expand(2, 4, 4)),
        ):  # fmt: skip
            assert result.dtype == candelabra.float32
        assert candelabra.tensordot(low, low, 1).dtype == candelabra.float16
        assert (x.double() @ x.double()).dtype == candelabra.float64
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            nn.functional.binary_cross_entropy(x.sigmoid(), x.sigmoid())
        with candelabra.autocast("cuda", enabled=False):
            assert (x @ x).dtype == candelabra.float32 and low.exp().dtype == candelabra.float16
        assert (candelabra.ones(2, 2) @ candelabra.ones(2, 2)).dtype == candelabra.float32, "the host is not asked"
        np.testing.assert_allclose((x @ x).float().cpu().numpy(), made(4, 4) @ made(4, 4), rtol=0.01, atol=0.01)
    assert (x @ x).dtype == candelabra.float32
    with candelabra.cuda.amp.autocast(dtype=candelabra.bfloat16):
        assert (x @ x).dtype == candelabra.bfloat16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_training(cuda, dtype):
    candelabra.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(cuda)
    optimizer = optim.Adam(module.parameters(), lr=0.02)
    scaler = candelabra.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=4)
    x = candelabra.tensor(made(32, 8)).to(cuda)
    target = candelabra.tensor(made(32, 8).sum(1, keepdims=True)).to(cuda)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        with candelabra.autocast("cuda", dtype=getattr(candelabra, dtype)):
            loss = nn.functional.mse_loss(module(x), target)
        assert loss.dtype == candelabra.float32
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(module.parameters(), 10.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0] and all(
        parameter.dtype == candelabra.float32 for parameter in module.parameters()
    )
    assert scaler.get_scale() == 1024.0 * 2**3


def test_gradients_that_are_not_finite(cuda):
    parameter = nn.Parameter(candelabra.ones(3, device=cuda))
    other = nn.Parameter(candelabra.ones(2, device=cuda))
    optimizer = optim.SGD([parameter, other], lr=1.0)
    scaler = candelabra.cuda.amp.GradScaler(init_scale=8.0, growth_interval=1)
    for gradient, taken, scale in (
        ([1.0, 2.0, 3.0], True, 16.0),
        ([1.0, float("inf"), 0.0], False, 8.0),
        ([float("nan")] * 3, False, 4.0),
    ):
        before = [parameter.tolist(), other.tolist()]
        parameter.grad = scaler.scale(candelabra.tensor(gradient).to(cuda))
        other.grad = scaler.scale(candelabra.ones(2, device=cuda))
        scaler.step(optimizer)
        scaler.update()
        assert ([parameter.tolist(), other.tolist()] != before) == taken
        assert scaler.get_scale() == scale
    assert parameter.tolist() == [0.0, -1.0, -2.0] and other.tolist() == [0.0, 0.0]
    # Half precision: 70000 overflows float16, so the scaler reduces the scale.
    scaler = candelabra.amp.GradScaler("cuda", init_scale=65536.0)
    weight = nn.Parameter(candelabra.ones(4, 4, device=cuda))
    with candelabra.autocast("cuda", dtype=candelabra.float16):
        loss = (candelabra.ones(4, 4, device=cuda) @ weight).sum()
    scaler.scale(loss).backward()
    scaler.step(optim.SGD([weight], lr=1.0))
    scaler.update()
    assert scaler.get_scale() == 32768.0 and weight.tolist() == [[1.0] * 4] * 4


def test_scaled_parameters_on_two_devices(cuda):
    if candelabra.cuda.device_count() < 2:
        pytest.skip("needs 2 GPUs")
    parameters = [nn.Parameter(candelabra.ones(2, device=f"cuda:{index}")) for index in range(2)]
    optimizer = optim.SGD(parameters, lr=1.0)
    scaler = candelabra.amp.GradScaler("cuda", init_scale=4.0)
    for broken in (False, True):
        for parameter in parameters:
            parameter.grad = scaler.scale(candelabra.ones(2, device=parameter.device))
        if broken:
            parameters[1].grad[0] = float("inf")
        scaler.step(optimizer)
        scaler.update()
    assert [parameter.tolist() for parameter in parameters] == [[0, 0], [0, 0]] and scaler.get_scale() == 2.0
