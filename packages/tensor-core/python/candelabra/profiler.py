"""Profiles of programs, as ``torch.profiler`` has them: they are candelabra.autograd's.

Raises an ImportError that says what to install where that is missing.
"""

# The package before its module, or two threads could each wait for what the other imports.
import candelabra.autograd as _autograd  # noqa: F401
from candelabra.autograd.profiling import *  # noqa: F403
from candelabra.autograd.profiling import __all__  # noqa: F401
