"""Print what the tensor core weighs: lines of its sources, and the megabytes of the wheel that
``nox -s wheels`` has left in ``dist/``.

``python tools/core_size.py [WHEEL]``. The README has these numbers, and a test compares them.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
CORE = ROOT / "packages" / "tensor-core"
PACKAGE = CORE / "python" / "candelabra"


def lines(folder: Path, *suffixes: str) -> int:
    """Return the number of lines of the sources below a folder."""
    sources = (path for path in folder.rglob("*") if path.suffix in suffixes)
    return sum(len(path.read_text().splitlines()) for path in sources)


def source_lines() -> dict[str, int]:
    """Return the lines of each part of the core: of the package without the conformance suite, of
    the conformance suite, of the C and C++ of the core itself and of the headers for backends.
    """
    conformance = lines(PACKAGE / "testing", ".py")
    return {
        "Python": lines(PACKAGE, ".py") - conformance,
        "Python of the conformance suite": conformance,
        "C++": lines(CORE / "src", ".c", ".cpp", ".h", ".hpp"),
        "C and C++ of the headers for backends": lines(CORE / "include", ".h", ".hpp"),
    }


def wheel_sizes(wheel: Path) -> tuple[int, int]:
    """Return the bytes of a wheel and of the files that it installs."""
    with zipfile.ZipFile(wheel) as archive:
        return wheel.stat().st_size, sum(item.file_size for item in archive.infolist())


def main() -> None:
    for part, count in source_lines().items():
        print(f"{count:>7,} lines of {part}")
    wheels = [Path(name) for name in sys.argv[1:]] or sorted(ROOT.glob("dist/candelabra_tensor_core-*.whl"))
    for wheel in wheels:
        packed, installed = wheel_sizes(wheel)
        print(f"{packed / 1e6:>7.1f} MB {wheel.name}, {installed / 1e6:.1f} MB installed")


if __name__ == "__main__":
    main()
