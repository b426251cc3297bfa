"""Build tensor-core and the CPU backend for AArch64 on another machine, and run Python on them.

``python tools/arm64.py FOLDER build [OPTION …]`` makes a place for AArch64 in FOLDER: Debian's
Python, NumPy and SciPy from PyPI, and the two wheels, compiled by ``aarch64-linux-gnu-g++``.
``python tools/arm64.py FOLDER add WHEEL …`` adds wheels without compiled code, and
``python tools/arm64.py FOLDER run ARGUMENT …`` runs that Python on QEMU, as ``python ARGUMENT …``.

The machine has to be Debian's or Ubuntu's, with the packages `TOOLS`; nothing is installed outside
FOLDER.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The packages of Debian that this needs, by the commands and headers that they bring.
TOOLS = {
    "g++-aarch64-linux-gnu": "aarch64-linux-gnu-g++",
    "qemu-user-static": "qemu-aarch64-static",
    "libsimde-dev": "/usr/include/simde/x86/avx2.h",
}
#: What AArch64 gets from Debian, with what these depend on, and from PyPI.
DEBIAN = ["python3.11", "libpython3.11-dev", "libgomp1"]
COMPILED = ["numpy", "scipy", "scipy-openblas32"]
PURE = ["pluggy", "pytest", "pytest-timeout", "hypothesis", "tqdm"]
VERSION = "3.11"
SUFFIX = ".cpython-311-aarch64-linux-gnu.so"


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    """Run a command, and end with its error."""
    done = subprocess.run([str(part) for part in command], env=os.environ | (environment or {}))
    if done.returncode:
        sys.exit(f"arm64: failed with status {done.returncode}: {' '.join(str(part) for part in command)}")


def check_tools() -> None:
    """End with the command that installs what is missing."""
    missing = [
        package
        for package, brought in TOOLS.items()
        if not (Path(brought).exists() if brought.startswith("/") else shutil.which(brought))
    ]
    if missing:
        sys.exit(f"arm64: missing; as root: apt-get install {' '.join(missing)}")


def make_system(folder: Path) -> None:
    """Unpack Debian's Python for AArch64, by a package manager with lists of its own."""
    system, apt = folder / "system", folder / "apt"
    if (system / "usr" / "bin" / f"python{VERSION}").exists():
        return
    for part in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/dpkg", "var/lib/apt/lists/partial",
                 "var/cache/apt/archives/partial"):  # fmt: skip
        (apt / part).mkdir(parents=True, exist_ok=True)
    status = apt / "var" / "lib" / "dpkg" / "status"
    status.touch()
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    source = f"deb [signed-by={keys}] http://deb.debian.org/debian bookworm main\n"
    (apt / "etc" / "apt" / "sources.list").write_text(source)
    settings = [f"Dir={apt}", f"Dir::State::status={status}", "APT::Architecture=arm64", "APT::Architectures=arm64",
                "APT::Install-Recommends=0", "Debug::NoLocking=1"]  # fmt: skip
    command = ["apt-get", "-q", *(f"-o{setting}" for setting in settings)]
    run(*command, "update")
    run(*command, "-y", "--download-only", "install", *DEBIAN)
    system.mkdir(exist_ok=True)
    for archive in sorted((apt / "var" / "cache" / "apt" / "archives").glob("*.deb")):
        run("dpkg", "-x", archive, system)


def unpack(wheel: Path, site: Path) -> None:
    """Put a wheel's files into a folder of packages; those under its data folder are left out."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)


def make_site(folder: Path) -> Path:
    """Unpack the libraries from PyPI."""
    site, downloads = folder / "site", folder / "downloads"
    if not site.exists():
        platforms = [f"--platform=manylinux{tag}_aarch64" for tag in ("2014", "_2_17", "_2_27", "_2_28")]
        pip = [sys.executable, "-m", "pip", "download", "-q", "-d", str(downloads), "--only-binary=:all:"]
        run(*pip, "--no-deps", *platforms, f"--python-version={VERSION}", *COMPILED)
        run(*pip, *PURE)
        for wheel in sorted(downloads.glob("*.whl")):
            unpack(wheel, site)
    return site


def build(folder: Path, *options: str) -> None:
    """Compile both wheels, and unpack them beside the libraries."""
    check_tools()
    folder.mkdir(parents=True, exist_ok=True)
    make_system(folder)
    site = make_site(folder)
    toolchain = folder / "toolchain.cmake"
    toolchain.write_text(
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
        + "".join(f"set(CMAKE_{name} aarch64-linux-gnu-{tool})\n" for name, tool in
                  (("C_COMPILER", "gcc"), ("CXX_COMPILER", "g++"), ("STRIP", "strip")))
    )  # fmt: skip
    # SIMDe's folder alone: beside it lie headers of this machine.
    simde = folder / "simde"
    simde.mkdir(exist_ok=True)
    if not (simde / "simde").exists():
        (simde / "simde").symlink_to("/usr/include/simde")
    headers = folder / "headers"
    run(sys.executable, ROOT / "packages" / "tensor-core" / "tools" / "make_headers.py", "--with-headers", headers)
    include = folder / "system" / "usr" / "include"
    defined = {
        "tensor-core": {
            "Python_INCLUDE_DIR": include / f"python{VERSION}",
            "CMAKE_CXX_FLAGS": f"-idirafter {include}",
        },
        "backend-cpu": {
            "CANDELABRA_INCLUDE_DIR": headers,
            "CMAKE_PREFIX_PATH": site,
            "CANDELABRA_SIMDE_DIR": simde,
        },
    }
    # What sysconfig and scikit-build-core name the platform by.
    environment = {"_PYTHON_HOST_PLATFORM": "linux-aarch64", "SETUPTOOLS_EXT_SUFFIX": SUFFIX}
    for package, definitions in defined.items():
        wheels = folder / "wheels" / package
        shutil.rmtree(wheels, ignore_errors=True)
        given = {"CMAKE_TOOLCHAIN_FILE": toolchain, **definitions}
        run(
            sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels,
            f"-Cbuild-dir={folder / 'build' / package}",
            *(f"-Ccmake.define.{name}={value}" for name, value in given.items()), *options,
            ROOT / "packages" / package, environment=environment,
        )  # fmt: skip
        (wheel,) = wheels.glob("*.whl")
        if "aarch64" not in wheel.name:
            sys.exit(f"arm64: {wheel.name} is not a wheel for aarch64")
        unpack(wheel, site)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")


def command(folder: Path) -> list[str]:
    """Return the command that starts Python for AArch64."""
    system = folder / "system"
    return ["qemu-aarch64-static", "-L", str(system), str(system / "usr" / "bin" / f"python{VERSION}")]


def main(arguments: list[str]) -> None:
    """Run what is asked for."""
    if len(arguments) < 2 or arguments[1] not in ("build", "add", "run"):
        sys.exit(__doc__)
    folder = Path(arguments[0]).resolve()
    if arguments[1] == "build":
        return build(folder, *arguments[2:])
    if arguments[1] == "add":
        for wheel in arguments[2:]:
            unpack(Path(wheel), folder / "site")
        return None
    path = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return run(*command(folder), *arguments[2:], environment={"PYTHONPATH": path})


if __name__ == "__main__":
    main(sys.argv[1:])
