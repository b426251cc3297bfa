"""Test memory without addresses on the example minimal-c, whose handles trap where they are used as
addresses.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from backends import COMPILER, PLUGIN, distribution, outcomes

import candelabra
from candelabra.backends.new import TEMPLATES

#: The example, and what it takes from the template of backends in C.
SOURCES = Path(__file__).parents[2] / "examples" / "backends" / "minimal-c" / "src"
TEMPLATE = Path(str(TEMPLATES / "c"))
SHARED = ("kernels", "creation", "elementwise", "reduction", "linalg")
INCLUDE = Path(candelabra.cmake_prefix_path).parent / "include"
SETUP = """
c = candelabra
t = c.arange(12, dtype=c.float32).reshape(3, 4).to(D)
"""
#: Programs that give the same on the CPU and on the device.
SAME = {
    "slice": "t[1:, ::2].tolist()",
    "view": "t.view(2, 6)[1].tolist()",
    "transposed": "(t.T + 1).tolist()",
    "copy of a view": "t.T[1:3].clone().tolist()",
    "to the host": "t[:, 1].cpu().tolist()",
    "assignment": "t[1:, 1] = 7.0\nt.tolist()",
    "assignment of a view": "t[:, 0] = t[:, 3].clone()\nt.tolist()",
    "copy_ from the host": "t[1].copy_(c.ones(4))\nt.tolist()",
    "copy_ to a strided view": "t.T[0].copy_(c.ones(3).to(D))\nt.tolist()",
    "printing": "repr(t).replace(f\", device='{t.device}'\", '')",
    "printing a view": "str(t[1:, 1:3]).replace(f\", device='{t.device}'\", '')",
    "item": "t[2, 3].item()",
    "index by a number": "t[-1].tolist()",
    "split": "[part.tolist() for part in t.split(2, dim=1)]",
    "unfolded": "t.unfold(1, 2, 1).tolist()",
    "expanded": "t[:1].expand(2, 4).neg().tolist()",
    "diagonal": "t[:, :3].diagonal().tolist()",
    "squeezed": "t[:, None, 2:3].squeeze().tolist()",
    "flattened": "t.T.reshape(-1).tolist()",
    "sum of a view": "t[:, 1:].sum(1).tolist()",
    "product of views": "c.mm(t[:, :2], t[:2].T[:2]).tolist()",
    "in place on a view": "t[:, 1].mul_(2.0)\nt.tolist()",
    "out of a view": "o = c.zeros(3, 4).to(D)\nc.exp(t[:, :2] * 0.0, out=o[:, 1:3])\no.tolist()",
    "empty": "t[3:].tolist(), t[3:].clone().shape",
    "broadcast": "(t + t[:, :1] * t[0]).tolist()",
    "storage bytes": "t.untyped_storage().tobytes()[4:8]",
    "float64": "t.to(c.float64)[1].tolist()",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the distribution of the example."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("minic")
    distribution(folder, "abi-minic", "minic", PLUGIN.replace("{module}", "abi_minic"))
    command = [COMPILER, "-std=c11", "-O1", "-shared", "-fPIC", f"-I{INCLUDE}", f"-I{TEMPLATE}"]
    sources = [SOURCES / "backend.c", SOURCES / "device.c", *(TEMPLATE / f"{name}.c" for name in SHARED)]
    libraries = ["-lm", "-lpthread", "-o", folder / "libabi_minic.so"]
    subprocess.run([*map(str, [*command, *sources, *libraries])], check=True)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    """Run every program on the device and on the CPU."""
    programs = [
        (f"{device} {name}", device, SETUP + code) for name, code in SAME.items() for device in ("minic", "cpu")
    ]
    return outcomes(folder, programs)


@pytest.mark.parametrize("name", SAME)
def test_same_as_on_the_cpu(found, name):
    device, cpu = found.get(f"minic {name}"), found[f"cpu {name}"]
    assert device is not None and "died" not in device, device
    assert "value" in cpu, cpu
    assert device.get("value") == cpu["value"], device


def test_an_address_is_refused(folder):
    programs = [
        ("numpy", "minic", f"{SETUP}t.numpy()"),
        ("memoryview", "minic", f"{SETUP}memoryview(t)"),
        ("dlpack", "minic", f"{SETUP}t.__dlpack__()"),
    ]
    for name, result in outcomes(folder, programs).items():
        assert result.get("error") in ("TypeError", "BufferError", "RuntimeError"), (name, result)
        assert "minic" in result["message"], (name, result)
