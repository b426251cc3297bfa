"""Run PyTorch's optimizer database and all learning-rate schedules through both libraries: ``python
tests/parity_optim``.

For each optimizer, each of its inputs in PyTorch's database, each implementation (plain, foreach,
fused, differentiable) and each of float64, float32 and complex128: the same start and the same
gradients for 100 steps, the parameters compared; then the state dict of each library loaded by the
other, and 20 steps more. For each of its error inputs: the type of the error and its words. With
``--device few`` Candelabra computes on that device; PyTorch stays on the CPU.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from schedules import check_schedules
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import candelabra

STEPS, AFTER = 100, 20
#: Allowed relative differences: rounding differs in float32, and in Muon, which computes in
#: bfloat16.
TOLERANCES = {"float64": 1e-6, "float32": 2e-4, "complex128": 1e-6}
MUON_TOLERANCE = 2e-2
#: Entries of states that may be numbers or tensors of another dtype.
NUMBERS = ("t", "al", "H_diag", "mu_product", "eta", "mu")


def plain(value: Any) -> Any:
    """Return a state dict with all tensors as NumPy arrays."""
    if isinstance(value, torch.Tensor | candelabra.Tensor):
        return np.array(value.detach().tolist(), dtype=str(value.dtype).rpartition(".")[2])
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def revived(library: Any, value: Any) -> Any:
    """Return a state dict with all arrays as tensors of a library."""
    if isinstance(value, np.ndarray):
        return library.tensor(value.tolist(), dtype=getattr(library, str(value.dtype)))
    if isinstance(value, dict):
        return {key: revived(library, entry) for key, entry in value.items()}
    return type(value)(revived(library, entry) for entry in value) if isinstance(value, list | tuple) else value


class Run:
    """An optimizer of one library with its parameters."""

    def __init__(self, library: Any, name: str, options: dict[str, Any], starts: list[np.ndarray]) -> None:
        self.library = library
        self.name = name
        dtype = getattr(library, str(starts[0].dtype))
        self.params = [library.tensor(start.tolist(), dtype=dtype) for start in starts]
        options = {
            key: library.tensor(value.item()) if isinstance(value, torch.Tensor) else value
            for key, value in options.items()
        }
        self.optimizer = getattr(library.optim, name)(self.params, **options)
        self.targets: list[Any] = []

    def give(self, grads: list[np.ndarray]) -> None:
        for parameter, grad in zip(self.params, grads, strict=True):
            parameter.grad = self.library.tensor(grad.tolist(), dtype=parameter.dtype)

    def step(self, grads: list[np.ndarray]) -> None:
        if self.name != "LBFGS":
            self.give(grads)
            self.optimizer.step()
            return

        def closure() -> float:
            # A quadratic bowl whose minimum is at this step's numbers, flat in one direction and
            # steep in another.
            loss = 0.0
            for parameter, goal in zip(self.params, grads, strict=True):
                values = np.array(parameter.detach().tolist(), dtype=goal.dtype).reshape(goal.shape)
                difference = values - goal
                weight = np.arange(1, goal.size + 1).reshape(goal.shape)
                loss += float((weight * np.abs(difference) ** 2).sum() + (np.abs(difference) ** 4).sum())
                grad = 2 * weight * difference + 4 * np.abs(difference) ** 2 * difference
                parameter.grad = self.library.tensor(grad.tolist(), dtype=parameter.dtype)
            return loss

        self.optimizer.step(closure)

    def values(self) -> list[np.ndarray]:
        return [np.array(parameter.detach().tolist()) for parameter in self.params]


def shapes_of(name: str) -> list[tuple[int, ...]]:
    return [(3, 4), (4, 2)] if name == "Muon" else [(3, 4), (5,), (2, 2, 2)]


def difference(one: list[np.ndarray], two: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max() / (np.abs(b).max() + 1e-12)) for a, b in zip(one, two, strict=True))


def compare_run(name: str, options: dict[str, Any], dtype: str) -> str | None:
    """Compare trajectories and state dicts; return the differences."""
    for library in (torch, candelabra):  # PyTorch's counts and products have the default dtype
        library.set_default_dtype(library.float32 if dtype == "float32" else library.float64)
    rng = np.random.default_rng(7)

    def draw() -> list[np.ndarray]:
        made = [rng.standard_normal(shape) for shape in shapes_of(name)]
        if dtype.startswith("complex"):
            made = [one + 1j * rng.standard_normal(one.shape) for one in made]
        return [one.astype(dtype) for one in made]

    starts = draw()
    gradients = [draw() for _ in range(STEPS + AFTER)]
    if name == "LBFGS":
        gradients = gradients[:1] * 3 + gradients[:1] * AFTER
    steps = len(gradients) - AFTER
    runs = [Run(library, name, options, starts) for library in (torch, candelabra)]
    tolerance = MUON_TOLERANCE if name == "Muon" else TOLERANCES[dtype]
    for grads in gradients[:steps]:
        for run in runs:
            run.step(grads)
    wrong = difference(runs[1].values(), runs[0].values())
    if not wrong <= tolerance:
        return f"parameters differ by {wrong:.2g} after {steps} steps"
    theirs, ours = (plain(run.optimizer.state_dict()) for run in runs)
    if keys(theirs) != keys(ours):
        return f"state dicts differ: {keys(theirs)} and {keys(ours)}"
    crossed = [
        Run(run.library, name, options, values)
        for run, values in zip(runs, (runs[0].values(), runs[1].values()), strict=True)
    ]
    for run, saved, values in zip(crossed, (ours, theirs), (runs[1].values(), runs[0].values()), strict=True):
        for parameter, value in zip(run.params, values, strict=True):
            parameter.copy_(run.library.tensor(value.tolist(), dtype=parameter.dtype))
        run.optimizer.load_state_dict(revived(run.library, saved))
    for grads in gradients[steps:]:
        for run in (*runs, *crossed):
            run.step(grads)
    wrong = max(difference(run.values(), runs[0].values()) for run in (runs[1], *crossed))
    return None if wrong <= tolerance else f"after loading the other's state dict parameters differ by {wrong:.2g}"


def keys(state: dict[str, Any]) -> Any:
    """Return the keys of a state dict: those of groups, and of states with their dtypes."""
    groups = [sorted(group) for group in state["param_groups"]]
    states = {
        number: sorted(
            (key, str(value.dtype) if isinstance(value, np.ndarray) and key not in NUMBERS else "")
            for key, value in entry.items()
        )
        for number, entry in state["state"].items()
    }
    return groups, states


def translated(library: Any, value: Any) -> Any:
    """Convert parameters and options of PyTorch's database to a library's."""
    if isinstance(value, torch.Tensor):
        made = library.tensor(value.detach().tolist(), dtype=getattr(library, str(value.dtype).rpartition(".")[2]))
        if value.grad is not None:
            made.grad = translated(library, value.grad)
        return made
    if isinstance(value, dict):
        return {key: translated(library, entry) for key, entry in value.items()}
    return type(value)(translated(library, entry) for entry in value) if isinstance(value, list | tuple) else value


def shared(library: Any, value: Any, seen: dict[int, Any]) -> Any:
    """As `translated`, but a tensor that occurs twice stays one tensor."""
    if isinstance(value, torch.Tensor):
        return seen.setdefault(id(value), translated(library, value))
    if isinstance(value, dict):
        return {key: shared(library, entry, seen) for key, entry in value.items()}
    return type(value)(shared(library, entry, seen) for entry in value) if isinstance(value, list | tuple) else value


def compare_error(info: Any, error: Any) -> str | None:
    """Check that an error input raises (or warns) as the database says; return the difference."""
    given = error.optimizer_error_input
    if any(p.is_sparse for p in flat(given.params)):
        return None  # sparse tensors are not supported
    seen: dict[int, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer = getattr(candelabra.optim, info.optim_cls.__name__)(
                shared(candelabra, given.params, seen), **shared(candelabra, given.kwargs, seen)
            )
            if error.error_on == OptimizerErrorEnum.STEP_ERROR:
                optimizer.step(lambda: 1.0) if info.step_requires_closure else optimizer.step()
    except Exception as problem:
        if not isinstance(problem, error.error_type):
            return f"{type(problem).__name__} ({problem}) instead of {error.error_type.__name__}"
        return None if re.search(error.error_regex, str(problem)) else f"words differ: {problem}"
    return f"no {error.error_type.__name__}: {error.error_regex}"


def flat(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for entry in value.values() for leaf in flat(entry)]
    return [leaf for entry in value for leaf in flat(entry)] if isinstance(value, list | tuple) else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names to run")
    parser.add_argument(
        "--device", default=os.environ.get("CANDELABRA_TEST_DEVICE", "cpu"), help="where Candelabra computes (cpu)"
    )
    parser.add_argument("--write", type=Path, help="write the table to this file, as Markdown")
    parser.add_argument("--require", type=float, default=97, help="fail unless this percentage is right")
    given_options = parser.parse_args()
    only = given_options.only.lower()
    if given_options.device != "cpu":
        candelabra.set_default_device(given_options.device)
    warnings.simplefilter("ignore")
    failures, count = [], 0
    rows = []
    print(f"{'optimizer':14}{'runs':>6}{'right':>7}")
    for info in optim_db:
        name = info.optim_cls.__name__
        if only not in name.lower():
            continue
        results = []
        for given in info.optim_inputs_func(device="cpu"):
            for choice in ("", *info.supported_impls):
                for dtype in ("float64", "float32", *(("complex128",) if info.supports_complex else ())):
                    if info.only_supports_sparse_grads or (choice == "fused" and dtype == "complex128"):
                        continue
                    options = {**given.kwargs, **({choice: True} if choice else {})}
                    if choice == "foreach" and isinstance(options.get("lr"), torch.Tensor):
                        continue
                    try:
                        wrong = compare_run(name, options, dtype)
                    except Exception as problem:
                        wrong = f"{type(problem).__name__}: {problem}"
                    results.append((f"{name} {options} {dtype}", wrong))
        for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float64):
            results.append((f"{name} error {error.error_regex}", compare_error(info, error)))
        right = sum(wrong is None for _, wrong in results)
        count += len(results)
        failures += [(case, wrong) for case, wrong in results if wrong]
        rows.append((name, len(results), right))
        print(f"{name:14}{len(results):6}{right:7}", flush=True)
    if not only or only in "schedules":
        results = check_schedules()
        count += len(results)
        failures += [(case, wrong) for case, wrong in results if wrong]
        rows.append(("schedules", len(results), sum(wrong is None for _, wrong in results)))
        print(f"{'schedules':14}{len(results):6}{rows[-1][2]:7}")
    for case, wrong in failures:
        print(f"  {case}: {wrong}")
    print(f"{count - len(failures)} of {count} right")
    if given_options.write:
        write(given_options.write, rows, failures, given_options.device)
    return int(100 * (count - len(failures)) < given_options.require * count)


def write(path: Path, rows: list[tuple[str, int, int]], failures: list[tuple[str, str]], device: str) -> None:
    """Write the table as Markdown."""
    runs, right = sum(row[1] for row in rows), sum(row[2] for row in rows)
    lines = [
        "# Parity of optimizers with PyTorch",
        "",
        "Each optimizer of PyTorch 2.13's optimizer database (`torch.testing._internal.common_optimizers.optim_db`) with each of its",
        "inputs, plain, `foreach`, `fused` and `differentiable`, in float64, float32 and complex128: the same start and gradients for",
        f"{STEPS} steps give the same parameters (to 1e-6 relative in float64), the state dicts have the same entries, and each library",
        f"goes on for {AFTER} steps from the other's. Error inputs raise the same exceptions with the same words. Schedules: rates and",
        "momenta of 40 steps, with a state dict loaded on the way. Written by `nox -s parity`.",
        "",
        *([] if device == "cpu" else [f"Candelabra computed on `{device}`, PyTorch on the CPU.", ""]),
        f"**{right} of {runs} runs right ({100 * right / runs:.1f} %).**",
        "",
        "| optimizer | runs | right |",
        "| --- | ---: | ---: |",
        *(f"| `{name}` | {count} | {good} |" for name, count, good in rows),
    ]
    if failures:
        lines += ["", "Not right:", "", *(f"- `{case}`: {wrong}" for case, wrong in failures)]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
