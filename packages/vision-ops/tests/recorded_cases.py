"""Calls whose results are recorded with torchvision. The arguments are made without random numbers,
so that they are the same in every library.
"""

from __future__ import annotations

import math
from typing import Any

#: Name, sizes of the image, further arguments.
REGIONS: list[tuple[str, tuple[int, ...], tuple[Any, ...]]] = [
    ("roi_align", (2, 3, 14, 18), (0.7, 3, 4, -1, True)),
    ("roi_align", (2, 3, 14, 18), (0.7, 7, 7, 2, False)),
    ("roi_align", (2, 2, 40, 33), (1.5, 2, 5, 0, False)),
    ("roi_pool", (2, 3, 14, 18), (0.7, 3, 4)),
    ("ps_roi_align", (2, 12, 14, 18), (0.7, 2, 3, -1)),
    ("ps_roi_align", (2, 12, 14, 18), (0.7, 3, 2, 2)),
    ("ps_roi_pool", (2, 12, 14, 18), (0.7, 2, 3)),
]
#: Groups, offset groups, whether there is a mask, steps of stride, padding and dilation.
CONVOLUTIONS = [
    (1, 1, True, (1, 1, 1, 1, 1, 1)),
    (2, 2, True, (2, 1, 0, 1, 1, 2)),
    (1, 2, False, (1, 2, 2, 0, 2, 1)),
]


def wave(count: int, phase: float) -> list[float]:
    """Numbers between -1 and 1 that look random."""
    return [math.sin(12.9898 * (k + phase) ** 1.1) for k in range(count)]


def filled(library: Any, sizes: tuple[int, ...], phase: float) -> Any:
    """A tensor of these numbers."""
    return library.tensor(wave(math.prod(sizes), phase), dtype=library.float64).reshape(sizes)


def summary(tensor: Any, library: Any) -> list[float]:
    """The sum of a result, and its product with other numbers."""
    values = tensor.detach().to(library.float64).reshape(-1)
    weights = library.tensor(wave(values.numel(), 0.3), dtype=library.float64)
    return [float(values.sum()), float((values * weights).sum())]


def boxes(library: Any, height: int, width: int) -> Any:
    """Boxes that lie partly outside of the image."""
    rows = []
    for k, (a, b, c, d) in enumerate(zip(*[iter(wave(32, 0.7))] * 4)):
        x, y = sorted((a * width, b * width)), sorted((c * height, d * height))
        rows.append([float(k % 2), x[0] + width / 2, y[0] + height / 2, x[1] + width / 2, y[1] + height / 2])
    return library.tensor(rows, dtype=library.float64)


def with_gradients(library: Any, tensors: list[Any], call: Any) -> list[list[float]]:
    """Summaries of the results of a call, and of its gradients."""
    for tensor in tensors:
        tensor.requires_grad_()
    made = call(*tensors)
    results = made if isinstance(made, tuple) else (made,)
    weights = filled(library, tuple(results[0].shape), 0.9)
    results[0].backward(weights)
    grads = [tensor.grad for tensor in tensors if tensor.grad is not None]
    return [summary(tensor, library) for tensor in (*results, *grads)]


def run(library: Any) -> dict[str, list[list[float]]]:
    """Return the summaries of all cases, by name."""
    ops, made = library.ops.torchvision, {}
    for number, (name, sizes, arguments) in enumerate(REGIONS):
        rois = boxes(library, *sizes[2:]) / library.tensor([1.0] + [arguments[0]] * 4, dtype=library.float64)
        made[f"{name} {number}"] = with_gradients(
            library, [filled(library, sizes, 0.1)], lambda x, n=name, r=rois, a=arguments: getattr(ops, n)(x, r, *a)
        )
    for number, (groups, offset_groups, with_mask, steps) in enumerate(CONVOLUTIONS):
        x, weight = filled(library, (2, 4, 7, 8), 0.1), filled(library, (6, 4 // groups, 3, 2), 0.2)
        out = [
            (x.shape[2 + d] + 2 * steps[2 + d] - steps[4 + d] * (weight.shape[2 + d] - 1) - 1) // steps[d] + 1
            for d in range(2)
        ]
        offset = 2 * filled(library, (2, 12 * offset_groups, *out), 0.4)
        mask = filled(library, (2, 6 * offset_groups, *out) if with_mask else (2, 1), 0.5)
        numbers = (*steps, groups, offset_groups, with_mask)
        made[f"deform_conv2d {number}"] = with_gradients(
            library,
            [x, weight, offset, mask, filled(library, (6,), 0.6)],
            lambda *tensors, n=numbers: ops.deform_conv2d(*tensors, *n),
        )
    made["nms"] = [
        [float(k) for k in ops.nms(10 * boxes(library, 9, 9)[:, 1:], boxes(library, 1, 1)[:, 3], threshold).tolist()]
        for threshold in (0.1, 0.3, 0.6)
    ]
    turned = library.cat(
        (filled(library, (7, 2), 0.1) * 4, filled(library, (7, 2), 0.2).abs() * 6, filled(library, (7, 1), 0.3) * 200),
        1,
    )
    made["box_iou_rotated"] = [summary(ops.box_iou_rotated(turned, turned.flip(0)), library)]
    return made
