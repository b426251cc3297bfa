"""Build the images of docker/ from the wheels in dist/, and run the demo in them.

``python tools/build_images.py [cpu] [cuda]``, by ``nox -s images``. Takes docker if its daemon
answers, else buildah in a chroot; where the registry cannot be reached, the base is made by
debootstrap. Says which.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What a base made by debootstrap is called: Debian 12, whose Python is 3.11.
MADE_BASE = "localhost/candelabra-base"
MIRROR = "http://deb.debian.org/debian"


def run(*command: str) -> None:
    """Run a command and show it."""
    print("+", " ".join(command), flush=True)
    subprocess.run(command, cwd=ROOT, check=True)


def output(*command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def engine() -> list[str]:
    """Return the command that builds: docker's, or buildah's.

    Raises
    ------
    SystemExit
        If there is neither.
    """
    if shutil.which("docker") and not subprocess.run(["docker", "info"], capture_output=True).returncode:
        return ["docker", "build"]
    if shutil.which("buildah"):
        return ["buildah", "--storage-driver", "vfs", "bud", "--layers", "--isolation", "chroot"]
    raise SystemExit("there is no daemon of docker and no buildah: apt-get install buildah debootstrap")


def debian_base() -> str:
    """Make the base by debootstrap, unless it is there, and return its name."""
    buildah = ["buildah", "--storage-driver", "vfs"]
    if MADE_BASE in output(*buildah, "images", "--format", "{{.Name}}"):
        return MADE_BASE
    with tempfile.TemporaryDirectory() as folder:
        root = f"{folder}/root"
        run(
            "debootstrap",
            "--variant=minbase",
            "--include=python3,python3-venv,ca-certificates",
            "bookworm",
            root,
            MIRROR,
        )
        for place in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(f"{root}/{place}", ignore_errors=True)
        container = output(*buildah, "from", "scratch")
        run(*buildah, "add", container, root, "/")
        run(*buildah, "commit", "--rm", container, MADE_BASE)
    return MADE_BASE


def base(building: list[str]) -> str:
    """Return the base: Python's slim image, or one made here where that cannot be had."""
    name = f"docker.io/library/python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    if building[0] == "docker":
        return name
    pulled = subprocess.run(["buildah", "--storage-driver", "vfs", "pull", name], capture_output=True, text=True)
    if not pulled.returncode:
        return name
    print(f"{name} cannot be pulled: {pulled.stderr.strip().splitlines()[-1]}", flush=True)
    return debian_base()


def certificates() -> list[str]:
    """Return the options that let pip reach the network where it has certificates of its own: the
    bundle that PIP_CERT, REQUESTS_CA_BUNDLE or SSL_CERT_FILE names.
    """
    for variable in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        if bundle := os.environ.get(variable):
            return ["--volume", f"{bundle}:/certificates.pem:ro", "--build-arg", "PIP_CERT=/certificates.pem"]
    return []


def size(building: list[str], name: str) -> str:
    """Return the size of an image."""
    if building[0] == "docker":
        return f"{int(output('docker', 'image', 'inspect', '--format', '{{.Size}}', name)) / 1e6:.0f} MB"
    return output("buildah", "--storage-driver", "vfs", "images", "--format", "{{.Size}}", name)


def main() -> None:
    """Build images, run the demo in each, and print their sizes."""
    parser = argparse.ArgumentParser(description="Build the images.")
    parser.add_argument("images", nargs="*", choices=["cpu", "cuda"], help="by default cpu")
    given = parser.parse_args()
    building = engine()
    chosen = base(building)
    how = "docker's daemon" if building[0] == "docker" else f"{output('buildah', '--version')}, isolated by chroot"
    print(f"built by {how}; the base is {chosen}", flush=True)
    for image in given.images or ["cpu"]:
        common = [*building, "--build-arg", f"BASE={chosen}", "-f", f"docker/{image}.Dockerfile"]
        if building[0] == "buildah":  # docker build has no volumes
            common += certificates()
        run(*common, "--target", "smoke", "-t", f"candelabra:{image}-smoke", ".")
        run(*common, "-t", f"candelabra:{image}", ".")
        print(f"candelabra:{image} is {size(building, f'candelabra:{image}')}; the base is {size(building, chosen)}")


if __name__ == "__main__":
    main()
