"""Where the ICD loader is: on the system, or in the wheel of Intel's runtime for processors."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from candelabra.backends import set_option

#: Where drivers of the system are listed.
VENDORS = Path("/etc/OpenCL/vendors")
#: What the loader in Intel's wheel needs and does not find by itself, in order of dependency.
NEEDS = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so")


def choose_loader() -> None:
    """Use the runtime that ``pip install intel-opencl-rt intel-cmplr-lib-rt`` has put into this
    environment, where the system has no OpenCL driver and the user names no loader.
    """
    named = os.environ.get("CANDELABRA_OPENCL_LIBRARY") or os.environ.get("OCL_ICD_VENDORS")
    if named or any(VENDORS.glob("*.icd")):
        return
    folder = Path(sys.prefix) / "lib"
    loader, driver = folder / "libOpenCL.so.1", folder / "libintelocl.so"
    if not loader.exists() or not driver.exists():
        return
    for name in NEEDS:
        if (folder / name).exists():
            ctypes.CDLL(str(folder / name))
    os.environ.setdefault("OCL_ICD_FILENAMES", str(driver))
    set_option("opencl", "library", str(loader))
