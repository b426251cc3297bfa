"""Counters of training progress."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Progress:
    """Counters of training progress."""

    #: Completed epochs.
    epoch: int = 0
    #: Optimizer steps.
    step: int = 0
    #: Processed batches, including those skipped because of a loss that is not finite.
    batches: int = 0
    #: Skipped batches.
    skipped: int = 0
