"""Where the parts of the package lie that other distributions bring: ``candelabra.autograd``,
``candelabra.nn``, …

As ``pkgutil.extend_path`` does for folders; that module alone would make importing the package a
fifth slower.
"""

from __future__ import annotations

import os
import sys


def folders_of(package: str, known: list[str]) -> list[str]:
    """Return the folders in which a package's modules are searched.

    Parameters
    ----------
    package
        Its name: a folder of that name may lie in each folder of ``sys.path``.
    known
        Those that it has already; they stay the first.
    """
    folders = [*known]
    for entry in sys.path:
        folder = os.path.join(entry or os.getcwd(), package)
        if folder not in folders and os.path.isdir(folder):
            folders.append(folder)
    return folders
