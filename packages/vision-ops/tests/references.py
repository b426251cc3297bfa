"""The operators as loops in float64, after the papers and torchvision's documentation."""

from __future__ import annotations

import math

import numpy as np


def nms(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    """Greedy suppression; equal scores stay in order."""
    kept: list[int] = []
    for i in sorted(range(len(scores)), key=lambda k: -scores[k]):
        if all(iou(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
    return kept


def iou(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of two boxes."""
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(areas) - width * height)


def bilinear(plane: np.ndarray, y: float, x: float) -> float:
    """A sample of RoI align: beyond one pixel outside of the image it is zero."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, along = y - top, x - left
    above = plane[top, left] * (1 - along) + plane[top, right] * along
    below = plane[bottom, left] * (1 - along) + plane[bottom, right] * along
    return float(above * (1 - down) + below * down)


def _grid(start: float, size: float, bins: int, p: int, ratio: int) -> list[float]:
    bin_size = size / bins
    count = ratio if ratio > 0 else math.ceil(bin_size)
    return [start + p * bin_size + (i + 0.5) * bin_size / count for i in range(count)]


def roi_align(x, rois, scale, pooled_height, pooled_width, ratio, aligned):
    """Means of bilinear samples."""
    out = np.zeros((len(rois), x.shape[1], pooled_height, pooled_width))
    for k, roi in enumerate(rois):
        x1, y1, x2, y2 = roi[1:] * scale - (0.5 if aligned else 0.0)
        height, width = y2 - y1, x2 - x1
        if not aligned:
            height, width = max(height, 1.0), max(width, 1.0)
        for c, p, q in np.ndindex(out.shape[1:]):
            ys = _grid(y1, height, pooled_height, p, ratio)
            xs = _grid(x1, width, pooled_width, q, ratio)
            samples = [bilinear(x[int(roi[0]), c], y, at) for y in ys for at in xs]
            out[k, c, p, q] = sum(samples) / max(len(samples), 1)
    return out


def ps_roi_align(x, rois, scale, pooled_height, pooled_width, ratio):
    """RoI align in which each bin has channels of its own."""
    bins = pooled_height * pooled_width
    aligned = roi_align(x, rois, scale, pooled_height, pooled_width, ratio, True)
    return _own_channels(aligned, x.shape[1] // bins)


def _own_channels(pooled: np.ndarray, channels: int) -> np.ndarray:
    count, _, height, width = pooled.shape
    out = np.zeros((count, channels, height, width))
    for c, p, q in np.ndindex(out.shape[1:]):
        out[:, c, p, q] = pooled[:, (c * height + p) * width + q, p, q]
    return out


def _round(value: float) -> int:
    return int(math.floor(abs(value) + 0.5) * (1 if value >= 0 else -1))


def _pixels(start: int, size: int, bins: int, p: int, limit: int) -> range:
    begin = start + math.floor(p * size / bins)
    end = start + math.ceil((p + 1) * size / bins)
    return range(min(max(begin, 0), limit), min(max(end, 0), limit))


def roi_pool(x, rois, scale, pooled_height, pooled_width):
    """Maxima of bins; the last pixel of a box belongs to it."""
    out = np.zeros((len(rois), x.shape[1], pooled_height, pooled_width))
    where = np.full(out.shape, -1)
    height, width = x.shape[2:]
    for k, roi in enumerate(rois):
        x1, y1, x2, y2 = (_round(value * scale) for value in roi[1:])
        for c, p, q in np.ndindex(out.shape[1:]):
            rows = _pixels(y1, max(y2 - y1 + 1, 1), pooled_height, p, height)
            columns = _pixels(x1, max(x2 - x1 + 1, 1), pooled_width, q, width)
            if len(rows) and len(columns):
                part = x[int(roi[0]), c, rows.start : rows.stop, columns.start : columns.stop]
                row, column = np.unravel_index(part.argmax(), part.shape)
                out[k, c, p, q] = part.max()
                where[k, c, p, q] = (rows.start + row) * width + columns.start + column
    return out, where


def ps_roi_pool(x, rois, scale, pooled_height, pooled_width):
    """Means of bins with channels of their own. As in torchvision, the last row and the last column
    of the image are left out.
    """
    out = np.zeros((len(rois), x.shape[1], pooled_height, pooled_width))
    height, width = x.shape[2:]
    for k, roi in enumerate(rois):
        x1, y1, x2, y2 = (_round(value * scale) for value in roi[1:])
        for c, p, q in np.ndindex(out.shape[1:]):
            rows = _pixels(y1, max(y2 - y1, 1), pooled_height, p, height - 1)
            columns = _pixels(x1, max(x2 - x1, 1), pooled_width, q, width - 1)
            if len(rows) and len(columns):
                out[k, c, p, q] = x[int(roi[0]), c, rows.start : rows.stop, columns.start : columns.stop].mean()
    return _own_channels(out, x.shape[1] // (pooled_height * pooled_width))


def _interpolated(plane: np.ndarray, y: float, x: float) -> float:
    """A sample of deformable convolution: pixels outside of the image are zero."""
    top, left = math.floor(y), math.floor(x)
    total = 0.0
    for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
            total += (1 - abs(y - row)) * (1 - abs(x - column)) * plane[row, column]
    return total


def deform_conv2d(x, weight, offset, mask, bias, stride, padding, dilation, groups, offset_groups):
    """Convolution whose kernel reads pixels that are moved by offsets and scaled by a mask."""
    batch, channels = x.shape[:2]
    outputs, per_group, kernel_height, kernel_width = weight.shape
    out = np.zeros((batch, outputs, *offset.shape[2:]))
    taps = kernel_height * kernel_width
    for n, o, row, column in np.ndindex(out.shape):
        total = bias[o]
        for k, i, j in np.ndindex(per_group, kernel_height, kernel_width):
            c = o // (outputs // groups) * per_group + k
            tap = c // (channels // offset_groups) * taps + i * kernel_width + j
            y = row * stride[0] - padding[0] + i * dilation[0] + offset[n, 2 * tap, row, column]
            at = column * stride[1] - padding[1] + j * dilation[1] + offset[n, 2 * tap + 1, row, column]
            factor = 1.0 if mask is None else mask[n, tap, row, column]
            total += weight[o, k, i, j] * factor * _interpolated(x[n, c], y, at)
        out[n, o, row, column] = total
    return out
