"""``torch.backends.cpu``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Return the name of the vector instruction set of this processor."""
    info = Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
