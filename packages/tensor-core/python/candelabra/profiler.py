"""Profiles of programs, as ``torch.profiler`` has them: they are candelabra.autograd's.

Raises an ImportError that says what to install where that is missing.
"""

# Imports the package before its module, so that two threads cannot wait for each other's imports.
import candelabra.autograd as _autograd  # noqa: F401
from candelabra.autograd.profiling import *  # noqa: F403
from candelabra.autograd.profiling import __all__  # noqa: F401
