"""The first use by many threads at once."""

from __future__ import annotations

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from candelabra.testing.first_use import run_scenario

SCENARIO = """
    import candelabra

    def use(number):
        if number % 2:
            from candelabra.legacy import nn
        else:
            nn = candelabra.legacy.nn
        layer, value = nn.MulConstant(3), candelabra.tensor([float(number)])
        layer.forward(value)
        return layer.output.tolist() + layer.backward(value, value).tolist()

    for number, result in enumerate(run_concurrently(use)):
        assert result == [3 * number, 3 * number]
"""


def test_first_use_by_many_threads() -> None:
    run_scenario(SCENARIO, 1)
