"""Results and gradients against those that torchvision gave (record.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import recorded_cases

import candelabra
from candelabra import vision_ops

RECORDED = json.loads(Path(__file__).with_name("torchvision_results.json").read_text())["results"]


@pytest.fixture(scope="module")
def results():
    assert candelabra.ops.torchvision.nms is vision_ops.nms
    return recorded_cases.run(candelabra)


@pytest.mark.parametrize("name", RECORDED)
def test_results_are_those_of_torchvision(results, name):
    expected = RECORDED[name]
    if name.startswith("ps_roi_pool"):
        # The gradient is that of the forward pass, which torchvision's is not at the border.
        expected, results[name] = expected[:2], results[name][:2]
    tolerance = {"abs": 1e-5, "rel": 1e-5} if name == "box_iou_rotated" else {"abs": 1e-9, "rel": 1e-9}
    assert len(results[name]) == len(expected)
    for one, other in zip(results[name], expected):
        assert one == pytest.approx(other, **tolerance)
