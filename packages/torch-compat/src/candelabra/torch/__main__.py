"""Run a PyTorch program on Candelabra.

Usage: ``python -m candelabra.torch script.py [arguments]``, or ``-m module [arguments]``.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from .finder import install

USAGE = (
    "usage: python -m candelabra.torch script.py [arguments]\n       python -m candelabra.torch -m module [arguments]"
)


def main() -> int:
    """Run the program on the command line, as Python would."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    install()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print(USAGE, file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    script = Path(arguments[0])
    if not script.is_file():
        print(f"python -m candelabra.torch: there is no file {script}", file=sys.stderr)
        return 2
    sys.argv = arguments
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
