"""Print the sizes of the wheels in ``dist/`` as a table: ``python tools/wheel_sizes.py``, after
``nox -s wheels``.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

DIST = Path(__file__).parent.parent / "dist"


def main() -> None:
    """Print one row for each wheel, in MB as it is downloaded and as it is installed."""
    print("| package | MB | MB installed |\n| -- | --: | --: |")
    for wheel in sorted(DIST.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            installed = sum(item.file_size for item in archive.infolist())
        print(
            f"| `{wheel.name.split('-')[0].replace('_', '-')}` | {wheel.stat().st_size / 1e6:.1f} | {installed / 1e6:.1f} |"
        )


if __name__ == "__main__":
    main()
