"""Training of one module by several processes: `DistributedDataParallel`."""

from .distributed_data_parallel import DistributedDataParallel
from .grad_bucket import GradBucket
from .mixed_precision import _MixedPrecision

__all__ = ["DistributedDataParallel", "GradBucket", "_MixedPrecision"]
