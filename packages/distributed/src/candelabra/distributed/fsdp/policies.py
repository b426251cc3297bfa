"""What `fully_shard` computes in, and where it keeps shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a module's computation, apart from that of its sharded parameters.

    Attributes
    ----------
    param_dtype : dtype, optional
        Of the parameters in forward and backward, and of the collective that gathers them.
    reduce_dtype : dtype, optional
        In which gradients are reduced; `param_dtype` by default.
    output_dtype : dtype, optional
        To which floating-point outputs are converted.
    cast_forward_inputs : bool
        Whether floating-point inputs are converted to `param_dtype`.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Shards are kept on the mesh's device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, their gradients and the states of optimizers are kept in host memory.

    Attributes
    ----------
    pin_memory : bool
        Whether the shards are in pinned memory, where there is an accelerator.
    """

    pin_memory: bool = True
