"""How torchvision finds the operators: by the name of its package, when it loads its libraries."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import candelabra
from candelabra import library, ops, vision_ops

#: What torchvision 0.28 does at its import, in a package of the same name.
LIKE_TORCHVISION = """
    import candelabra
    from pathlib import Path

    assert "candelabra.vision_ops" not in __import__("sys").modules
    for name in ("_C.so", "image_stable.so"):
        candelabra.ops.load_library(str(Path(__file__).parent / name))
    assert candelabra.ops.torchvision._cuda_version() == -1

    meta = candelabra.library.Library("torchvision", "IMPL", "Meta")
    meta.impl(candelabra.ops.torchvision.roi_align.default, lambda x, rois, scale, h, w, ratio, aligned: x.new_empty((rois.size(0), x.size(1), h, w)))
    meta.impl(candelabra.ops.torchvision.roi_pool.default, lambda x, rois, scale, h, w: 2 * (candelabra.empty(1, device="meta"),))

    @candelabra.library.register_fake("torchvision::nms")
    def nms(dets, scores, iou_threshold):
        return dets.new_empty(candelabra.library.get_ctx().create_unbacked_symint(), dtype=candelabra.int64)

    autocast = candelabra.library.Library("torchvision", "IMPL")
    for key in ("AutocastCUDA", "AutocastCPU", "AutocastXPU"):
        autocast.impl("nms", lambda dets, scores, threshold: candelabra.ops.torchvision.nms(dets.float(), scores.float(), 2.0), key)
"""
PROGRAM = """
    import candelabra
    import torchvision

    boxes = candelabra.tensor([[0.0, 0, 9, 9], [0, 0, 9, 9]])
    torch_ops = candelabra.ops.torchvision
    assert torch_ops.nms(boxes, boxes[:, 0], 0.5).tolist() == [0]
    pooled, argmax = torch_ops.roi_pool(candelabra.ones(1, 1, 4, 4), candelabra.zeros(1, 5), 1.0, 1, 1)
    assert pooled.device.type == argmax.device.type == "cpu"
    assert torch_ops.roi_align(candelabra.ones(1, 1, 4, 4, device="meta"), candelabra.zeros(1, 5, device="meta"), 1.0, 2, 2, 2, True).shape == (1, 1, 2, 2)
    with candelabra.autocast("cpu"):
        assert torch_ops.nms(boxes, boxes[:, 0], 0.5).tolist() == [0, 1]
"""


def test_a_package_named_torchvision(tmp_path):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(textwrap.dedent(LIKE_TORCHVISION))
    (package / "_C.so").write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_libraries_of_other_packages_are_refused(tmp_path):
    path = tmp_path / "others" / "_C.so"
    path.parent.mkdir()
    path.write_bytes(b"")
    with pytest.raises(OSError, match="Could not load this library"):
        ops.load_library(path)


def test_schemas_are_those_of_torchvision():
    assert ops.torchvision.roi_align.schema == (
        "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor"
    )
    result = vision_ops.nms(dets=candelabra.zeros(1, 4), scores=candelabra.zeros(1), iou_threshold=0.5)
    assert result.tolist() == [0]
    assert library.operator_named("torchvision::nms") is vision_ops.nms


def test_the_names_of_the_package():
    assert all(callable(getattr(vision_ops, name)) for name in vision_ops.__all__)
    with pytest.raises(AttributeError, match="import candelabra.vision_ops defines the operators"):
        ops.torchvision.no_such_operator
