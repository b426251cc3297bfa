"""The operators of the namespace ``torchvision``: schemas, results and kernels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import candelabra
from candelabra.catalogue.declaration import DATA_DEPENDENT
from candelabra.library import CustomOpDef

from . import deformable_convolution, results

if TYPE_CHECKING:
    from collections.abc import Callable

_DEFORMABLE = "SymInt[] kernel, SymInt[] stride, SymInt[] padding, SymInt[] dilation, SymInt groups"
_SIZES = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_POOLED = "float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_CONVOLUTION = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask"
)


class _Compiled(NamedTuple):
    """An operator with a kernel in the library, by its symbol."""

    name: str
    schema: str
    symbol: str
    #: Checks the arguments and makes the results, on the device meta too.
    describe: Callable[..., Any]


_COMPILED = [
    _Compiled(
        "torchvision::box_iou_rotated", "(Tensor boxes1, Tensor boxes2) -> Tensor", "box_iou_rotated", results.box_iou_rotated
    ),
    _Compiled(
        "torchvision::roi_align",
        f"(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor",
        "roi_align",
        results.roi_align,
    ),
    _Compiled(
        "torchvision::_roi_align_backward",
        f"(Tensor grad, Tensor rois, {_POOLED}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
        "roi_align_backward",
        results.roi_align_backward,
    ),
    _Compiled(
        "torchvision::roi_pool", f"(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)", "roi_pool", results.roi_pool
    ),
    _Compiled(
        "torchvision::_roi_pool_backward",
        f"(Tensor grad, Tensor rois, Tensor argmax, {_POOLED}, {_SIZES}) -> Tensor",
        "roi_pool_backward",
        results.roi_pool_backward,
    ),
    _Compiled(
        "torchvision::ps_roi_align",
        f"(Tensor input, Tensor rois, {_POOLED}, int sampling_ratio) -> (Tensor, Tensor)",
        "ps_roi_align",
        results.ps_roi_align,
    ),
    _Compiled(
        "torchvision::_ps_roi_align_backward",
        f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, int sampling_ratio, {_SIZES}) -> Tensor",
        "ps_roi_align_backward",
        results.ps_roi_align_backward,
    ),
    _Compiled(
        "torchvision::ps_roi_pool",
        f"(Tensor input, Tensor rois, {_POOLED}) -> (Tensor, Tensor)",
        "ps_roi_pool",
        results.ps_roi_pool,
    ),
    _Compiled(
        "torchvision::_ps_roi_pool_backward",
        f"(Tensor grad, Tensor rois, Tensor channel_mapping, {_POOLED}, {_SIZES}) -> Tensor",
        "ps_roi_pool_backward",
        results.ps_roi_pool_backward,
    ),
    _Compiled(
        "vision_ops::deformable_im2col",
        f"(Tensor input, Tensor offset, Tensor? mask, {_DEFORMABLE}) -> Tensor",
        "deformable_im2col",
        results.deformable_im2col,
    ),
    _Compiled(
        "vision_ops::deformable_col2im",
        f"(Tensor columns, Tensor input, Tensor offset, Tensor? mask, {_DEFORMABLE}) -> Tensor",
        "deformable_col2im",
        results.deformable_col2im,
    ),
    _Compiled(
        "vision_ops::deformable_col2im_coord",
        f"(Tensor columns, Tensor input, Tensor offset, Tensor? mask, {_DEFORMABLE}) -> (Tensor, Tensor)",
        "deformable_col2im_coord",
        results.deformable_col2im_coord,
    ),
]  # fmt: skip

#: Operators that torchvision calls for quantized tensors only.
_QUANTIZED = {
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qroi_align": "(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
    f"int rois_zero_point, {_POOLED}, int sampling_ratio, bool aligned) -> Tensor",
}


def _refuse_quantized(name: str) -> Callable[..., Any]:
    def refuse(*arguments: Any) -> Any:
        raise NotImplementedError(
            f"{name}: Candelabra has no quantized tensors; {name.replace('::q', '::')} takes floats"
        )

    return refuse


def library_path() -> Path:
    """Return where the shared library of kernels lies.

    Raises
    ------
    ImportError
        If it is missing, because this is a source tree that was not built.
    """
    # In an editable install the package has two folders: the sources', and the one that CMake
    # installs into.
    folders = sys.modules[__package__ or ""].__path__
    candidates = [Path(folder) / "lib" / "libcandelabra_vision_ops.so" for folder in folders]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise ImportError(
            f"{candidates[0]} is missing: install the wheel of candelabra-vision-ops, or build it "
            "(pip install ./packages/vision-ops)"
        )
    return path


def _register_kernel(definition: CustomOpDef, path: Path, symbol: str, describe: Callable[..., Any]) -> None:
    definition.register_compiled_kernel("cpu", str(path), f"candelabra_vision_{symbol}", describe)


def define() -> None:
    """Define the operators, with their kernels for the CPU and the descriptions of their
    results.
    """
    path = library_path()
    for name, schema, symbol, describe in _COMPILED:
        made = CustomOpDef(name, schema)
        made.register_fake(describe)
        _register_kernel(made, path, symbol, describe)
    nms = CustomOpDef(
        "torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", tags=DATA_DEPENDENT
    )
    nms.register_fake(results.nms_of_unknown_size)
    _register_kernel(nms, path, "nms", results.nms)
    _define_convolution()
    for name, schema in _QUANTIZED.items():
        CustomOpDef(name, schema).register_kernel(None, _refuse_quantized(name))
    # torchvision asks which version of CUDA its kernels were built with: none.
    CustomOpDef("torchvision::_cuda_version", "() -> int").register_kernel(None, lambda: -1)


def _define_convolution() -> None:
    """Define the operators that are composed of the kernels and matrix products."""
    forward = CustomOpDef(
        "torchvision::deform_conv2d",
        f"(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_CONVOLUTION}) -> Tensor",
    )
    forward.register_kernel(None, deformable_convolution.forward)
    forward.register_fake(deformable_convolution.describe)
    backward = CustomOpDef(
        "torchvision::_deform_conv2d_backward",
        f"(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_CONVOLUTION}) "
        "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    )
    backward.register_kernel(None, deformable_convolution.backward)
    backward.register_fake(
        lambda grad, *tensors_and_numbers: tuple(candelabra.empty_like(tensor) for tensor in tensors_and_numbers[:5])
    )
