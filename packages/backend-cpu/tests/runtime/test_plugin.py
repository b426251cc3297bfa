"""Test the plugin: its hook, its processor check, and what users see through the core."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from harness import backend

import candelabra
import candelabra_backend_cpu


def test_hook_gives_the_library() -> None:
    given: list[str] = []

    class Registrar:
        def library(self, path: str) -> None:
            given.append(path)

    candelabra_backend_cpu.candelabra_register_backend(Registrar())
    assert given == [str(candelabra_backend_cpu.library_path())]
    assert os.path.isfile(given[0])


def test_entry_point() -> None:
    found = [point for point in entry_points(group="candelabra.backends") if point.name == "cpu"]
    if not found:
        pytest.skip("the distribution is not installed: this is its source tree on the path")
    assert found[0].load() is candelabra_backend_cpu


def test_an_older_processor_is_told_what_it_lacks() -> None:
    with pytest.raises(ImportError, match=r"needs a processor with AVX2 and FMA .* this one lacks avx2, fma"):
        candelabra_backend_cpu._require_processor(frozenset({"sse4_2", "f16c", "bmi2"}))
    candelabra_backend_cpu._require_processor(frozenset({"avx2", "fma", "f16c", "bmi2"}))
    candelabra_backend_cpu._require_processor()


def test_table() -> None:
    table = backend().table
    assert (table.abi_major, table.device_type) == (2, b"cpu")
    assert table.version.decode() == candelabra_backend_cpu.__version__


def test_every_operator_that_needs_a_kernel_has_one() -> None:
    from candelabra.catalogue import declaration

    tags = declaration.COMPOSITE | declaration.VIEW | declaration.CORE
    missing = [
        name
        for name, operator in declaration.OPERATORS.items()
        if not operator.tags & tags and name not in backend().kernels
    ]
    assert missing == []


def test_out_of_memory_is_an_exception_with_sizes() -> None:
    with pytest.raises(candelabra.OutOfMemoryError, match="you tried to allocate 4398046511104 bytes"):
        candelabra.empty(1 << 40)
    assert candelabra.ones(3).sum().item() == 3  # the rest still works


def test_integer_division_by_zero_through_the_core() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        candelabra.tensor([1, 2]) // candelabra.tensor([1, 0])


def test_threads_through_the_core() -> None:
    count = candelabra.get_num_threads()
    try:
        candelabra.set_num_threads(1)
        x = candelabra.arange(200_000).to(candelabra.float32)
        serial = candelabra.exp(x / 1e5).numpy().copy()
        candelabra.set_num_threads(2)
        assert candelabra.get_num_threads() == 2
        assert np.array_equal(candelabra.exp(x / 1e5).numpy(), serial)
    finally:
        candelabra.set_num_threads(count)


@pytest.mark.parametrize("isa", ["avx2", "widest"])
def test_forced_instruction_set(isa: str) -> None:
    code = "import candelabra; print(candelabra.tensor([0.0, 1.0]).exp().tolist())"
    environment: dict[str, Any] = {**os.environ, **({"CANDELABRA_CPU_ISA": isa} if isa == "avx2" else {})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment)
    assert done.stdout.strip() == "[1.0, 2.7182817459106445]", done.stderr[-1000:]
