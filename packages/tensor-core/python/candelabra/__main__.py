"""``python -m candelabra``: versions, devices, and a check of a few seconds with figures."""

from __future__ import annotations

import argparse
import os
import platform
import sys

from candelabra import __version__, get_num_threads, version
from candelabra.backends import __main__ as backends
from candelabra.backends import installed
from candelabra.testing import self_check


def distributions() -> dict[str, tuple[str, list[str]]]:
    """Return the version and the requirements of each installed distribution of Candelabra."""
    from importlib import metadata

    found: dict[str, tuple[str, list[str]]] = {}
    for distribution in metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower()
        if name == "candelabra" or name.startswith("candelabra-"):
            found.setdefault(name, (distribution.version, distribution.requires or []))
    return dict(sorted(found.items()))


def misfits(found: dict[str, tuple[str, list[str]]]) -> list[str]:
    """Return a sentence for each requirement between the distributions that does not hold."""
    faults = []
    for name, (own, requirements) in found.items():
        for requirement in requirements:
            need, _, marker = requirement.partition(";")
            if "extra" in marker:
                continue
            other, least, below = version.parts(need.replace(" ", ""))
            if not other.startswith("candelabra-"):
                continue
            if other not in found:
                faults.append(f"{name} {own} needs {need.strip()}, which is not installed: pip install {other}")
            elif not version.fits(found[other][0], least, below):
                faults.append(f"{name} {own} needs {need.strip()}, but {other} {found[other][0]} is installed")
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Print what is installed and whether it works; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m candelabra",
        description="Print versions and devices, and check within 20 seconds that they work.",
    )
    parser.add_argument("--no-check", action="store_true", help="print only what is installed")
    parser.add_argument("--device", default=None, help="check only this device")
    given = parser.parse_args(arguments)
    print(f"candelabra {__version__}, Python {platform.python_version()}, {platform.platform()}")
    print(f"{len(os.sched_getaffinity(0))} cores, {get_num_threads()} threads, {sys.executable}")
    found = distributions()
    for name, (own, _) in found.items():
        print(f"  {name:<28} {own}")
    faults = misfits(found)
    device_types = sorted(installed())
    if not device_types:
        faults.append("no backend is installed: pip install candelabra-backend-cpu")
    usable = []
    for device_type in device_types:
        lines = backends.probe(device_type, verbose=False)
        print("\n".join(line for line in lines if not line.startswith(("  decomposed", "  missing", " " * 15))))
        if not any(line.startswith("  not usable") for line in lines):
            usable.append(device_type)
        elif device_type == "cpu":
            faults.append("the backend of the CPU is not usable")
    if not given.no_check:
        for device in [given.device] if given.device is not None else usable:
            faults += self_check.run(device)
    for fault in faults:
        print(f"fault: {fault}")
    print("all is well" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
