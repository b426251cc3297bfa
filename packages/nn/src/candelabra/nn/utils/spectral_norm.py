"""Implement spectral normalization with a hook before each call.

Prefer `parametrizations.spectral_norm`.
"""

from __future__ import annotations

from typing import Any

import candelabra
from candelabra import Tensor, no_grad

from .. import functional as F
from ..modules.convolution import _Transposed
from ..modules.module import Module
from ..parameter import Parameter, is_lazy


class SpectralNorm:
    """Divide the weight by its largest singular value in a hook."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix, with `dim` as rows and all other dimensions as columns."""
        moved = weight.movedim(self.dim, 0)
        return moved.reshape(moved.shape[0], -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight divided by its estimated norm.

        `do_power_iteration` updates the vectors of the estimate first.
        """
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
                # Clone, because the next call changes the vectors and backward may still need
                # these.
                u, v = u.clone(), v.clone()
        return weight / candelabra.dot(u, matrix.mv(v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for name in (self.name, f"{self.name}_u", f"{self.name}_v", f"{self.name}_orig"):
            delattr(module, name)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _right_vector(self, matrix: Tensor, u: Tensor, sigma: Tensor) -> Tensor:
        """Return v such that ``u = normalize(matrix v)`` and ``u^T matrix v = sigma``.

        The solution is by least squares.
        """
        v = candelabra.linalg.pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
        return v * (sigma / candelabra.dot(u, matrix.mv(v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Register the hook on the module."""
        for other in module._forward_pre_hooks.values():
            if isinstance(other, SpectralNorm) and other.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying "
                "spectral normalization"
            )
        with no_grad():
            rows, columns = hook.reshape_weight_to_matrix(weight).shape
            u = F.normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.detach())
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormStateDictHook:
    """Write the version to the metadata of a state dict."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.hook = hook

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        noted = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.hook.name}.version"
        if key in noted:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        noted[key] = self.hook._version


class SpectralNormLoadStateDictPreHook:
    """Compute the vector v for older state dicts that do not contain it."""

    def __init__(self, hook: SpectralNorm) -> None:
        self.hook = hook

    def __call__(self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool,
                 missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:  # fmt: skip
        hook = self.hook
        version = local_metadata.get("spectral_norm", {}).get(f"{hook.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + hook.name
        if (
            version is None
            and key not in state_dict
            and all(f"{key}_{part}" in state_dict for part in ("orig", "u", "v"))
        ):
            return  # the state dict has no metadata
        missing = [f"{key}{suffix}" for suffix in ("_orig", "", "_u") if f"{key}{suffix}" not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with no_grad():
            original, weight = state_dict[f"{key}_orig"], state_dict.pop(key)
            matrix = hook.reshape_weight_to_matrix(original)
            state_dict[f"{key}_v"] = hook._right_vector(matrix, state_dict[f"{key}_u"], (original / weight).mean())


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide a parameter by its largest singular value before each call.

    The parameter becomes ``weight_orig``, with the buffers ``weight_u`` and ``weight_v``. `dim`
    defaults to 1 for transposed convolutions and to 0 otherwise. Prefer the newer
    `parametrizations.spectral_norm`. Source: Miyato et al., 2018.

    Examples
    --------
    >>> from candelabra import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(20, 40))
    >>> layer.weight_u.shape
    candelabra.Size([40])
    """
    if dim is None:
        dim = 1 if isinstance(module, _Transposed) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`.

    Raises
    ------
    ValueError
        If the parameter has no spectral norm.
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, other in list(table.items()):
            if (
                isinstance(other, SpectralNormStateDictHook | SpectralNormLoadStateDictPreHook)
                and other.hook.name == name
            ):
                del table[number]
    return module


__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]
