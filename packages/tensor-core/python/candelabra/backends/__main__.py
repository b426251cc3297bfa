"""``python -m candelabra.backends``: lists the installed backends, and runs the conformance suite
on one device.
"""

from __future__ import annotations

import argparse
import sys

import candelabra
from candelabra import _C
from candelabra.backends import distribution_text, installed, load
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import COMPOSITE, CORE, VIEW

CAPABILITIES = (
    "host memory",
    "streams",
    "events",
    "asynchronous",
    "pinned memory",
    "peer access",
    "IPC",
    "graphs",
    "collectives",
)


def needs_kernel(name: str) -> bool:
    """Return whether an operator needs a kernel: it is not a core operator and does not only change
    metadata.
    """
    return not OPERATORS[name].tags & (VIEW | CORE)


def describe(device_type: str, verbose: bool) -> list[str]:
    """Return the lines about the backends that claim a device type."""
    entries = installed()[device_type]
    lines = [f"{device_type}: {', '.join(map(distribution_text, entries))}"]
    try:
        load(device_type)
    except _C.BackendError as error:
        return [*lines, f"  not usable: {error}"]
    info = _C.backend_info(device_type)
    with_kernel = set(info["kernels"])
    kernels = [name for name in OPERATORS if needs_kernel(name)]
    registered = [name for name in kernels if name in with_kernel]
    composites = [name for name in kernels if name not in with_kernel and OPERATORS[name].tags & COMPOSITE]
    missing = [name for name in kernels if name not in with_kernel and not OPERATORS[name].tags & COMPOSITE]
    capabilities = [text for bit, text in enumerate(CAPABILITIES) if info["capabilities"] >> bit & 1]
    kind = "compiled" if info["compiled"] else "Python"
    lines += [
        f"  version      {info['version'] or '-'}",
        f"  ABI          {info['abi_major']}.{info['abi_minor']} ({kind} kernels)",
        f"  devices      {info['device_count']}",
        f"  capabilities {', '.join(capabilities) or 'none'}",
        f"  kernels      {len(registered)} of {len(kernels)}; {len(composites)} fall back to a composite, {len(missing)} are missing",
    ]
    if composites:
        lines.append(f"  composite    {wrapped(composites)}")
    if missing:
        lines.append(f"  missing      {wrapped(missing)}")
    if verbose and registered:
        lines.append(f"  registered   {wrapped(registered)}")
    if info["description"]:
        lines += [f"  {line}" for line in info["description"].splitlines()]
    return lines


def wrapped(names: list[str], width: int = 100) -> str:
    """Return the names wrapped into lines of the table's second column."""
    lines, line = [], ""
    for name in names:
        if line and len(line) + len(name) + 1 > width:
            lines.append(line)
            line = ""
        line = f"{line} {name}" if line else name
    return ("\n" + " " * 15).join([*lines, line])


def main(arguments: list[str] | None = None) -> int:
    """Print the table or run the conformance suite, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m candelabra.backends", description="List the installed backends, or verify one."
    )
    parser.add_argument("--verify", metavar="DEVICE", help="run the conformance suite on this device")
    parser.add_argument(
        "--part", metavar="K/N", help="of the conformance suite only every N-th operator, from the K-th on"
    )
    parser.add_argument("--verbose", action="store_true", help="list the registered kernels too")
    given, rest = parser.parse_known_args(arguments)
    if given.verify is not None:
        try:
            from candelabra.testing import conformance
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("numpy", "scipy"):
                raise
            print("what kernels are compared with is NumPy and SciPy: pip install numpy scipy", file=sys.stderr)
            return 1

        names = rest or conformance.applicable()
        if given.part:
            part, parts = map(int, given.part.split("/"))
            names = names[part - 1 :: parts]
        return conformance.main(given.verify, names)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    print(f"candelabra-tensor-core {candelabra.__version__}, {len(OPERATORS)} operators")
    found = sorted(installed())
    if not found:
        print("no backend is installed: pip install candelabra-backend-cpu")
        return 1
    for device_type in found:
        print("\n".join(describe(device_type, given.verbose)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
