"""Compare with JAX's compiled functions where they are the strongest peer: a chain of elementwise
operators, and training steps of MLPs and the GPT.

The models are rewritten as functions of their parameters, with our model's values, so that losses
are comparable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import candelabra

from .inputs import Input, fill, integers, normal
from .measuring import measure
from .table import duration
from .workload import Work, Workload
from .workloads import all_workloads
from .workloads.training import GPT_HEADS, GPT_LAYERS, GPT_VOCABULARY, gpt, large_mlp, small_mlp

Parameters = dict[str, Any]
Forward = Callable[[Parameters, Any], Any]


def parameters_of(build: Callable[[Any], Any]) -> Parameters:
    """Return our model's parameters as JAX arrays."""
    model = fill(candelabra, build(candelabra))
    return {name: jnp.asarray(parameter.detach().numpy()) for name, parameter in model.named_parameters()}


def array(given: Input) -> Any:
    """Return an input as a JAX array. JAX's integers have 32 bits."""
    values = given.make(candelabra).numpy()
    return jnp.asarray(values.astype(np.int32) if values.dtype == np.int64 else values)


def linear(parameters: Parameters, name: str, x: Any) -> Any:
    """Apply a linear layer."""
    y = x @ parameters[f"{name}.weight"].T
    return y + parameters[f"{name}.bias"] if f"{name}.bias" in parameters else y


def mlp(parameters: Parameters, x: Any) -> Any:
    """Apply three linear layers with ReLU."""
    return linear(parameters, "4", jax.nn.relu(linear(parameters, "2", jax.nn.relu(linear(parameters, "0", x)))))


def layer_norm(parameters: Parameters, name: str, x: Any) -> Any:
    """Apply layer normalization."""
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * parameters[f"{name}.weight"] + parameters[f"{name}.bias"]


def decoder(parameters: Parameters, tokens: Any) -> Any:
    """Apply the GPT of `workloads/training.py`."""
    batch, length = tokens.shape
    x = parameters["tokens.weight"][tokens] + parameters["positions.weight"][:length]
    width = x.shape[-1]
    mask = jnp.tril(jnp.ones((length, length), bool))
    for number in range(GPT_LAYERS):
        at = f"layers.{number}"
        parts = jnp.split(linear(parameters, f"{at}.qkv", layer_norm(parameters, f"{at}.norm1", x)), 3, axis=2)
        q, k, v = (part.reshape(batch, length, GPT_HEADS, width // GPT_HEADS).transpose(0, 2, 1, 3) for part in parts)
        scores = jnp.where(mask, q @ k.transpose(0, 1, 3, 2) * (width // GPT_HEADS) ** -0.5, -jnp.inf)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        x = x + linear(parameters, f"{at}.projection", y)
        up = linear(parameters, f"{at}.up", layer_norm(parameters, f"{at}.norm2", x))
        x = x + linear(parameters, f"{at}.down", jax.nn.gelu(up, approximate=False))
    return linear(parameters, "head", layer_norm(parameters, "norm", x))


def cross_entropy(scores: Any, classes: Any) -> Any:
    """Return the mean cross-entropy over all but the last dimension."""
    logs = jax.nn.log_softmax(scores.reshape(-1, scores.shape[-1]))
    return -jnp.take_along_axis(logs, classes.reshape(-1, 1), 1).mean()


def sgd(lr: float) -> tuple[Any, Any]:
    """Return the functions that initialize the state and make a step of SGD."""

    def update(parameters: Parameters, gradients: Parameters, state: Any) -> tuple[Parameters, Any]:
        return jax.tree.map(lambda p, g: p - lr * g, parameters, gradients), state

    return lambda parameters: (), update


def adam(lr: float, decay: float = 0.0) -> tuple[Any, Any]:
    """Return the same functions of Adam, or of AdamW if `decay` is not zero."""

    def begin(parameters: Parameters) -> Any:
        return jnp.zeros(()), jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters)

    def update(parameters: Parameters, gradients: Parameters, state: Any) -> tuple[Parameters, Any]:
        count, first, second = state
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        size, root = lr / (1 - 0.9**count), jnp.sqrt(1 - 0.999**count)
        changed = jax.tree.map(
            lambda p, m, v: p * (1 - lr * decay) - size * m / (jnp.sqrt(v) / root + 1e-8), parameters, first, second
        )
        return changed, (count, first, second)

    return begin, update


def step(
    build: Callable[[Any], Any], function: Forward, inputs: Input, classes: Input, optimizer: tuple[Any, Any]
) -> Callable[[Any], Work]:
    """Return a training step, compiled as one function. The new parameters and state reuse the
    donated memory of the old ones.
    """
    begin, update = optimizer

    def one(parameters: Parameters, state: Any, x: Any, y: Any) -> tuple[Parameters, Any, Any]:
        loss, gradients = jax.value_and_grad(lambda given: cross_entropy(function(given, x), y))(parameters)
        return *update(parameters, gradients, state), loss

    compiled = jax.jit(one, donate_argnums=(0, 1))

    def make(_: Any) -> Work:
        parameters = parameters_of(build)
        state, x, y = begin(parameters), array(inputs), array(classes)

        def run() -> Any:
            nonlocal parameters, state
            parameters, state, loss = compiled(parameters, state, x, y)
            return loss.block_until_ready()

        return run

    return make


def chain(_: Any) -> Work:
    """Return the chain of elementwise operators, which JAX fuses into one loop."""
    compiled = jax.jit(lambda a, b: jnp.abs(jnp.tanh(a * b + 1.0) - b) * 0.5)
    a, b = array(normal(1_000_000)), array(normal(1_000_000, number=1))
    return lambda: compiled(a, b).block_until_ready()


def long_chain(_: Any) -> Work:
    """Return the chain of eight operators of `replayed.py`."""
    compiled = jax.jit(lambda x: jnp.abs(jax.nn.relu((x * 1.01 + 0.5) * x - 0.25) * 0.7 + x))
    x = array(normal(10_000_000))
    return lambda: compiled(x).block_until_ready()


SMALL = normal(32, 64), integers(10, 32)
#: JAX's peers, by the full name of our workload.
PEERS: dict[str, Callable[[Any], Work]] = {
    "elementwise: chain of 6 operators, 1 M": chain,
    "elementwise: chain of 8 operators, 10 M": long_chain,
    "training: MLP 64-128-128-10, batch 32, SGD": step(small_mlp, mlp, *SMALL, sgd(0.01)),
    "training: MLP 64-128-128-10, batch 32, Adam": step(small_mlp, mlp, *SMALL, adam(1e-4)),
    "training: MLP 784-2048-2048-10, batch 256, SGD": step(
        large_mlp, mlp, normal(256, 784), integers(10, 256), sgd(0.01)
    ),
    "training: GPT, 4 layers of 256, 8 x 128 tokens, AdamW": step(
        gpt, decoder, integers(GPT_VOCABULARY, 8, 128), integers(GPT_VOCABULARY, 8, 128, number=1), adam(1e-4, 0.01)
    ),
}


def workloads(pattern: str) -> list[Workload]:
    """Return the matching workloads that have a peer here."""
    return [
        workload
        for workload in all_workloads()
        if workload.full_name in PEERS and re.search(pattern, workload.full_name)
    ]


def check(pattern: str = "") -> list[str]:
    """Check that the second run of each peer matches ours. By then, one step has changed the
    parameters.
    """
    wrong = []
    for workload in workloads(pattern):
        ours, theirs = workload.make(candelabra), PEERS[workload.full_name](jax)
        for _ in range(2):
            mine, other = ours().numpy(), np.asarray(theirs())
        worst = float(np.abs(mine - other).max())
        if not worst <= 1e-3:
            wrong.append(f"{workload.full_name}: JAX's result differs by {worst:.3g}")
            print(wrong[-1], flush=True)
    return wrong


def measure_all(sides: list[Any], rounds: int, seconds: float, pattern: str = "") -> list[dict[str, Any]]:
    """Time each workload on all three sides in turn."""
    found = []
    print(
        f"\nbeside JAX {jax.__version__}, compiled{'':33} {'Candelabra':>11} {'PyTorch':>11} {'JAX':>11} {'to JAX':>6}"
    )
    for workload in workloads(pattern):
        makes = [workload.make, workload.make, PEERS[workload.full_name]]
        ours, theirs, compiled = measure(workload, [*sides, jax], rounds, seconds, makes).medians
        found.append(
            {"name": workload.name, "ours": ours, "theirs": theirs, "jax": compiled, "version": jax.__version__}
        )
        print(
            f"  {workload.name:62} {duration(ours):>11} {duration(theirs):>11} {duration(compiled):>11} {ours / compiled:6.3f}",
            flush=True,
        )
    return found
