"""Convolutions with other orders of dimensions."""

from __future__ import annotations

from candelabra.catalogue import OPERATORS

from ..registration import function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from candelabra._C import Tensor


@function(method=False)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve sequences of shape (time, batch, channels).

    Parameters
    ----------
    input : Tensor
        Of shape (time, batch, input channels).
    weight : Tensor
        Of shape (kernel size, input channels, output channels).
    bias : Tensor
        Of shape (output channels).
    pad : int
        The padding by zeros at both ends of the time dimension.

    Returns
    -------
    Tensor
        Of shape (time + 2 pad - kernel size + 1, batch, output channels).

    Raises
    ------
    RuntimeError
        If the shapes do not match.

    Examples
    --------
    >>> import candelabra
    >>> x, w = candelabra.ones(4, 1, 2), candelabra.ones(3, 2, 1)
    >>> candelabra.conv_tbc(x, w, candelabra.zeros(1)).flatten()
    tensor([6., 6.])
    """
    shapes = f"input has shape {list(input.shape)}, weight {list(weight.shape)}, bias {list(bias.shape)}"
    if input.ndim != 3:
        raise RuntimeError(f"conv_tbc(): Input must have 3 dims: time, batch, in_channel; {shapes}")
    if weight.ndim != 3:
        raise RuntimeError(
            f"conv_tbc(): Weight tensor must have 3 dims: kernel_width, in_channels, out_channels; {shapes}"
        )
    if bias.ndim != 1:
        raise RuntimeError(f"conv_tbc(): Bias must be 1-D; {shapes}")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError(f"conv_tbc(): Input dim 2 (input channels) is not == dim 1 in the weight tensor; {shapes}")
    if bias.shape[0] != weight.shape[2]:
        raise RuntimeError(f"conv_tbc(): Bias size must equal dim 2 in the weight tensor (output channels); {shapes}")
    made = OPERATORS["convolution"](input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, [1], [pad], [1], 1)
    return made.permute(2, 0, 1)
