"""The probe of the entry-point group ``candelabra.accelerators``: whether there is a GPU, asked of
the driver alone. The backend is not loaded.
"""

from __future__ import annotations

import ctypes


def device_count() -> int:
    """Return the number of GPUs that the driver shows to this process; 0 without a driver.

    Examples
    --------
    >>> from candelabra.cuda.presence import device_count
    >>> device_count() >= 0
    True
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value
