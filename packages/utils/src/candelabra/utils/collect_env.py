"""System information for bug reports: ``python -m candelabra.utils.collect_env``."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import Any, NamedTuple

#: Distributions whose versions are reported if they are installed.
OTHERS = ("numpy", "scipy", "tqdm", "matplotlib", "tensorboard", "safetensors", "torch")


class SystemEnv(NamedTuple):
    """The result of `get_env_info`."""

    candelabra_version: str
    packages: dict[str, str]
    backends: list[str]
    others: dict[str, str]
    python_version: str
    python_platform: str
    system: str
    libc_version: str
    cpu: str
    cores: int
    threads: int
    memory_gib: float
    variables: dict[str, str]


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _system() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.platform()
    return f"{release.get('PRETTY_NAME', 'Linux')}, Linux {platform.release()}"


def _versions() -> tuple[dict[str, str], dict[str, str]]:
    ours, others = {}, {}
    for distribution in metadata.distributions():
        name = (distribution.metadata["Name"] or "").lower()
        if name == "candelabra" or name.startswith("candelabra-"):
            ours[name] = distribution.version
        elif name in OTHERS:
            others[name] = distribution.version
    return dict(sorted(ours.items())), dict(sorted(others.items()))


def _backends() -> list[str]:
    return sorted(f"{entry.name} ({entry.value})" for entry in metadata.entry_points(group="candelabra.backends"))


def get_env_info() -> SystemEnv:
    """Collect information on the machine and the installation.

    Only the core is imported, and no process is started.

    Returns
    -------
    SystemEnv
        Versions, backends, processor, memory, and the environment variables that affect Candelabra.

    Examples
    --------
    >>> from candelabra.utils.collect_env import get_env_info
    >>> get_env_info().cores >= 1
    True
    """
    import candelabra

    ours, others = _versions()
    telling = ("OMP_", "MKL_", "KMP_", "GOMP_", "CANDELABRA_", "CUDA_VISIBLE_DEVICES")
    return SystemEnv(
        candelabra_version=str(candelabra.__version__),
        packages=ours,
        backends=_backends(),
        others=others,
        python_version=sys.version.replace("\n", " "),
        python_platform=platform.platform(),
        system=_system(),
        libc_version="-".join(platform.libc_ver()),
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)),
        threads=int(candelabra.get_num_threads()),
        memory_gib=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30,
        variables={name: value for name, value in sorted(os.environ.items()) if name.startswith(telling)},
    )


def _listed(found: dict[str, str]) -> str:
    return "".join(f"\n  {name}=={version}" for name, version in found.items()) or " none"


def pretty_str(info: SystemEnv) -> str:
    """Format the information as text.

    Parameters
    ----------
    info : SystemEnv
        The result of `get_env_info`.

    Examples
    --------
    >>> from candelabra.utils.collect_env import get_env_info, pretty_str
    >>> pretty_str(get_env_info()).splitlines()[0].startswith("Candelabra version: ")
    True
    """
    rows: list[tuple[str, Any]] = [
        ("Candelabra version", info.candelabra_version),
        ("Backends", ", ".join(info.backends) or "none"),
        ("Packages", _listed(info.packages)),
        ("Other packages", _listed(info.others)),
        ("Python", info.python_version),
        ("Platform", info.python_platform),
        ("System", info.system),
        ("libc", info.libc_version),
        ("CPU", f"{info.cpu}, {info.cores} cores for this process, {info.threads} threads"),
        ("Memory", f"{info.memory_gib:.1f} GiB"),
        ("Variables", "".join(f"\n  {name}={value}" for name, value in info.variables.items()) or " none"),
    ]
    return "\n".join(f"{name}: {value}" for name, value in rows).replace(":  none", ": none").replace(": \n", ":\n")


def get_pretty_env_info() -> str:
    """Return the text that ``python -m candelabra.utils.collect_env`` prints."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the information."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
