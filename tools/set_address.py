"""Set the project's address, from which the metadata of all packages is: ``python
tools/set_address.py https://example.org/project https://github.com/somebody/candelabra``.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def replaced(text: str, home: str, source: str) -> str:
    """Return the text of a pyproject.toml with other addresses."""
    urls = tomllib.loads(text)["project"]["urls"]
    old_source = urls["Issues"].removesuffix("/issues")
    # The old address of the source may begin with that of the project.
    text = text.replace(f'"{urls["Issues"]}"', f'"{source}/issues"')
    text = re.sub(rf"{re.escape(old_source)}(?=/(?:tree|blob)/)", source, text)
    return text.replace(f'"{urls["Homepage"]}"', f'"{home}"').replace(f'"{urls["Documentation"]}"', f'"{home}/docs"')


def main() -> None:
    """Set the addresses in all packages."""
    home, source = (address.rstrip("/") for address in sys.argv[1:3])
    for path in sorted(ROOT.glob("packages/*/pyproject.toml")):
        path.write_text(replaced(path.read_text(), home, source))


if __name__ == "__main__":
    main()
