"""Run a PyTorch program on Candelabra.

Usage: ``python -m candelabra.torch script.py [arguments]``, or ``-m module [arguments]``.
"""

from __future__ import annotations

import inspect
import runpy
import sys
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

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
    if script.suffix == ".pyc" or zipfile.is_zipfile(script):
        runpy.run_path(str(script), run_name="__main__")
    else:
        run_script(arguments[0])
    return 0


def run_script(path: str) -> None:
    """Run a file of source code as the main module.

    It remains the main module, as what runs at exit expects; :func:`runpy.run_path` puts the other
    one back.
    """
    # For a file that is of no module, `inspect.stack` searches all modules, several times.
    inspect.modulesbyfile.setdefault("<frozen runpy>", "runpy")
    sys.modules.setdefault(f"{__package__}.__main__", sys.modules[__name__])
    program = ModuleType("__main__")
    loader = SourceFileLoader("__main__", path)
    program.__dict__.update(__file__=path, __cached__=None, __loader__=loader, __package__=None)
    sys.modules["__main__"] = program
    exec(compile(loader.get_data(path), path, "exec", dont_inherit=True), program.__dict__)


if __name__ == "__main__":
    sys.exit(main())
