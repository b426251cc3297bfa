"""How far training is."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Progress:
    """How far training is."""

    #: Epochs that are complete.
    epoch: int = 0
    #: Steps of the optimizer.
    step: int = 0
    #: Batches that were gone through, those left out for a loss that is not finite among them.
    batches: int = 0
    #: Batches that were left out.
    skipped: int = 0
