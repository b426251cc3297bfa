"""The probe of the entry-point group ``candelabra.accelerators``: whether there is an OpenCL
device.

It does not import the plugin. A process of its own asks the ICD loader, because drivers start
threads, which a fork of the program would lose, and because some drivers crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: Where drivers of the system are listed.
VENDORS = Path("/etc/OpenCL/vendors")


def intel_runtime() -> Path | None:
    """Return the folder of the runtime that ``pip install intel-opencl-rt intel-cmplr-lib-rt`` has
    put into this environment, where the system has no OpenCL driver and the user names no loader.
    """
    named = os.environ.get("CANDELABRA_OPENCL_LIBRARY") or os.environ.get("OCL_ICD_VENDORS")
    if named or any(VENDORS.glob("*.icd")):
        return None
    folder = Path(sys.prefix) / "lib"
    needed = (folder / "libOpenCL.so.1", folder / "libintelocl.so")
    return folder if all(file.exists() for file in needed) else None


def device_count() -> int:
    """Return the number of OpenCL devices; 0 without a loader or a driver.

    The environment variables that choose a loader and a platform count as for the backend.

    Examples
    --------
    >>> from candelabra_opencl_probe import device_count
    >>> device_count() >= 0
    True
    """
    folder = intel_runtime()
    library = os.environ.get("CANDELABRA_OPENCL_LIBRARY", "")
    platform = os.environ.get("CANDELABRA_OPENCL_PLATFORM", "")
    asking = Path(__file__).with_name("asking.py")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(asking), str(folder or ""), library, platform],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the OpenCL loader or a driver failed ({done.returncode}): {done.stderr.strip()}")
    return int(done.stdout.split()[-1])  # some drivers print
