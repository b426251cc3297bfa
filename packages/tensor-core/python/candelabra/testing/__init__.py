"""Testing: comparison of tensors, random tensors, and the conformance suite of backends
(`candelabra.testing.conformance`).
"""

from .comparison import assert_close
from .random_tensors import make_tensor

__all__ = ["assert_close", "make_tensor"]
