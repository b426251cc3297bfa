"""Test the files of docker/ and .devcontainer/ as far as a machine without a daemon can."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docker"


def steps(name: str) -> list[str]:
    """Return the steps of a Dockerfile, without comments."""
    text = re.sub(r"^#.*\n", "", (FOLDER / name).read_text(), flags=re.M)
    return [line.strip() for line in text.replace(" \\\n", " ").splitlines() if line.strip()]


def test_the_images_differ_in_the_backend_of_cuda_alone():
    cpu, cuda = steps("cpu.Dockerfile"), steps("cuda.Dockerfile")
    wheel = " && /opt/candelabra/bin/pip install --no-cache-dir /wheels/candelabra_backend_cuda-*.whl"
    same = [re.sub(r"  +", " ", step).replace(wheel, "").replace("Candelabra for CUDA", "Candelabra") for step in cuda]
    for variable in [step for step in same if step.startswith("ENV NVIDIA_VISIBLE_DEVICES")]:
        same.remove(variable)
    assert same == [re.sub(r"  +", " ", step) for step in cpu]
    assert len(cuda) == len(cpu) + 1


def test_the_image_runs_as_a_user_without_tools():
    for name in ("cpu.Dockerfile", "cuda.Dockerfile"):
        found = steps(name)
        assert found[0].startswith("ARG BASE=docker.io/library/python:3.11-slim")
        assert found[-1] == "FROM image"
        image = found[found.index("FROM ${BASE} AS image") : found.index("FROM image AS smoke")]
        assert "USER candelabra" in image
        assert not any(word in step for step in image for word in ("apt-get", "pip install", "g++"))
        assert any("python3 -m candelabra" in step and "digits.py" in step for step in found)


def test_only_what_images_copy_is_sent():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = {
        step.split()[1]
        for name in ("cpu.Dockerfile", "cuda.Dockerfile")
        for step in steps(name)
        if step.startswith("COPY ") and "--from" not in step
    }
    assert copied == set(kept)


def test_the_development_container():
    folder = ROOT / ".devcontainer"
    settings = json.loads((folder / "devcontainer.json").read_text())
    recipe = (folder / settings["build"]["dockerfile"]).read_text()
    assert f"USER {settings['remoteUser']}" in recipe
    needed = {command.split()[0] for command in settings["postCreateCommand"].split(" && ")} - {"python3"}
    installed = set(re.search(r"pip install --no-cache-dir (.*)", recipe)[1].split())
    assert needed | {"nox"} <= installed
    assert "nox -s dev" in settings["postCreateCommand"]
