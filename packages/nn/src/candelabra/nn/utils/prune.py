"""Implement pruning: masks that set elements of a parameter to zero."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import candelabra
from candelabra import Tensor

from ..modules.module import Module
from .convert_parameters import parameters_to_vector


class BasePruningMethod(ABC):
    """Serve as the base class of pruning methods.

    A subclass selects the elements in `compute_mask`.

    Pruning ``weight`` creates the parameter ``weight_orig`` and the buffer ``weight_mask``.
    ``weight`` is their product, recomputed before each call.
    """

    _tensor_name: str
    #: ``"unstructured"`` (single elements), ``"structured"`` (channels along `dim`) or ``"global"``
    #: (any elements).
    PRUNING_TYPE: str = "global"

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for `t`: `default_mask`, with further zeros for the pruned elements."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = getattr(module, f"{self._tensor_name}_mask"), getattr(module, f"{self._tensor_name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter, in addition to any earlier pruning.

        Parameters
        ----------
        importance_scores
            Tensor from which the mask is computed, instead of the parameter.
        """
        before = [hook for hook in module._forward_pre_hooks.values()
                  if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]  # fmt: skip
        if len(before) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name)
        if before:
            for number, hook in list(module._forward_pre_hooks.items()):
                if hook is before[0]:
                    del module._forward_pre_hooks[number]
            container = before[0] if isinstance(before[0], PruningContainer) else PruningContainer(before[0])
            container.add_pruning_method(method)
            method = container
        if importance_scores is not None:
            if importance_scores.shape != original.shape:
                raise AssertionError(
                    f"importance_scores should have the same shape as parameter {name} of {module}, got {importance_scores.shape} vs "
                    f"{original.shape}"
                )
        else:
            importance_scores = original
        if not before:
            # Compute the mask first: if this fails, the module is unchanged.
            mask = method.compute_mask(importance_scores.detach(), candelabra.ones_like(original.detach()))
            parameter = module._parameters[name]
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", parameter)
        else:
            mask = method.compute_mask(
                importance_scores.detach(), getattr(module, f"{name}_mask").to(dtype=original.dtype)
            )
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """Return a pruned copy of a tensor, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = candelabra.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned parameter an ordinary one and keep its zeros."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        assert original is not None
        original.data = weight.detach()
        del module._parameters[f"{name}_orig"]
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Apply several pruning methods to the same parameter in sequence.

    Each method sees only the elements that the earlier ones kept.
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a pruning method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Combine `default_mask` with the mask of the last method on the remaining elements."""
        method = self._pruning_methods[-1]
        where: Any
        if method.PRUNING_TYPE == "unstructured":
            where = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
                )
            dim = method.dim + t.ndim if method.dim < 0 else method.dim
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.ndim}")
            kept = default_mask.sum([other for other in range(t.ndim) if other != dim]) != 0
            where = tuple(kept if other == dim else slice(None) for other in range(t.ndim))
        elif method.PRUNING_TYPE == "global":
            where = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype).clone()
        mask[where] = method.compute_mask(t[where], default_mask=default_mask[where]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Add a mask of ones, which prunes nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return `default_mask`."""
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str) -> Any:  # type: ignore[override]
        """Add a mask of ones to a parameter."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """Share the handling of `amount`: a number or a fraction of elements or channels."""

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, int | float | numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1.0):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size: int) -> int:
        """Return how many of `size` units to prune."""
        if not isinstance(self.amount, numbers.Integral):
            return round(float(self.amount) * size)
        if int(self.amount) > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)


class RandomUnstructured(_Amount):
    """Prune elements at random: `amount` is a count, or a fraction if it is a float."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with additional zeros."""
        return _without_smallest(candelabra.rand_like(t), self._count(t.numel()), default_mask)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Amount):
    """Prune the elements with the smallest absolute values.

    `amount` is a count, or a fraction if it is a float.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with additional zeros."""
        return _without_smallest(t.abs(), self._count(t.numel()), default_mask)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _without_smallest(scores: Tensor, count: int, default_mask: Tensor) -> Tensor:
    mask = default_mask.clone().contiguous()
    if count:
        mask.view(-1).index_fill_(0, scores.reshape(-1).topk(count, largest=False).indices, 0)
    return mask


class _Structured(_Amount):
    """Share the pruning of channels along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    @abstractmethod
    def _scores(self, t: Tensor) -> Tensor:
        """Return one score per channel; the lowest scores are pruned."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with additional zero channels."""
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        kept = self._scores(t).topk(size - count, largest=True).indices
        mask = candelabra.zeros_like(t).index_fill_(self.dim, kept, 1)
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prune channels along `dim` at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return candelabra.rand(t.shape[self.dim], device=t.device)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, dim: int = -1) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prune the channels along `dim` with the smallest norms of order `n`."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        dim = self.dim % t.ndim
        others: Any = [other for other in range(t.ndim) if other != dim]
        return candelabra.norm(t, p=self.n, dim=others)

    @classmethod
    def apply(cls, module: Module, name: str, amount: Any, n: Any, dim: int,  # type: ignore[override]
              importance_scores: Tensor | None = None) -> Any:  # fmt: skip
        """Prune a parameter."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prune with a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of `default_mask` and the given mask."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor) -> Any:  # type: ignore[override]
        """Prune a parameter."""
        return super().apply(module, name, mask=mask)


def identity(module: Module, name: str) -> Module:
    """Add a mask of ones to a parameter, and return the module like all functions here."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune elements of a parameter at random.

    `amount` is a count, or a fraction if it is a float.

    Examples
    --------
    >>> from candelabra import nn
    >>> from candelabra.nn.utils import prune
    >>> layer = prune.random_unstructured(nn.Linear(2, 3), "weight", amount=1)
    >>> int((layer.weight_mask == 0).sum())
    1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Tensor | None = None) -> Module:
    """Prune the `amount` elements with the smallest absolute values.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> from candelabra.nn.utils import prune
    >>> layer = nn.Linear(3, 1, bias=False)
    >>> _ = layer.weight.data.copy_(candelabra.tensor([[1.0, -3.0, 2.0]]))
    >>> prune.l1_unstructured(layer, "weight", amount=2).weight.detach()
    tensor([[ 0., -3.,  0.]])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune `amount` channels along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the `amount` channels along `dim` with the smallest norms of order `n`."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune several parameters together, as if they were one tensor.

    Parameters
    ----------
    parameters
        Pairs of a module and a parameter name.
    pruning_method
        A class for unstructured pruning, constructed with `kwargs`.
    importance_scores
        For any of the pairs, a tensor from which the mask is computed, instead of the parameter.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    relevant = parameters_to_vector([scores.get((module, name), getattr(module, name)) for module, name in pairs])
    masks = parameters_to_vector(
        [getattr(module, f"{name}_mask", candelabra.ones_like(getattr(module, name))) for module, name in pairs]
    )
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    final = PruningContainer(method).compute_mask(relevant.detach(), masks.detach())
    for (module, name), mask in zip(pairs, final.split([getattr(m, n).numel() for m, n in pairs]), strict=True):
        custom_from_mask(module, name, mask=mask.view_as(getattr(module, name)))


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune with a given mask: its zeros are removed elements."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make a pruned parameter an ordinary one and keep its zeros.

    Raises
    ------
    ValueError
        If the parameter is not pruned.
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Return whether the module or any submodule is pruned."""
    return any(
        isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values()
    )


__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer", "RandomStructured",
    "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip
