"""Ask the ICD loader for its devices: ``python asking.py FOLDER LIBRARY PLATFORM`` prints their
number. FOLDER is that of Intel's runtime, or empty; so are LIBRARY and PLATFORM, if not chosen.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

#: What the loader in Intel's wheel needs and does not find by itself, in order of dependency.
NEEDS = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so")
CL_PLATFORM_NAME, CL_DEVICE_TYPE_ALL = 0x0902, 0xFFFFFFFF


def prepare(folder: Path) -> str:
    """Load what Intel's runtime in this folder needs, and return the path of its ICD loader."""
    for name in NEEDS:
        if (folder / name).exists():
            ctypes.CDLL(str(folder / name))
    os.environ.setdefault("OCL_ICD_FILENAMES", str(folder / "libintelocl.so"))
    return str(folder / "libOpenCL.so.1")


def _count(library: str, wanted: str) -> int:
    """Return the number of devices of the platforms whose name contains a text."""
    try:
        cl = ctypes.CDLL(library or "libOpenCL.so.1")
    except OSError:
        return 0
    count, total = ctypes.c_uint(0), 0
    if cl.clGetPlatformIDs(0, None, ctypes.byref(count)) != 0:
        return 0
    platforms = (ctypes.c_void_p * count.value)()
    cl.clGetPlatformIDs(count, platforms, None)
    for platform in map(ctypes.c_void_p, platforms):
        name = ctypes.create_string_buffer(256)
        cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, ctypes.c_size_t(255), name, None)
        if wanted not in name.value.decode(errors="replace"):
            continue
        found = ctypes.c_uint(0)
        if cl.clGetDeviceIDs(platform, ctypes.c_uint64(CL_DEVICE_TYPE_ALL), 0, None, ctypes.byref(found)) == 0:
            total += found.value
    return total


if __name__ == "__main__":
    folder, library, platform = sys.argv[1:]
    print(_count(prepare(Path(folder)) if folder else library, platform))
