"""``python -m candelabra.backends``: lists the installed backends, verifies one, and writes the
distribution of a new one.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

import candelabra
from candelabra import _C
from candelabra.backends import distribution_text, installed, load
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import CORE, VIEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra.backends.tiers import Tiers

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


#: How long a plugin may take to load for the listing, in seconds.
PATIENCE = 120


def probe(device_type: str, verbose: bool) -> list[str]:
    """Return the lines about a device type from a process of its own, which a broken plugin may
    crash, block or exit.
    """
    title = f"{device_type}: {', '.join(map(distribution_text, installed()[device_type]))}"
    command = [sys.executable, "-m", "candelabra.backends", "--describe", device_type]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    try:
        done = subprocess.run(
            [*command, *["--verbose"] * verbose],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return [title, f"  not usable: the plugin did not load within {PATIENCE} seconds"]
    if done.returncode == 0:
        return done.stdout.splitlines()
    if done.returncode < 0:
        end = f"the process ended by {signal.Signals(-done.returncode).name}"
    else:
        end = f"the process ended with status {done.returncode}"
    said = done.stderr.strip().splitlines()
    return [title, f"  not usable: {end} while the plugin was loaded{': ' + said[-1] if said else ''}"]


def describe(device_type: str, verbose: bool) -> list[str]:
    """Return the lines about the backends that claim a device type. This loads the plugin."""
    entries = installed()[device_type]
    lines = [f"{device_type}: {', '.join(map(distribution_text, entries))}"]
    from candelabra.backends import tiers

    try:
        load(device_type)
    except _C.BackendError as error:
        return [*lines, f"  not usable: {error}"]
    info = _C.backend_info(device_type)
    with_kernel = set(info["kernels"])
    kernels = [name for name in OPERATORS if needs_kernel(name)]
    registered = [name for name in kernels if name in with_kernel]
    others = [name for name in kernels if name not in with_kernel]
    decomposed = [name for name in others if tiers.is_decomposed(name)]
    missing = [name for name in others if not tiers.is_decomposed(name)]
    capabilities = [text for bit, text in enumerate(CAPABILITIES) if info["capabilities"] >> bit & 1]
    kind = "compiled" if info["compiled"] else "Python"
    lines += [
        f"  version      {info['version'] or '-'}",
        f"  ABI          {info['abi_major']}.{info['abi_minor']} ({kind} kernels)",
        f"  devices      {info['device_count']}",
        f"  capabilities {', '.join(capabilities) or 'none'}",
        f"  kernels      {len(registered)} of {len(kernels)}; {len(decomposed)} have a decomposition, {len(missing)} are missing",
        f"  tier         {tier_text(tiers.tier_of(device_type))}",
    ]
    if device_type != "cpu":
        fallback = f"on: {len(missing)} operators" if _C.has_cpu_fallback(device_type) else "off"
        lines.append(f"  CPU fallback {fallback}")
    if decomposed:
        lines.append(f"  decomposed   {wrapped(decomposed)}")
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


def write_distribution(arguments: list[str]) -> int:
    """Run ``new NAME``: write a distribution with a working backend, and say what to do next."""
    from candelabra.backends import new

    parser = argparse.ArgumentParser(
        prog="python -m candelabra.backends new", description="Write a distribution with a working backend."
    )
    parser.add_argument("name", help="of the distribution; its letters and digits are the device type")
    language = parser.add_mutually_exclusive_group()
    language.add_argument("--c", dest="language", action="store_const", const="c", help="kernels in C (the default)")
    language.add_argument("--cpp", dest="language", action="store_const", const="cpp", help="kernels in C++")
    language.add_argument(
        "--python", dest="language", action="store_const", const="python", help="kernels in Python, on host memory"
    )
    parser.add_argument("--folder", type=Path, help="where to write; by default a folder of that name")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(given.name)
    try:
        written = new.write(given.name, given.language or "c", folder)
    except (ValueError, FileExistsError) as error:
        print(error, file=sys.stderr)
        return 1
    for path in written:
        print(path)
    print(
        f"Next: cd {folder}; pip install .[test]; python -m pytest; "
        f"python -m candelabra.backends --verify {new.device_type_of(given.name)}"
    )
    return 0


def verify(device: str, operators: list[str], part: str | None, tier: str | None) -> int:
    """Run the conformance suite on a device; print its tiers and its speed."""
    try:
        from candelabra.testing import conformance
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("numpy", "scipy"):
            raise
        print("what kernels are compared with is NumPy and SciPy: pip install numpy scipy", file=sys.stderr)
        return 1
    from candelabra.backends import speed, tiers

    if tier is not None:
        operators = operators or tiers.operators_of(tier)
    names = operators or conformance.applicable()
    if part:
        number, parts = map(int, part.split("/"))
        names = names[number - 1 :: parts]
    status = conformance.main(device, names)
    if part:
        return status  # the rest is about the whole device
    device_type = candelabra.device(device).type
    found = tiers.tier_of(device_type)
    print("\n".join(tier_lines(found)))
    print("\n".join(speed.report(device)))
    if tier is not None and found.missing[tier]:
        return 1
    return status


def tier_text(found: Tiers) -> str:
    """Return the tier of a device type, and how many kernels the next one needs."""
    for tier, missing in found.missing.items():
        if missing:
            return f"{found.reached or 'none'}; {len(missing)} kernels are missing for {tier}"
    return str(found.reached)


def tier_lines(found: Tiers) -> list[str]:
    """Return the lines about the tiers of a device type."""
    lines = [f"tiers: {found.reached or 'none is reached'}"]
    for tier, missing in found.missing.items():
        if missing:
            return [*lines, f"  for {tier}, {len(missing)} kernels are missing: {wrapped(missing)}"]
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print the table, verify a backend or write one, and return the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["new"]:
        return write_distribution(words[1:])
    if words[:1] == ["contract"]:
        return print_contract(words[1:])
    if words == ["docs"]:
        print(documentation())
        return 0
    parser = argparse.ArgumentParser(
        prog="python -m candelabra.backends",
        description="List the installed backends, or verify one.",
        epilog="'new NAME' writes the distribution of a new backend (new --help); 'contract OPERATOR' prints what a kernel "
        "gets; 'docs' prints the folder of the pages.",
    )
    parser.add_argument("--verify", metavar="DEVICE", help="run the conformance suite; print tiers and speed")
    parser.add_argument(
        "--tier", choices=("required", "fast"), help="verify this tier, and fail if a kernel is missing"
    )
    parser.add_argument(
        "--part", metavar="K/N", help="of the conformance suite only every N-th operator, from the K-th on"
    )
    parser.add_argument("--verbose", action="store_true", help="list the registered kernels too")
    parser.add_argument("--describe", metavar="DEVICE", help="list this device type alone, in this process")
    given, rest = parser.parse_known_args(words)
    if given.verify is not None:
        return verify(given.verify, rest, given.part, given.tier)
    if given.describe is not None:
        print("\n".join(describe(given.describe, given.verbose)))
        return 0
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return list_backends(given.verbose)


def print_contract(names: list[str]) -> int:
    """Run ``contract NAME...``: print what the core guarantees to the kernels of these
    operators.
    """
    from candelabra.backends import contract

    for name in names:
        if name not in OPERATORS or not contract.has_kernel(name):
            print(f"'{name}' is no operator that a backend has a kernel for", file=sys.stderr)
            return 1
        print("\n".join(contract.entry([name])))
    return 0


def list_backends(verbose: bool) -> int:
    """Print the installed backends."""
    print(f"candelabra-tensor-core {candelabra.__version__}, {len(OPERATORS)} operators")
    found = sorted(installed())
    if not found:
        print("no backend is installed: pip install candelabra-backend-cpu")
        return 1
    for device_type in found:
        print("\n".join(probe(device_type, verbose)), flush=True)
    return 0


def documentation() -> Path:
    """Return the folder of the pages for authors of backends: of the wheel, or of a source tree."""
    package = Path(candelabra.__file__).parent
    wheel = package / "docs"
    return wheel if wheel.is_dir() else package.parents[3] / "docs"


if __name__ == "__main__":
    sys.exit(main())
