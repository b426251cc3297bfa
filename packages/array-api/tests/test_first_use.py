"""The first use by many threads at once."""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from candelabra.testing.first_use import run_scenario

SCENARIO = """
    import candelabra

    def use(number):
        tensor = candelabra.tensor([number, number + 1.0])
        if number % 2:
            import candelabra.array_api as xp
        else:
            xp = tensor.__array_namespace__()
        return xp.asarray(tensor)[::-1]

    for number, result in enumerate(run_concurrently(use)):
        assert type(result) is candelabra.array_api.Array and result.tolist() == [number + 1, number]
"""


def test_first_use_by_many_threads() -> None:
    run_scenario(SCENARIO, 1)
