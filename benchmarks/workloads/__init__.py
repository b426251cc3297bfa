"""All workloads, with a file for each family, in the order of the table."""

from __future__ import annotations

import dataclasses
import importlib

from ..workload import Workload

#: Files of this folder. All but the first and the last two are named after families of operators.
FAMILIES = [
    "calls", "elementwise", "special", "reduction", "scan", "sorting", "indexing", "joining", "copying", "views", "creation", "random",
    "linalg", "solving", "fft", "softmax", "loss", "normalization", "convolution", "pooling", "resampling", "attention", "recurrent",
    "optimizer", "training",
]  # fmt: skip


def all_workloads() -> list[Workload]:
    """Return every workload, with its family."""
    found = []
    for family in FAMILIES:
        module = importlib.import_module(f"{__name__}.{family}")
        found += [dataclasses.replace(workload, family=family) for workload in module.WORKLOADS]
    names = [workload.full_name for workload in found]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"workloads of the same name: {sorted(repeated)}")
    return found


def training_steps() -> dict[str, Workload]:
    """Return the training steps by name. Their peak memory is measured, too."""
    return {workload.name: workload for workload in all_workloads() if workload.group == "training"}
