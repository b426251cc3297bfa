"""Implement weight normalization with a hook before each call.

Prefer `parametrizations.weight_norm`.
"""

from __future__ import annotations

from typing import Any

from candelabra import _C, Tensor

from .. import functional as F
from ..modules.module import Module
from ..parameter import Parameter, is_lazy


class WeightNorm:
    """Compute the weight from norm and direction in a hook."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return norm times direction."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / F.native.norm_except_dim(v, 2, self.dim))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Register the hook on the module."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying "
                "weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(F.native.norm_except_dim(weight, 2, hook.dim).detach()))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        for part in ("g", "v"):
            delattr(module, f"{self.name}_{part}")
        setattr(module, self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a parameter by its norms, ``weight_g``, and its direction, ``weight_v``.

    Deprecated as in PyTorch: use `parametrizations.weight_norm`.

    Examples
    --------
    >>> import warnings
    >>> from candelabra import nn
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     layer = nn.utils.weight_norm(nn.Linear(20, 40))
    >>> layer.weight_g.shape, layer.weight_v.shape
    (candelabra.Size([40, 1]), candelabra.Size([40, 20]))
    """
    _C.warn(
        "`nn.utils.weight_norm` is deprecated in favor of `nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`.

    Raises
    ------
    ValueError
        If the parameter has no weight norm.
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]
