"""Compare every distribution, transform and divergence with PyTorch: ``python
tests/parity_distributions``.

The parameters are the same; what is compared is shapes, supports, moments, densities, distribution
functions, entropies, enumerations, expansions and gradients of densities, at values that PyTorch
drew, and all divergences of pairs. Draws differ by design and are left to the tests of the package.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np
import torch
from cases import DISTRIBUTIONS, TRANSFORMS

import candelabra

TOLERANCE = 1e-7


def translated(library: Any, value: Any) -> Any:
    """Convert parameters given as NumPy arrays to a library's tensors. A pair (name, options) is a
    distribution.
    """
    if isinstance(value, np.ndarray):
        return library.tensor(value.tolist(), dtype=getattr(library, str(value.dtype)))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):
        found = getattr(library.distributions, value[0])
        return found(**{name: translated(library, entry) for name, entry in value[1].items()})
    if isinstance(value, list):
        return [translated(library, entry) for entry in value]
    return value


def array(value: Any) -> np.ndarray:
    return np.array(value.detach().tolist(), dtype=str(value.dtype).rpartition(".")[2]).reshape(tuple(value.shape))


def outcome(act: Any) -> tuple[str, Any]:
    """Return the result of a call: its shape and values, or the type of its error."""
    try:
        return "value", array(act())
    except Exception as problem:
        return "error", type(problem).__name__


def compare(name: str, theirs: Any, ours: Any, tolerance: float = TOLERANCE) -> str | None:
    """Describe the difference between the outcomes of two calls."""
    one, two = outcome(theirs), outcome(ours)
    if one[0] == "error" and one[1] == "NotImplementedError" and two[0] == "value":
        return None  # here there is more
    if one[0] != two[0]:
        return f"{name}: PyTorch {one}, here {two}"
    if one[0] == "error":
        return None if one[1] == two[1] else f"{name}: PyTorch raises {one[1]}, here {two[1]}"
    if one[1].shape != two[1].shape or one[1].dtype != two[1].dtype:
        return f"{name}: {one[1].shape} {one[1].dtype} in PyTorch, {two[1].shape} {two[1].dtype} here"
    if not np.allclose(one[1], two[1], rtol=tolerance, atol=tolerance, equal_nan=True):
        return f"{name}: {one[1].reshape(-1)[:4]} in PyTorch, {two[1].reshape(-1)[:4]} here"
    return None


def compare_distribution(name: str, options: dict[str, Any]) -> list[str]:
    theirs, ours = (translated(library, (name, options)) for library in (torch, candelabra))
    wrong: list[str | None] = []
    for attribute in ("batch_shape", "event_shape"):
        if tuple(getattr(theirs, attribute)) != tuple(getattr(ours, attribute)):
            wrong.append(f"{attribute}: {getattr(theirs, attribute)} in PyTorch, {getattr(ours, attribute)} here")
    for attribute in ("has_rsample", "has_enumerate_support"):
        if bool(getattr(theirs, attribute)) != bool(getattr(ours, attribute)):
            wrong.append(f"{attribute}: {getattr(theirs, attribute)} in PyTorch")
    for attribute in ("mean", "mode", "variance", "stddev"):
        wrong.append(compare(attribute, lambda a=attribute: getattr(theirs, a), lambda a=attribute: getattr(ours, a)))
    for method in ("entropy", "perplexity", "enumerate_support"):
        wrong.append(compare(method, lambda m=method: getattr(theirs, m)(), lambda m=method: getattr(ours, m)()))
    torch.manual_seed(1)
    drawn = theirs.sample((6,))
    values = array(drawn)
    mine = ours.sample((6,))
    if (
        tuple(mine.shape) != tuple(drawn.shape)
        or str(mine.dtype).rpartition(".")[2] != str(drawn.dtype).rpartition(".")[2]
    ):
        wrong.append(f"sample: {tuple(drawn.shape)} {drawn.dtype} in PyTorch, {tuple(mine.shape)} {mine.dtype} here")
    for method in ("log_prob", "cdf"):
        wrong.append(
            compare(
                method,
                lambda m=method: getattr(theirs, m)(drawn),
                lambda m=method: getattr(ours, m)(translated(candelabra, values)),
            )
        )
    shape = tuple(theirs.batch_shape)
    levels = np.random.default_rng(0).uniform(0.05, 0.95, (5, *shape))
    wrong.append(
        compare("icdf", lambda: theirs.icdf(torch.tensor(levels)), lambda: ours.icdf(candelabra.tensor(levels)))
    )
    wide = (3, *shape)
    for method in ("mean", "log_prob", "entropy"):

        def widened(d: Any, library: Any, method: str = method) -> Any:
            d = d.expand(wide)
            found = getattr(d, method)
            return (
                found(translated(library, values[:3]))
                if method == "log_prob"
                else found()
                if method == "entropy"
                else found
            )

        wrong.append(compare(f"expand.{method}", lambda: widened(theirs, torch), lambda: widened(ours, candelabra)))
    wrong.append(compare_gradient(name, options, values))
    for bad in (np.full(values.shape, np.nan), np.full(values.shape[:1], -1e9), np.zeros((*values.shape, 2, 3))):
        wrong.append(
            compare(
                "log_prob of what is outside",
                lambda b=bad: theirs.log_prob(torch.tensor(b)),
                lambda b=bad: ours.log_prob(candelabra.tensor(b)),
            )
        )
    return [one for one in wrong if one]


def compare_gradient(name: str, options: dict[str, Any], values: np.ndarray) -> str | None:
    """Compare the gradients of the log probability with respect to all floating-point
    parameters.
    """

    def gradients(library: Any) -> Any:
        given = {key: translated(library, value) for key, value in options.items()}
        leaves = [
            value for value in given.values() if hasattr(value, "requires_grad") and value.dtype == library.float64
        ]
        for leaf in leaves:
            leaf.requires_grad_()
        if not leaves:
            return library.zeros(1)
        result = getattr(library.distributions, name)(**given, validate_args=False).log_prob(
            translated(library, values)
        )
        result.sum().backward()
        return library.cat(
            [(library.zeros_like(leaf) if leaf.grad is None else leaf.grad).reshape(-1) for leaf in leaves]
        )

    return compare("gradient of log_prob", lambda: gradients(torch), lambda: gradients(candelabra), 1e-6)


def compare_transform(name: str, options: dict[str, Any], values: np.ndarray) -> list[str]:
    theirs, ours = (translated(library, (name, options)) for library in (torch, candelabra))
    x, mine = torch.tensor(values), candelabra.tensor(values)
    wrong = [
        compare("call", lambda: theirs(x), lambda: ours(mine)),
        compare("inverse", lambda: theirs.inv(theirs(x)), lambda: ours.inv(ours(mine))),
        compare(
            "log_abs_det_jacobian",
            lambda: theirs.log_abs_det_jacobian(x, theirs(x)),
            lambda: ours.log_abs_det_jacobian(mine, ours(mine)),
        ),
    ]
    for attribute in ("bijective", "event_dim", "sign"):
        found = [plain(lambda t=t, a=attribute: getattr(t, a)) for t in (theirs, ours)]
        if found[0] != found[1]:
            wrong.append(f"{attribute}: {found}")
    for method in ("forward_shape", "inverse_shape"):
        found = [plain(lambda t=t, m=method: tuple(getattr(t, m)(tuple(values.shape)))) for t in (theirs, ours)]
        if found[0] != found[1]:
            wrong.append(f"{method}: {found}")
    found = [
        plain(lambda t=t: (t.domain.event_dim, t.codomain.event_dim, repr(t.domain), repr(t.codomain)))
        for t in (theirs, ours)
    ]
    if found[0] != found[1]:
        wrong.append(f"domain and codomain: {found}")
    return [one for one in wrong if one]


def plain(act: Any) -> Any:
    try:
        value = act()
        return value.tolist() if hasattr(value, "tolist") else value
    except Exception as problem:
        return type(problem).__name__


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names to run")
    only = parser.parse_args().only.lower()
    warnings.simplefilter("ignore")
    right = total = 0
    for name, options in DISTRIBUTIONS:
        if only not in name.lower():
            continue
        total += 1
        try:
            wrong = compare_distribution(name, options)
        except Exception as problem:
            wrong = [f"{type(problem).__name__}: {problem}"]
        right += not wrong
        for one in wrong:
            print(f"  {name} {sorted(options)}: {one}")
    for name, options, values in TRANSFORMS:
        if only not in name.lower():
            continue
        total += 1
        try:
            wrong = compare_transform(name, options, values)
        except Exception as problem:
            wrong = [f"{type(problem).__name__}: {problem}"]
        right += not wrong
        for one in wrong:
            print(f"  {name} {sorted(options)}: {one}")
    pairs = 0
    if only in "divergences":
        for name_p, options_p in DISTRIBUTIONS:
            for name_q, options_q in DISTRIBUTIONS:
                p, q = (
                    [translated(library, pair) for library in (torch, candelabra)]
                    for pair in ((name_p, options_p), (name_q, options_q))
                )
                wrong_one = compare(
                    f"KL({name_p} {sorted(options_p)} | {name_q} {sorted(options_q)})",
                    lambda p=p, q=q: torch.distributions.kl_divergence(p[0], q[0]),
                    lambda p=p, q=q: candelabra.distributions.kl_divergence(p[1], q[1]),
                )
                pairs += 1
                right += wrong_one is None
                if wrong_one:
                    print("  " + wrong_one)
    print(f"{right} of {total + pairs} right")
    return int(right < 0.97 * (total + pairs))


if __name__ == "__main__":
    sys.exit(main())
