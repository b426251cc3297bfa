"""DLPack under PyTorch's names, for sharing memory with other libraries."""

from __future__ import annotations

from enum import IntEnum

from candelabra import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """Device types as numbered in DLPack's ``dlpack.h``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.utils.dlpack import DLDeviceType
    >>> candelabra.ones(1).__dlpack_device__()[0] == DLDeviceType.kDLCPU
    True
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18
