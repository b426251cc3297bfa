"""Fetches PyTorch's tests and the harness they need into a cache folder outside the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

#: Debian's release whose source package has the tests, and PyTorch's version with the harness.
DEBIAN, TORCH = "trixie", "2.13.0"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
#: Parts of the wheel that are kept: the harness and what it is made with.
KEPT = re.compile(r"(torch/(testing|_vendor|_subclasses|utils)/|torchgen/).*\.pyi?$|torch/__init__\.py$")
#: Settings of apt, all of whose files are in a folder of its own.
APT = """Dir::State::lists "{0}/lists";
Dir::Cache "{0}/cache";
Dir::Etc::sourcelist "{0}/sources.list";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "root";
"""


def cache() -> Path:
    """Return the cache folder."""
    found = os.environ.get("XDG_CACHE_HOME", "")
    return Path(found if found else Path.home() / ".cache") / "candelabra" / "torch_suite"


def tests() -> Path:
    """Return the folder of PyTorch's tests; download Debian's source package if it is missing."""
    goal = cache() / "test"
    if goal.exists():
        return goal
    goal.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=goal.parent) as name:
        folder = Path(name)
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "sources.list").write_text(
            f"deb-src [signed-by={KEYRING}] http://deb.debian.org/debian {DEBIAN} main\n"
        )
        (folder / "apt.conf").write_text(APT.format(folder))
        settings = os.environ | {"APT_CONFIG": str(folder / "apt.conf")}
        subprocess.run(["apt-get", "update"], env=settings, check=True)
        subprocess.run(["apt-get", "--download-only", "source", "pytorch"], env=settings, check=True, cwd=folder)
        archive = next(folder.glob("pytorch_*.orig.tar.*"))
        with tarfile.open(archive) as opened:
            for member in opened:
                inside = member.name.partition("/")[2]
                if member.isfile() and inside.startswith("test/"):
                    member.name = inside
                    opened.extract(member, folder / "unpacked", filter="data")
        (folder / "unpacked" / "test").rename(goal)
    return goal


def harness() -> Path:
    """Return the folder with ``torch/testing`` of PyTorch's wheel; download the wheel if needed."""
    goal = cache() / f"harness-{TORCH}"
    if goal.exists():
        return goal
    goal.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=goal.parent) as name:
        folder = Path(name)
        subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder), f"torch=={TORCH}",
                "--index-url", "https://download.pytorch.org/whl/cpu",
            ],
            check=True,
        )  # fmt: skip
        with zipfile.ZipFile(next(folder.glob("torch-*.whl"))) as wheel:
            for member in wheel.namelist():
                if KEPT.match(member):
                    wheel.extract(member, folder / "unpacked")
        (folder / "unpacked").rename(goal)
    return goal
