"""Programs that the runner executes, with the bits of the same programs in Python."""

from __future__ import annotations

import subprocess

import pytest
from running import BACKEND, mlp, refusal, run_command, run_program, saved_mlp

import candelabra
import candelabra_runner
from candelabra import nn
from candelabra.export import Dim, export, load, save
from candelabra.nn import functional as F
from candelabra.serialization import save_npy


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.LSTM(8, 16, 2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x, state):
        hidden, (h, c) = self.layers(x, state)
        return {"logits": self.head(hidden), "h": h, "c": c}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    def __init__(self, vocabulary=50, width=32, length=12):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))
        self.last = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(candelabra.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.last(x) @ self.tokens.weight.T


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10), nn.Softmax(1),
    )  # fmt: skip


def test_a_convolutional_net(tmp_path):
    model, x = convolutional().eval(), candelabra.randn(2, 3, 16, 16)
    save(export(model, (candelabra.zeros_like(x),)), tmp_path / "model.cex", runner=True)
    with candelabra.no_grad():
        assert run_program(tmp_path / "model.cex", x)["output"].equal(model(x))


def test_a_transformer(tmp_path):
    model, tokens = Transformer().eval(), candelabra.randint(0, 50, (3, 12))
    save(export(model, (tokens,)), tmp_path / "model.cex", runner=True)
    other = candelabra.randint(0, 50, (3, 12))
    with candelabra.no_grad():
        assert run_program(tmp_path / "model.cex", other)["output"].equal(model(other))
    # Kernels check the values of indices.
    save_npy(tmp_path / "wrong.npy", other + 50)
    assert refusal(tmp_path / "model.cex", tmp_path / "wrong.npy").startswith("embedding(): ")


def test_an_lstm_with_named_results(tmp_path):
    model = Recurrent().eval()
    x, h, c = candelabra.randn(2, 5, 8), candelabra.randn(2, 2, 16), candelabra.randn(2, 2, 16)
    save(export(model, (candelabra.zeros_like(x), (h, c))), tmp_path / "model.cex", runner=True)
    with candelabra.no_grad():
        expected = model(x, (h, c))
    found = run_program(tmp_path / "model.cex", x, h, c)
    assert list(found) == ["logits", "h", "c"]
    assert all(found[name].equal(expected[name]) for name in expected)


def test_several_sizes(tmp_path):
    model, path = mlp(), tmp_path / "model.cex"
    program = export(model, (candelabra.ones(8, 32),), dynamic_shapes=({0: Dim("batch", max=64)},))
    save(program, path, runner=[{"batch": 1}, {"batch": 64}, {}])
    for batch in (1, 8, 64):
        x = candelabra.randn(batch, 32)
        assert run_program(path, x)["output"].equal(model(x))
    assert run_command("--list", path).stdout.splitlines() == [
        f"input float32[{batch}, 32] -> output float32[{batch}, 10]" for batch in (1, 64, 8)
    ]
    save_npy(tmp_path / "x.npy", candelabra.ones(3, 32))
    assert refusal(path, tmp_path / "x.npy") == (
        "no program in the file takes float32[3, 32]; there are programs for\n"
        "  float32[1, 32]\n  float32[64, 32]\n  float32[8, 32]"
    )
    # The weights are stored once.
    weights = sum(value.nbytes for value in model.state_dict().values())
    assert path.stat().st_size < weights + 16 * 1024


def test_a_program_that_was_loaded(tmp_path):
    model = saved_mlp(tmp_path / "first.cex")
    save(load(tmp_path / "first.cex"), tmp_path / "second.cex", runner=True)
    x = candelabra.randn(8, 32)
    assert run_program(tmp_path / "second.cex", x)["output"].equal(model(x))
    assert load(tmp_path / "second.cex").module()(x).equal(model(x))


class Given(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(candelabra.randn(3))
        self.register_buffer("mask", candelabra.tensor([True, False, True]))

    def forward(self, x, flags):
        strided = self.scale.expand(2, 3).t()
        return (
            x,
            self.scale,
            strided,
            x[:0],
            candelabra.where(flags & self.mask, x, float("-inf")),
            x.to(candelabra.float16),
        )


def test_results_that_are_arguments_parameters_views_or_empty(tmp_path):
    model, x, flags = Given().eval(), candelabra.randn(4, 3), candelabra.tensor([True, True, False])
    save(export(model, (x, flags)), tmp_path / "model.cex", runner=True)
    found = run_program(tmp_path / "model.cex", x, flags)
    with candelabra.no_grad():
        expected = model(x, flags)
    assert list(found) == [f"output_{number}" for number in range(6)]
    for one, other in zip(found.values(), expected, strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape and one.equal(other)


def test_arguments_by_name_and_a_file_for_the_result(tmp_path):
    model = Recurrent().eval()
    x, h, c = candelabra.randn(2, 5, 8), candelabra.randn(2, 2, 16), candelabra.randn(2, 2, 16)
    save(export(model, (x, (h, c))), tmp_path / "model.cex", runner=True)
    for name, tensor in (("x", x), ("h", h), ("c", c)):
        save_npy(tmp_path / f"{name}.npy", tensor)
    done = run_command(
        tmp_path / "model.cex", f"state_1={tmp_path}/c.npy", f"state_0={tmp_path}/h.npy", f"x={tmp_path}/x.npy", "--output", tmp_path
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    model = saved_mlp(tmp_path / "mlp.cex")
    save_npy(tmp_path / "ones.npy", candelabra.ones(8, 32))
    done = run_command(tmp_path / "mlp.cex", tmp_path / "ones.npy", "--output", tmp_path / "named.npy")
    assert done.returncode == 0 and (tmp_path / "named.npy").is_file()


def test_the_process_has_no_python(tmp_path):
    for path in (candelabra_runner.executable_path(), candelabra_runner.library_path(), BACKEND):
        libraries = subprocess.run(["ldd", str(path)], capture_output=True, text=True, timeout=60).stdout
        assert "libc.so" in libraries and "python" not in libraries.replace(str(BACKEND.parent), "")


@pytest.mark.parametrize(("words", "message"), [
    ((), "the program's file is missing"),
    (("--thread", "model.cex"), "unknown option --thread"),
    (("model.cex", "--threads", "none"), "--threads needs a positive number, not none"),
    (("model.cex", "--output"), "--output needs a value"),
])  # fmt: skip
def test_wrong_words(words, message):
    done = run_command(*words, backend=None)
    assert done.returncode == 2
    assert done.stderr.startswith(f"candelabra-run: {message}\nusage: candelabra-run")


def test_help():
    done = run_command("--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: candelabra-run")
