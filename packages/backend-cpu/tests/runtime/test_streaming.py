"""Large results are the same with non-temporal stores, ordinary stores, and during autotuning."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import candelabra as c

numbers = np.arange(9_500_000, dtype=np.float32) % 1009 - 500  # 38 MB: above every limit for non-temporal stores
rows = numbers.reshape(19, -1)
x = c.from_numpy(numbers)
for _ in range(2):  # the first large copies are trials of both kinds of store
    for ours, theirs in [
        (x.clone(), numbers),
        (c.relu(x), np.maximum(numbers, 0)),
        (x + x, numbers + numbers),
        (c.sqrt(c.abs(x)), np.sqrt(np.abs(numbers))),
        (x.to(c.float16) * 2, numbers.astype(np.float16) * np.float16(2)),
        (x.to(c.float64), numbers.astype(np.float64)),
        (c.full((9_500_000,), 7.0), np.full(9_500_000, 7, np.float32)),
        (x.view(19, -1).t().contiguous(), rows.T),
        (c.cat([x, x]), np.concatenate([numbers, numbers])),
        (x.view(19, -1)[:, 5:].contiguous(), rows[:, 5:]),
        (c.empty(9_500_001)[1:].copy_(x), numbers),
        (c.cat([x.view(9500, 1000), x.view(9500, 1000)], 1), np.tile(numbers.reshape(9500, 1000), 2)),
        (c.ops._constant_pad_nd(x.view(19, -1), [3, 4], 1.0), np.pad(rows, ((0, 0), (3, 4)), constant_values=1)),
        (x.view(19, 1, -1).expand(19, 2, -1).contiguous(), np.broadcast_to(rows[:, None], (19, 2, 500_000))),
    ]:
        assert ours.numpy().dtype == theirs.dtype
        np.testing.assert_array_equal(ours.numpy(), theirs)
print(next(line for line in c._C.backend_info("cpu")["description"].splitlines() if line.startswith("stores of large results: ")))
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "CANDELABRA_CPU_STREAMING"}
    return subprocess.run([sys.executable, "-c", program], env=inherited | environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"CANDELABRA_CPU_STREAMING": "1"},
            "stores of large results: non-temporal (CANDELABRA_CPU_STREAMING)",
        ),
        (
            {"CANDELABRA_CPU_STREAMING": "0"},
            "stores of large results: ordinary (CANDELABRA_CPU_STREAMING)",
        ),
    ],
)
def test_results_are_right_by_either_kind_of_store(environment: dict[str, str], said: str) -> None:
    finished = run(PROGRAM, **environment)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == said


def test_the_quicker_kind_is_found_out() -> None:
    finished = run(PROGRAM)
    assert finished.returncode == 0, finished.stderr
    # Which kind is faster depends on the processor. Copies that fit in the last-level cache are not
    # timed, so that a very large cache leaves the choice open.
    assert finished.stdout.startswith(
        (
            "stores of large results: non-temporal (measured",
            "stores of large results: ordinary (measured",
            "stores of large results: non-temporal (to be measured",
        )
    )


def test_nothing_is_said_to_be_measured_before_it_is() -> None:
    finished = run("import candelabra; candelabra.zeros(2); print(candelabra._C.backend_info('cpu')['description'])")
    assert "stores of large results: non-temporal (to be measured on the first large ones)" in finished.stdout


@pytest.mark.parametrize("text", ["yes", "2", "-1", "00"])
def test_another_choice_is_refused(text: str) -> None:
    finished = run("import candelabra; candelabra.zeros(2)", CANDELABRA_CPU_STREAMING=text)
    assert finished.returncode == 1
    assert f'the environment variable CANDELABRA_CPU_STREAMING must be "0" or "1", but is "{text}"' in finished.stderr
