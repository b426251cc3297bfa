"""What ``importlib.metadata`` says about the distribution ``torch``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any

from .stand_ins.version import __version__

_FILES = {
    "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {__version__}\nSummary: Candelabra under the name of PyTorch\n",
    "top_level.txt": "torch\n",
}


class TorchDistribution(Distribution):
    """The distribution of the modules under ``torch``; it has no files of its own."""

    def read_text(self, filename: str) -> str | None:
        """Return the text of a metadata file, or None."""
        return _FILES.get(filename)

    def locate_file(self, path: Any) -> Path:
        """Return where a file of the distribution would be."""
        return Path(__file__).parent / os.fspath(path)


def find(context: DistributionFinder.Context) -> Iterator[Distribution]:
    """Find the distribution, if it or all distributions are asked for."""
    if context.name is None or context.name.lower() == "torch":
        yield TorchDistribution()
