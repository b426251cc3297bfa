"""Models from local folders, as ``torch.hub`` has them: they are candelabra.utils'.

Raises an ImportError that says what to install where that is missing.
"""

# The package before its module, or two threads could each wait for what the other imports.
import candelabra.utils as _utils  # noqa: F401
from candelabra.utils.hub import *  # noqa: F403
from candelabra.utils.hub import __all__  # noqa: F401
