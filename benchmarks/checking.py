"""Check that each workload gives the same result on all sides: ``python -m benchmarks --check``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .measuring import recorded
from .workload import Workload, tensors


def values(result: Any) -> list[Any]:
    """Return the results as float64 arrays."""
    found = tensors(result)
    if not found:
        return [np.asarray(result, dtype=np.float64)] if isinstance(result, (int, float)) else []
    arrays = []
    for tensor in found:
        tensor = tensor.detach()
        if tensor.is_complex():
            arrays.append(tensor.resolve_conj().numpy().astype(np.complex128))
        else:
            arrays.append(tensor.double().numpy())
    return arrays


def difference(workload: Workload, libraries: list[Any]) -> str:
    """Return a description of the difference, or ""."""
    results = []
    for xp in libraries:
        work = workload.make(xp)
        with recorded(xp, workload.recording):
            results.append(values(work()))
    ours, theirs = results
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine.shape != other.shape:
            return f"result {number} has shape {mine.shape}, not {other.shape}"
        if not workload.comparable or not mine.size:
            continue
        if np.isnan(mine).any() != np.isnan(other).any():
            return f"result {number} has NaN on one side"
        scale = max(1.0, float(np.nanmax(np.abs(other))))
        worst = float(np.nanmax(np.abs(mine - other)))
        if not worst <= workload.tolerance * scale:
            return f"result {number} differs by {worst:.3g} at values of up to {scale:.3g}"
    return ""


def check(workloads: list[Workload], libraries: list[Any]) -> list[str]:
    """Run each workload once on all sides. Return a line for each that differs."""
    wrong = []
    for workload in workloads:
        found = difference(workload, libraries)
        if found:
            wrong.append(f"{workload.full_name}: {found}")
            print(wrong[-1], flush=True)
    print(f"{len(workloads) - len(wrong)} of {len(workloads)} workloads give the same")
    return wrong
