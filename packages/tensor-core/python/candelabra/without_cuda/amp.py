"""Mixed precision under PyTorch's older names."""

# The package before its module, or two threads could each wait for what the other imports.
import candelabra.amp as _amp  # noqa: F401
from candelabra.amp.cuda import *  # noqa: F403
from candelabra.amp.cuda import __all__  # noqa: F401
