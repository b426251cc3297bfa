"""Compare every learning-rate schedule of both libraries over 40 steps, with a state dict reloaded
halfway.
"""

from __future__ import annotations

import math
from typing import Any

import torch

import candelabra

STEPS = 40

#: Schedules by name, with options.
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.95}),
    ("StepLR", {"step_size": 7, "gamma": 0.3}),
    ("MultiStepLR", {"milestones": [3, 9, 9, 20], "gamma": 0.5}),
    ("ConstantLR", {"factor": 0.2, "total_iters": 6}),
    ("LinearLR", {"start_factor": 0.1, "end_factor": 0.8, "total_iters": 12}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 15, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 9, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2, "eta_min": 0.01}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.5, "step_size_up": 5, "mode": "triangular2", "cycle_momentum": False}),
    (
        "CyclicLR",
        {"base_lr": 0.01, "max_lr": 0.5, "step_size_up": 4, "step_size_down": 6, "mode": "exp_range", "gamma": 0.97},
    ),
    ("OneCycleLR", {"max_lr": 0.7, "total_steps": STEPS + 2}),
    (
        "OneCycleLR",
        {"max_lr": 0.7, "epochs": 7, "steps_per_epoch": 6, "anneal_strategy": "linear", "three_phase": True},
    ),
    ("ReduceLROnPlateau", {"factor": 0.5, "patience": 2, "cooldown": 1, "min_lr": 0.01}),
    ("ReduceLROnPlateau", {"mode": "max", "threshold_mode": "abs", "patience": 0}),
    ("SWALR", {"swa_lr": 0.05, "anneal_epochs": 8}),
    ("SWALR", {"swa_lr": [0.05, 0.2], "anneal_epochs": 5, "anneal_strategy": "linear"}),
    ("SequentialLR", {}),
    ("ChainedScheduler", {}),
]


def made(library: Any, name: str, options: dict[str, Any]) -> tuple[Any, Any]:
    groups = [{"params": [library.zeros(1)], "lr": 0.3}, {"params": [library.zeros(1)], "lr": 0.1}]
    optimizer = library.optim.SGD(groups, momentum=0.9)
    schedules = library.optim.lr_scheduler
    if name == "SWALR":
        return optimizer, library.optim.swa_utils.SWALR(optimizer, **options)
    if name == "SequentialLR":
        parts = [
            schedules.LinearLR(optimizer, total_iters=5),
            schedules.CosineAnnealingLR(optimizer, T_max=10),
            schedules.ExponentialLR(optimizer, 0.9),
        ]
        return optimizer, schedules.SequentialLR(optimizer, parts, milestones=[5, 16])
    if name == "ChainedScheduler":
        return optimizer, schedules.ChainedScheduler(
            [
                schedules.ConstantLR(optimizer, 0.5, 4),
                schedules.StepLR(optimizer, 6),
                schedules.ExponentialLR(optimizer, 0.97),
            ]
        )
    return optimizer, getattr(schedules, name)(optimizer, **options)


def rates(library: Any, name: str, options: dict[str, Any]) -> list[float]:
    """Return the rates and momenta of all groups in all steps. Halfway, the schedule is recreated
    and its state loaded.
    """
    optimizer, schedule = made(library, name, options)
    found = []
    for step in range(STEPS):
        if step == STEPS // 2:
            saved, groups = schedule.state_dict(), optimizer.state_dict()
            optimizer, schedule = made(library, name, options)
            optimizer.load_state_dict(groups)
            schedule.load_state_dict(saved)
        optimizer.step()
        if name == "ReduceLROnPlateau":
            schedule.step(math.cos(step / 6) + 1 / (step + 1))
        else:
            schedule.step()
        found += [float(group[key]) for group in optimizer.param_groups for key in ("lr", "momentum")]
        found += [float(rate) for rate in schedule.get_last_lr()]
    return found


def check_schedules() -> list[tuple[str, str | None]]:
    """Compare all schedules; return the differences of each."""
    results: list[tuple[str, str | None]] = []
    for name, options in SCHEDULES:
        case = f"{name} { {key: value for key, value in options.items() if key != 'lr_lambda'} }"
        try:
            theirs, ours = rates(torch, name, options), rates(candelabra, name, options)
            worst = max(abs(a - b) for a, b in zip(theirs, ours, strict=True))
            results.append((case, None if worst < 1e-12 else f"differs by {worst:.2g}"))
        except Exception as problem:
            results.append((case, f"{type(problem).__name__}: {problem}"))
    return results
