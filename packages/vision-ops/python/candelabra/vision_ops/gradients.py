"""The gradients of the operators: their ``_*_backward`` operators, as in torchvision."""

from __future__ import annotations

from typing import Any

from candelabra import library, ops

_CONVOLUTION_TENSORS = 5


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    input, rois, *numbers = inputs
    positions = (output[1],) if isinstance(output, tuple) else ()
    ctx.save_for_backward(rois, *positions)
    ctx.sizes, ctx.numbers = tuple(input.shape), tuple(numbers)


def _roi_align(ctx: Any, grad: Any) -> tuple[Any, ...]:
    (rois,) = ctx.saved_tensors
    *pooled, sampling_ratio, aligned = ctx.numbers
    grad_input = ops.torchvision._roi_align_backward(grad, rois, *pooled, *ctx.sizes, sampling_ratio, aligned)
    return grad_input, *(None,) * 6


def _of_pooled(name: str) -> Any:
    """Return the gradient of an operator whose second result tells where values come from."""

    def gradient(ctx: Any, grad: Any, grad_positions: Any) -> tuple[Any, ...]:
        rois, positions = ctx.saved_tensors
        backward = getattr(ops.torchvision, name)
        return backward(grad, rois, positions, *ctx.numbers, *ctx.sizes), *(None,) * (1 + len(ctx.numbers))

    return gradient


def _keep_convolution(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:_CONVOLUTION_TENSORS])
    ctx.numbers = tuple(inputs[_CONVOLUTION_TENSORS:])


def _deform_conv2d(ctx: Any, grad: Any) -> tuple[Any, ...]:
    grads = ops.torchvision._deform_conv2d_backward(grad, *ctx.saved_tensors, *ctx.numbers)
    return *grads, *(None,) * len(ctx.numbers)


def _refuse(name: str) -> Any:
    def gradient(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(f"double backwards on {name} not supported")

    return gradient


def register() -> None:
    """Register the gradients. Those of the ``_*_backward`` operators raise, as in torchvision."""
    library.register_autograd("torchvision::roi_align", _roi_align, setup_context=_keep)
    for name in ("roi_pool", "ps_roi_align", "ps_roi_pool"):
        library.register_autograd(f"torchvision::{name}", _of_pooled(f"_{name}_backward"), setup_context=_keep)
    library.register_autograd("torchvision::deform_conv2d", _deform_conv2d, setup_context=_keep_convolution)
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"):
        library.register_autograd(f"torchvision::_{name}_backward", _refuse(name))
