"""Random numbers that are the same in every library: of NumPy's generator.

PyTorch and Candelabra have different generators. While a program runs whose numbers are compared,
the functions that draw numbers give NumPy's instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch

Draw = Callable[[Any], Any]


class KnownNumbers:
    """Replacements of the functions that draw, which share one generator."""

    def __init__(self) -> None:
        self.generator = numpy.random.default_rng(0)

    def fill(self, made: Any, draw: Draw) -> Any:
        """Overwrite a tensor with drawn numbers."""
        if made.device.type != "meta":
            plain = made.detach().as_subclass(torch.Tensor)
            numbers = torch.as_tensor(draw(tuple(plain.shape)))
            with torch.no_grad():
                plain.copy_(numbers.to(plain.dtype))
        return made

    def normal(self, shape: Any) -> Any:
        return self.generator.standard_normal(shape)

    def uniform(self, shape: Any) -> Any:
        return self.generator.random(shape)

    def whole(self, low: int, high: int) -> Draw:
        return lambda shape: self.generator.integers(low, high, shape)

    def replaced(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls another one, and overwrites what it has drawn."""

        def randint(low: Any, high: Any = None, *rest: Any, **options: Any) -> Any:
            made = function(low, *(() if high is None else (high,)), *rest, **options)
            first, last = (0, low) if not isinstance(high, int) else (low, high)
            return self.fill(made, self.whole(first, last))

        def randperm(n: int, *rest: Any, **options: Any) -> Any:
            return self.fill(function(n, *rest, **options), lambda shape: self.generator.permutation(n))

        def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, **options: Any) -> Any:
            return self.fill(tensor, lambda shape: self.normal(shape) * std + mean)

        def trunc_normal_(
            tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, **options: Any
        ) -> Any:
            return self.fill(tensor, lambda shape: (self.normal(shape) * std + mean).clip(a, b))

        def normal(mean: Any, std: Any = 1.0, *rest: Any, **options: Any) -> Any:
            made = function(mean, std, *rest, **options)
            self.fill(made, self.normal)
            return made * std + mean

        def uniform_(tensor: Any, *ends: Any, **options: Any) -> Any:
            low = options.get("from", options.get("a", ends[0] if ends else 0.0))
            high = options.get("to", options.get("b", ends[1] if len(ends) > 1 else 1.0))
            return self.fill(tensor, lambda shape: self.uniform(shape) * (high - low) + low)

        def random_(tensor: Any, *ends: Any, **options: Any) -> Any:
            low, high = (0, *ends) if len(ends) == 1 else ends or (0, 1 << 24)
            return self.fill(tensor, self.whole(low, high))

        def bernoulli(input: Any, *rest: Any, **options: Any) -> Any:
            chances = input.detach().double().numpy()
            return self.fill(function(input, *rest, **options), lambda shape: self.uniform(shape) < chances)

        def bernoulli_(tensor: Any, p: Any = 0.5, **options: Any) -> Any:
            chances = p.detach().double().numpy() if isinstance(p, torch.Tensor) else p
            return self.fill(tensor, lambda shape: self.uniform(shape) < chances)

        def exponential_(tensor: Any, lambd: float = 1.0, **options: Any) -> Any:
            return self.fill(tensor, lambda shape: -numpy.log1p(-self.uniform(shape)) / lambd)

        def multinomial(input: Any, num_samples: int, replacement: bool = False, **options: Any) -> Any:
            # The largest of log p plus Gumbel noise is a draw; the largest few are draws without
            # replacement.
            rows = input.detach().double().reshape(-1, input.shape[-1])
            with numpy.errstate(divide="ignore"):
                logs = numpy.log(rows.numpy())
            repeats = num_samples if replacement else 1
            noise = -numpy.log(-numpy.log(self.uniform((repeats, *logs.shape)) + 1e-300))
            order = numpy.argsort(-(logs + noise), axis=-1)
            drawn = order[:, :, 0].T if replacement else order[0, :, :num_samples]
            return torch.from_numpy(numpy.ascontiguousarray(drawn)).reshape(*input.shape[:-1], num_samples)

        def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if not training or p == 0.0:
                return input
            mask = torch.from_numpy(self.uniform(tuple(input.shape)) >= p).to(input.dtype) / (1 - p)
            return input.mul_(mask) if inplace else input * mask

        def plain(*rest: Any, **options: Any) -> Any:
            return self.fill(
                function(*rest, **options), self.uniform if name.startswith("rand_") or name == "rand" else self.normal
            )

        found: Callable[..., Any] = locals().get(name) or plain
        return found


#: By where they are: the functions that are replaced.
_NAMES = {
    "": "rand rand_like randn randn_like randint randperm normal bernoulli multinomial dropout",
    "Tensor": "normal_ uniform_ random_ bernoulli_ exponential_ bernoulli multinomial",
    "nn.functional": "dropout",
    "nn.init": "trunc_normal_",
}


@contextlib.contextmanager
def known_numbers() -> Iterator[None]:
    """Draw the same numbers in every library within the block."""
    known = KnownNumbers()
    before: list[tuple[Any, str, Any]] = []
    for place, names in _NAMES.items():
        owner: Any = torch
        for part in filter(None, place.split(".")):
            owner = getattr(owner, part)
        for name in names.split():
            function = getattr(owner, name)
            before.append((owner, name, function))
            setattr(owner, name, known.replaced(name, function))
    try:
        yield
    finally:
        for owner, name, function in reversed(before):
            setattr(owner, name, function)
