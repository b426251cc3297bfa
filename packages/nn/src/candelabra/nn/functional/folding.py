"""Implement im2col and col2im."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor, ops


def _pair(value: Any, name: str) -> tuple[int, int]:
    numbers = (value, value) if isinstance(value, int) else tuple(value)
    if len(numbers) == 1:
        numbers = numbers * 2
    if len(numbers) != 2:
        raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(numbers)}")
    return numbers[0], numbers[1]


def _geometry(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[tuple[int, int], ...]:
    kernel, spread = _pair(kernel_size, "kernel_size"), _pair(dilation, "dilation")
    amounts, step = _pair(padding, "padding"), _pair(stride, "stride")
    for name, numbers, minimum in (
        ("kernel", kernel, 1),
        ("dilation", spread, 1),
        ("padding", amounts, 0),
        ("stride", step, 1),
    ):
        if min(numbers) < minimum:
            word = "greater than zero" if minimum else "non-negative"
            raise RuntimeError(
                f"{name} should be {word}, but got {name}_height: {numbers[0]} {name}_width: {numbers[1]}"
            )
    return kernel, spread, amounts, step


def _blocks(size: tuple[int, int], kernel: Any, spread: Any, amounts: Any, step: Any) -> tuple[int, int]:
    made = [(size[i] + 2 * amounts[i] - spread[i] * (kernel[i] - 1) - 1) // step[i] + 1 for i in range(2)]
    return made[0], made[1]


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return sliding windows of an image as columns (im2col).

    Shapes: input (N, C, H, W) or (C, H, W), result (N, C * KH * KW, L) with L windows.

    Raises
    ------
    RuntimeError
        If there is no window, or an argument is out of range.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.unfold(candelabra.arange(4.0).reshape(1, 2, 2), (1, 2))
    tensor([[0., 2.],
            [1., 3.]])
    """
    kernel, spread, amounts, step = _geometry(kernel_size, dilation, padding, stride)
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {list(input.shape)}"
        )
    blocks = _blocks((input.shape[-2], input.shape[-1]), kernel, spread, amounts, step)
    if min(blocks) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(input.shape[-2:])}, kernel_size={kernel}, dilation={spread}, padding={amounts}, calculated "
            f"shape of the array of sliding blocks as {blocks}, but its components must be at least one."
        )
    x = input if input.ndim == 4 else input.unsqueeze(0)
    columns = ops.im2col(x, kernel, spread, amounts, step)
    return columns if input.ndim == 4 else columns.squeeze(0)


def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Sum columns into an image (col2im): the adjoint of :func:`unfold`.

    Shapes: input (N, C * KH * KW, L) or (C * KH * KW, L), result (N, C, H, W) with H and W the
    `output_size`.

    Raises
    ------
    RuntimeError
        If the number of columns or of their elements is inconsistent with the other arguments.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra.nn import functional as F
    >>> F.fold(candelabra.ones(4, 4), (3, 3), 2)[0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """
    kernel, spread, amounts, step = _geometry(kernel_size, dilation, padding, stride)
    size = _pair(output_size, "output_size")
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {list(input.shape)}"
        )
    x = input if input.ndim == 3 else input.unsqueeze(0)
    area = kernel[0] * kernel[1]
    if x.shape[1] % area:
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={x.shape[1]} and "
            f"kernel_size={kernel}."
        )
    blocks = _blocks(size, kernel, spread, amounts, step)
    if min(blocks) < 1 or x.shape[2] != blocks[0] * blocks[1]:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={spread}, padding={amounts}, stride={step}, expected size of "
            f"input's dimension 2 to match the calculated number of sliding blocks {blocks[0]} * {blocks[1]} = {blocks[0] * blocks[1]}, "
            f"but got input.size(2)={x.shape[2]}."
        )
    output = ops.col2im(x, size, kernel, spread, amounts, step)
    return output if input.ndim == 3 else output.squeeze(0)


pixel_shuffle = ops.pixel_shuffle
pixel_unshuffle = ops.pixel_unshuffle
channel_shuffle = ops.channel_shuffle
native_channel_shuffle = channel_shuffle

__all__ = ["channel_shuffle", "fold", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "unfold"]
