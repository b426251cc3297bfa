"""Start ranks with MPI's own launcher, and collect what each of them has found out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).parent


def launcher() -> str:
    """Return the mpiexec that belongs to the MPI in use."""
    given = os.environ.get("CANDELABRA_MPI_LIBRARY")
    if given:
        return str(Path(given).resolve().parent / "bin" / "mpiexec")
    try:
        files = metadata.files("mpich") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "mpiexec":
            return str(Path(str(file.locate())).resolve())
    found = shutil.which("mpiexec")
    assert found, "no mpiexec: pip install mpich"
    return found


def start_ranks(script: str, ranks: int, folder: Path, *options: str, timeout: float = 60.0) -> list[dict[str, str]]:
    """Run ``SCRIPT.py`` of this folder on some ranks. Each writes a dictionary of what it has found
    to ``RANK.json``: a text for each check, empty where it has passed.
    """
    folder.mkdir(exist_ok=True)
    command = [launcher(), *options, "-n", str(ranks), sys.executable, str(FOLDER / f"{script}.py"), str(folder)]
    with (folder / "output.txt").open("w") as output:
        subprocess.run(command, timeout=timeout, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    text = (folder / "output.txt").read_text()
    found = []
    for rank in range(ranks):
        path = folder / f"{rank}.json"
        found.append(json.loads(path.read_text()) if path.exists() else {"": f"rank {rank} wrote nothing: {text}"})
    return found
