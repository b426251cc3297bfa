"""Provide batch, layer, group, instance and local response normalization."""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import _C, Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


class _RunningNorm(Module):
    """Share scale, shift and running statistics per channel.

    Batch and instance normalization derive from this class.
    """

    _version = 2
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(candelabra.empty(num_features, **options)) if affine else None)
        self.register_parameter(
            "bias", Parameter(candelabra.empty(num_features, **options)) if affine and bias else None
        )
        tracked = track_running_stats
        self.register_buffer("running_mean", candelabra.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", candelabra.ones(num_features, **options) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", candelabra.tensor(0, dtype=candelabra.int64, device=device) if tracked else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics: mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()  # type: ignore[union-attr]
            self.running_var.fill_(1)  # type: ignore[union-attr]
            self.num_batches_tracked.zero_()  # type: ignore[union-attr]

    def reset_parameters(self) -> None:
        """Reset the running statistics, the scale (to 1) and the shift (to 0)."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say which inputs it takes")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            # Version 1 did not store num_batches_tracked.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_RunningNorm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the cumulative average over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Apply batch normalization to (N, C) or (N, C, L) inputs; see `BatchNorm2d`.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.BatchNorm1d(100)(candelabra.randn(20, 100)).shape
    candelabra.Size([20, 100])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 2 and input.ndim != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.ndim}D input)")


class BatchNorm2d(_BatchNorm):
    r"""Apply batch normalization to (N, C, H, W) inputs.

    Each channel is normalized to mean 0 and variance 1, then scaled and shifted.

    :math:`y = (x - E[x]) / \sqrt{Var[x] + eps} \cdot weight + bias`. Training uses the statistics
    of the batch, evaluation the running statistics. Source: Ioffe and Szegedy, 2015.

    Parameters
    ----------
    num_features
        C.
    eps
        Added to the variance.
    momentum
        Weight of a new batch in the running statistics. None selects the cumulative average over
        all batches.
    affine
        Whether to apply a scale and a shift.
    track_running_stats
        Whether to keep running statistics. Without them the batch statistics are always used.
    bias
        Whether to apply the shift.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.BatchNorm2d(3)
    >>> layer(candelabra.randn(4, 3, 5, 5)).shape, int(layer.num_batches_tracked)
    (candelabra.Size([4, 3, 5, 5]), 1)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 4:
            raise ValueError(f"expected 4D input (got {input.ndim}D input)")


class BatchNorm3d(_BatchNorm):
    """Apply batch normalization to (N, C, D, H, W) inputs; see `BatchNorm2d`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim != 5:
            raise ValueError(f"expected 5D input (got {input.ndim}D input)")


class SyncBatchNorm(_BatchNorm):
    """Apply batch normalization with statistics over the batches of all processes.

    Inputs have two or more dimensions.

    Candelabra runs one process, so the statistics are those of the local batch, as in PyTorch
    without a process group.

    Examples
    --------
    >>> from candelabra import nn
    >>> nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3)))
    Sequential(
      (0): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True,
      track_running_stats=True)
    )
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2:
            raise ValueError(f"expected at least 2D input (got {input.ndim}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return `module` with each batch normalization replaced by a `SyncBatchNorm`.

        The new layers share the tensors of the old ones.
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group,
                bias=module.bias is not None,
            )  # fmt: skip
            for table in ("_parameters", "_buffers"):
                for name, tensor in getattr(module, table).items():
                    getattr(result, table)[name] = tensor
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_RunningNorm):
    _dims = 0

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        """Return how many dimensions an input without a batch has."""
        return self._dims + 1

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.ndim}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channel = input.ndim - self._dims - 1
        if input.shape[channel] != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel} to match num_features ({self.num_features}), but got: {input.shape[channel]}."
                )
            _C.warn(
                f"input's size at dim={channel} does not match num_features. You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
            )
        batched = input if channel == 1 else input.unsqueeze(0)
        output = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return output if channel == 1 else output.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sample. Shapes: (N, C, L) or (C, L)."""

    _dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each sample. Shapes: (N, C, H, W) or (C, H, W).

    Source: Ulyanov, Vedaldi and Lempitsky, 2016.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.InstanceNorm2d(3, affine=True)(candelabra.randn(2, 3, 5, 5)).shape
    candelabra.Size([2, 3, 5, 5])
    """

    _dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each sample. Shapes: (N, C, D, H, W) or (C, D, H, W)."""

    _dims = 3


class LayerNorm(Module):
    """Normalize over the last dimensions, `normalized_shape`, then scale and shift.

    Scale and shift have the shape `normalized_shape`.

    Source: Ba, Kiros and Hinton, 2016.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.LayerNorm(10)(candelabra.randn(20, 5, 10)).shape
    candelabra.Size([20, 5, 10])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter(
            "weight", Parameter(candelabra.empty(shape, device=device, dtype=dtype)) if elementwise_affine else None
        )
        self.register_parameter(
            "bias",
            Parameter(candelabra.empty(shape, device=device, dtype=dtype)) if elementwise_affine and bias else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to 1 and the shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    r"""Divide by the root mean square over the last dimensions and scale.

    :math:`x / \sqrt{mean(x^2) + eps} \cdot weight`.

    `eps` defaults to the machine epsilon of the dtype. Source: Zhang and Sennrich, 2019.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.RMSNorm(10)(candelabra.randn(20, 10)).shape
    candelabra.Size([20, 10])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter(
            "weight",
            Parameter(candelabra.empty(self.normalized_shape, device=device, dtype=dtype))
            if elementwise_affine
            else None,
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalize groups of channels of each sample, then scale and shift each channel.

    Shapes: (N, C, ...), with C divisible by `num_groups`. Source: Wu and He, 2018.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> nn.GroupNorm(3, 6)(candelabra.randn(20, 6, 10, 10)).shape
    candelabra.Size([20, 6, 10, 10])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter(
            "weight", Parameter(candelabra.empty(num_channels, device=device, dtype=dtype)) if affine else None
        )
        self.register_parameter(
            "bias", Parameter(candelabra.empty(num_channels, device=device, dtype=dtype)) if affine and bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to 1 and the shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """Divide by a power of the mean square over `size` neighbouring channels.

    Shapes: (N, C, ...).

    Source: Krizhevsky, Sutskever and Hinton, 2012.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Apply `LocalResponseNorm` to (N, C, H, W) inputs, also dividing edge windows by `size`.

    This is an older form. The window extends ``(size - 1) // 2`` channels to both sides. PyTorch's
    running sum never drops the first channel, so its later windows include it; Candelabra's do not.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        # The window has 2 * reach + 1 channels, but the sum is divided by size.
        reach = (self.size - 1) // 2
        squares = F.pad(input.square().unsqueeze(1), (0, 0, 0, 0, reach, reach))
        sums = F.avg_pool3d(squares, (2 * reach + 1, 1, 1), stride=1).squeeze(1) * ((2 * reach + 1) / self.size)
        return input * (sums * self.alpha + self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "CrossMapLRN2d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
    "SyncBatchNorm",
]
