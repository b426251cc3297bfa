"""Provide convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
from typing import Any

import candelabra
from candelabra import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


def to_tuple(value: Any, count: int) -> tuple[Any, ...]:
    """Repeat an int `count` times, or convert a sequence to a tuple."""
    return tuple(value) if not isinstance(value, int) else (value,) * count


class _Convolution(Module):
    """Share the constructor and checks of all convolutions."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        transposed: bool,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {sorted(modes)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = to_tuple(kernel_size, dims)
        self.stride = to_tuple(stride, dims)
        self.padding = padding if isinstance(padding, str) else to_tuple(padding, dims)
        self.dilation = to_tuple(dilation, dims)
        self.transposed = transposed
        self.output_padding = to_tuple(output_padding, dims)
        self.groups = groups
        self.padding_mode = padding_mode
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        # Argument of functional.pad: last dimension first, before and after.
        self._reversed_padding_repeated_twice: list[int] = []
        for axis in reversed(range(dims)):
            if padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                self._reversed_padding_repeated_twice += [total // 2, total - total // 2]
            else:
                before: Any = 0 if padding == "valid" else self.padding[axis]
                self._reversed_padding_repeated_twice += [before, before]
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(
            candelabra.empty((first, second // groups, *self.kernel_size), device=device, dtype=dtype)
        )
        self.register_parameter(
            "bias", Parameter(candelabra.empty(out_channels, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the weight and the bias."""
        # With a = sqrt(5), kaiming_uniform_ is uniform in +-1 / sqrt(fan_in), like the bias.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * len(self.kernel_size):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.kernel_size):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.kernel_size):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Conv(_Convolution):
    """Compute the cross-correlation over `_dims` dimensions."""

    _dims: int
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            self._dims, in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode, device, dtype
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with the given weight and bias.

        Subclasses that compute their weights call this method.
        """
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = (
                F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode),
                (0,) * self._dims,
            )
        return getattr(F, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class _Transposed(_Convolution):
    """Compute the transposed convolution over `_dims` dimensions.

    The call takes the output size as an optional argument.
    """

    _dims: int
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        if isinstance(padding, str):
            raise TypeError(f"padding of {type(self).__name__} must be a number or a tuple of numbers, not '{padding}'")
        super().__init__(
            self._dims, in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias, padding_mode,
            device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """Return the output padding for `output_size`, which is ambiguous if stride > 1."""
        if output_size is None:
            return self.output_padding
        dims = len(self.kernel_size)
        extra = input.ndim - dims
        output_size = list(output_size)
        if len(output_size) == extra + dims:
            output_size = output_size[extra:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.ndim}D input, output_size must have {dims} or {extra + dims} elements (got {len(output_size)})"
            )
        smallest = [
            (input.shape[extra + i] - 1) * self.stride[i]
            - 2 * self.padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(dims)
        ]
        largest = [size + self.stride[i] - 1 for i, size in enumerate(smallest)]
        if any(not low <= size <= high for low, size, high in zip(smallest, output_size, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {list(input.shape[extra:])})"
            )
        return tuple(size - low for low, size in zip(smallest, output_size, strict=True))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class Conv1d(_Conv):
    r"""Compute the cross-correlation over one spatial dimension.

    The weight has shape (out_channels, in_channels / groups, kernel_size). Weight and bias are
    initialized uniformly in :math:`\pm 1 / \sqrt{fan\_in}`.

    Shapes: input (N, C_in, L) or (C_in, L); output (N, C_out, L_out) with
    ``L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Conv1d(16, 33, 3, stride=2)(candelabra.randn(20, 16, 50)).shape
    candelabra.Size([20, 33, 24])
    """

    _dims = 1
    _function = "conv1d"


class Conv2d(_Conv):
    r"""Compute the cross-correlation over two spatial dimensions.

    Parameters
    ----------
    in_channels, out_channels
        Number of channels; both must be divisible by `groups`.
    kernel_size, stride, dilation
        One number or two (height, width).
    padding
        Elements added on both sides of each dimension. ``"valid"`` adds none, and ``"same"``
        preserves the size.
    groups
        Number of groups. The output channels of a group depend only on its input channels.
    bias
        Whether to add a bias.
    padding_mode
        ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Notes
    -----
    Shapes: input (N, C_in, H, W) or (C_in, H, W); output (N, C_out, H_out, W_out) with ``H_out = (H
    + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1``, and W_out likewise. The
    weight has shape (out_channels, in_channels / groups, kernel height, kernel width). Weight and
    bias are initialized uniformly in :math:`\pm 1 / \sqrt{fan\_in}`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Conv2d(3, 8, 3, padding="same")(candelabra.randn(2, 3, 28, 28)).shape
    candelabra.Size([2, 8, 28, 28])
    """

    _dims = 2
    _function = "conv2d"


class Conv3d(_Conv):
    r"""Compute the cross-correlation over three spatial dimensions; see `Conv2d`.

    Shapes: input (N, C_in, D, H, W) or (C_in, D, H, W), weight (out_channels, in_channels / groups,
    depth, height, width).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.Conv3d(2, 4, 3, stride=(2, 1, 1))(candelabra.randn(1, 2, 9, 8, 7)).shape
    candelabra.Size([1, 4, 4, 6, 5])
    """

    _dims = 3
    _function = "conv3d"


class ConvTranspose1d(_Transposed):
    """Compute the transposed convolution over one spatial dimension.

    This is the gradient of `Conv1d` with respect to its input.

    The weight has shape (in_channels, out_channels / groups, kernel_size).

    Shapes: input (N, C_in, L) or (C_in, L); output (N, C_out, L_out) with
    ``L_out = (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1``.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ConvTranspose1d(4, 2, 3, stride=2)(candelabra.randn(1, 4, 5)).shape
    candelabra.Size([1, 2, 11])
    """

    _dims = 1
    _function = "conv_transpose1d"


class ConvTranspose2d(_Transposed):
    """Compute the transposed convolution over two spatial dimensions.

    This is the gradient of `Conv2d` with respect to its input.

    The weight has shape (in_channels, out_channels / groups, kernel height, kernel width). A stride
    greater than 1 leaves the output size ambiguous: ``forward(input, output_size)`` selects it.

    Shapes: input (N, C_in, H, W) or (C_in, H, W); output (N, C_out, H_out, W_out) with ``H_out = (H
    - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1``, and W_out
    likewise.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ConvTranspose2d(16, 3, 4, stride=2, padding=1)(candelabra.randn(1, 16, 8, 8)).shape
    candelabra.Size([1, 3, 16, 16])
    """

    _dims = 2
    _function = "conv_transpose2d"


class ConvTranspose3d(_Transposed):
    """Compute the transposed convolution over three spatial dimensions.

    This is the gradient of `Conv3d` with respect to its input. See `ConvTranspose2d`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.ConvTranspose3d(4, 2, 3, stride=2)(candelabra.randn(1, 4, 3, 2, 2)).shape
    candelabra.Size([1, 2, 7, 5, 5])
    """

    _dims = 3
    _function = "conv_transpose3d"


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
