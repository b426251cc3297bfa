"""Provide pooling layers in one, two and three dimensions."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor

from .. import functional as F
from .module import Module


class _MaxPool(Module):
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Return the maximum of each window. Shapes: (N, C, L) or (C, L).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.MaxPool1d(2)(candelabra.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[3., 2.]]])
    """

    _function = "max_pool1d"


class MaxPool2d(_MaxPool):
    """Return the maximum of each window. Shapes: (N, C, H, W) or (C, H, W).

    With `return_indices`, also return the index of each maximum.

    Padding counts as minus infinity and is at most half the kernel size. `stride` defaults to the
    kernel size. With `ceil_mode` a window may extend past the end.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.MaxPool2d(3, stride=2, padding=1)(candelabra.randn(2, 3, 9, 9)).shape
    candelabra.Size([2, 3, 5, 5])
    """

    _function = "max_pool2d"


class MaxPool3d(_MaxPool):
    """Return the maximum of each window; see `MaxPool2d`.

    Shapes: (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.MaxPool3d(3, stride=2)(candelabra.randn(2, 3, 9, 7, 5)).shape
    candelabra.Size([2, 3, 4, 3, 2])
    """

    _function = "max_pool3d"


class AvgPool1d(Module):
    """Return the mean of each window. Shapes: (N, C, L) or (C, L).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.AvgPool1d(2)(candelabra.tensor([[[1.0, 3.0, 2.0, 0.0]]]))
    tensor([[[2., 1.]]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
        stride = kernel_size if stride is None else stride
        self.stride = (stride,) if isinstance(stride, int) else tuple(stride)
        self.padding = (padding,) if isinstance(padding, int) else tuple(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override
        )  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """Return the mean of each window. Shapes: (N, C, H, W) or (C, H, W).

    Padding counts as zeros. `count_include_pad` includes it in the divisor, and `divisor_override`
    replaces the divisor.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.AvgPool2d(2)(candelabra.ones(1, 1, 4, 6)).shape
    candelabra.Size([1, 1, 2, 3])
    """

    _function = "avg_pool2d"


class AvgPool3d(_AvgPool):
    """Return the mean of each window; see `AvgPool2d`.

    Shapes: (N, C, D, H, W) or (C, D, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.AvgPool3d(2)(candelabra.ones(1, 1, 4, 6, 2)).shape
    candelabra.Size([1, 1, 2, 3, 1])
    """

    _function = "avg_pool3d"


class _LPPool(Module):
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool):
    """Return the p-norm of each window, p = `norm_type`. Shapes: (N, C, L) or (C, L)."""

    _function = "lp_pool1d"


class LPPool2d(_LPPool):
    """Return the p-norm of each window, p = `norm_type`. Shapes: (N, C, H, W) or (C, H, W).

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.LPPool2d(2, 2)(candelabra.ones(1, 1, 2, 2))
    tensor([[[[2.]]]])
    """

    _function = "lp_pool2d"


class LPPool3d(_LPPool):
    """Return the p-norm of each window, p = `norm_type`.

    Shapes: (N, C, D, H, W) or (C, D, H, W).
    """

    _function = "lp_pool3d"


class _AdaptiveAvgPool(Module):
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Return the means of `output_size` windows that cover the input.

    Shapes: (N, C, L) or (C, L).
    """

    _function = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Return the means of windows that cover the input, one per output element.

    Shapes: (N, C, H, W) or (C, H, W). None keeps the input size.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.AdaptiveAvgPool2d((5, None))(candelabra.randn(1, 64, 8, 9)).shape
    candelabra.Size([1, 64, 5, 9])
    """

    _function = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Return the means of windows that cover the input, one per output element.

    Shapes: (N, C, D, H, W) or (C, D, H, W). None keeps the input size.
    """

    _function = "adaptive_avg_pool3d"


class _AdaptiveMaxPool(Module):
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Return the maxima of `output_size` windows that cover the input.

    Shapes: (N, C, L) or (C, L).
    """

    _function = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Return the maxima of windows that cover the input, one per output element.

    Shapes: (N, C, H, W) or (C, H, W). None keeps the input size.
    """

    _function = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Return the maxima of windows that cover the input, one per output element.

    Shapes: (N, C, D, H, W) or (C, D, H, W). None keeps the input size.
    """

    _function = "adaptive_max_pool3d"


class _FractionalMaxPool(Module):
    _dims: int
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError(f"only one of output_size and output_ratio may be specified in {name}")
        kernel = (kernel_size,) * self._dims if isinstance(kernel_size, int) else tuple(kernel_size)
        if any(not isinstance(size, int) or size <= 0 for size in kernel):
            raise ValueError(f"kernel_size must be an integer greater than zero, but got {kernel_size}")
        self.kernel_size = kernel
        self.output_size = (output_size,) * self._dims if isinstance(output_size, int) else output_size
        self.output_ratio = (output_ratio,) * self._dims if isinstance(output_ratio, int | float) else output_ratio
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._function)(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Return the maxima of randomly placed windows.

    The number of windows is `output_size`, or `output_ratio` times the input size.

    Shapes: (N, C, H, W) or (C, H, W). Source: Graham, Fractional Max-Pooling, 2014.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.FractionalMaxPool2d(3, output_ratio=(0.5, 0.25))(candelabra.randn(1, 2, 12, 12)).shape
    candelabra.Size([1, 2, 6, 3])
    """

    _dims = 2
    _function = "fractional_max_pool2d"


class FractionalMaxPool3d(_FractionalMaxPool):
    """Return the maxima of randomly placed windows; see `FractionalMaxPool2d`.

    Shapes: (N, C, D, H, W) or (C, D, H, W).
    """

    _dims = 3
    _function = "fractional_max_pool3d"


class _MaxUnpool(Module):
    _dims: int
    #: The function of nn.functional, which a program may replace.
    _function: str

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()

        def numbers(value: Any) -> tuple[int, ...]:
            return (value,) * self._dims if isinstance(value, int) else tuple(value)

        self.kernel_size = numbers(kernel_size)
        self.stride = numbers(stride if stride is not None else kernel_size)
        self.padding = numbers(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return getattr(F, self._function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Write the maxima of `MaxPool1d` back to their indices and fill the rest with zeros.

    `output_size` selects among the input sizes that pool to the same output size.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> values, places = nn.MaxPool1d(2, return_indices=True)(candelabra.tensor([[1.0, 3.0, 2.0, 0.0]]))
    >>> nn.MaxUnpool1d(2)(values, places)
    tensor([[0., 3., 2., 0.]])
    """

    _dims = 1
    _function = "max_unpool1d"


class MaxUnpool2d(_MaxUnpool):
    """Write the maxima of `MaxPool2d` back to their indices; see `MaxUnpool1d`."""

    _dims = 2
    _function = "max_unpool2d"


class MaxUnpool3d(_MaxUnpool):
    """Write the maxima of `MaxPool3d` back to their indices; see `MaxUnpool1d`."""

    _dims = 3
    _function = "max_unpool3d"


__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]
