"""Rank and size of the world, as launchers and batch systems tell them in the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """What the environment says about this process.

    Attributes
    ----------
    source : str
        Who has set the variables.
    rank, world_size, local_rank : int or None
        None if unknown.
    address, port
        Where the store is, or None.
    has_foreign_manager : bool
        Whether MPI can start by the launcher's own process manager.
    """

    source: str
    rank: int | None
    world_size: int | None
    local_rank: int | None
    address: str | None
    port: int | None
    has_foreign_manager: bool = False


#: Names of the variables of rank, size and local rank, in the order in which they are tried.
_KINDS = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", False),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", True),
    ("PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", True),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", False),
    ("PMIx", "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", True),
)


def launch(environment: Mapping[str, str] = os.environ) -> Launch:
    """Return what the environment says, by torchrun's variables, or those of Open MPI, PMI, Slurm
    or PMIx.

    Examples
    --------
    >>> from candelabra.distributed.environment import launch
    >>> found = launch({"SLURM_PROCID": "1", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "n[3-4]", "SLURM_JOB_ID": "77"})
    >>> found.source, found.rank, found.world_size, found.address, found.port
    ('Slurm', 1, 4, 'n3', 15077)
    """
    address = environment.get("MASTER_ADDR")
    port = _number(environment, "MASTER_PORT")
    for source, rank, size, local, is_foreign in _KINDS:
        if rank not in environment or (source != "torchrun" and size not in environment):
            continue
        if source == "Slurm" and address is None:
            hosts = expand_hosts(environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST", ""))
            address = hosts[0] if hosts else None
            port = 15000 + int(environment.get("SLURM_JOB_ID", "0")) % 20000 if port is None else port
        return Launch(
            source,
            _number(environment, rank),
            _number(environment, size),
            _number(environment, local),
            address,
            port,
            is_foreign,
        )
    return Launch("nobody", None, _number(environment, "WORLD_SIZE"), None, address, port)


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment variable {name} is no number: {text!r}") from None


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of Slurm's compressed list.

    Examples
    --------
    >>> from candelabra.distributed.environment import expand_hosts
    >>> expand_hosts("gpu[08-10,12],login")
    ['gpu08', 'gpu09', 'gpu10', 'gpu12', 'login']
    """
    hosts: list[str] = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", text):
        hosts.extend(_expand(part))
    return hosts


def _expand(part: str) -> list[str]:
    found = re.search(r"\[([^\]]*)\]", part)
    if found is None:
        return [part]
    before, after = part[: found.start()], part[found.end() :]
    hosts: list[str] = []
    for piece in found[1].split(","):
        first, dash, last = piece.partition("-")
        numbers = range(int(first), int(last if dash else first) + 1)
        hosts.extend(name for n in numbers for name in _expand(f"{before}{n:0{len(first)}d}{after}"))
    return hosts


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process among those of its machine.

    Parameters
    ----------
    fallback_rank : int, optional
        The result if no launcher has set a number.

    Raises
    ------
    RuntimeError
        There is neither.

    Examples
    --------
    >>> from candelabra.distributed import get_node_local_rank
    >>> get_node_local_rank(fallback_rank=0)
    0
    """
    found = launch().local_rank if "LOCAL_RANK" not in os.environ else int(os.environ["LOCAL_RANK"])
    if found is not None:
        return found
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def is_torchelastic_launched() -> bool:
    """Return whether the launcher ``candelabra.distributed.run`` (or torchrun) started this
    process.

    Examples
    --------
    >>> from candelabra.distributed import is_torchelastic_launched
    >>> is_torchelastic_launched()
    False
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
