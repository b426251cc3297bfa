"""Mixed precision under PyTorch's older names."""

from candelabra.amp.cuda import *  # noqa: F403
from candelabra.amp.cuda import __all__  # noqa: F401
