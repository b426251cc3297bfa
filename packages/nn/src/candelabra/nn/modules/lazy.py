"""Provide the mixin for modules that infer the shapes of their parameters."""

from __future__ import annotations

import itertools
from typing import Any

from candelabra import no_grad

from ..parameter import is_lazy
from .module import Module


class LazyModuleMixin(Module):
    """Infer the shapes of the parameters from the first input.

    A subclass lists the mixin before the module it becomes, as in ``class
    LazyLinear(LazyModuleMixin, Linear)``. Its `__init__` registers `UninitializedParameter` and
    `UninitializedBuffer` objects. The first call passes its arguments to
    ``initialize_parameters(*args, **kwargs)``, which materializes them. The object then changes its
    class to `cls_to_become`, unless that is None.

    A lazy module can load the state dict of an initialized one, which sets its shapes.

    Examples
    --------
    >>> import candelabra
    >>> from candelabra import nn
    >>> layer = nn.LazyLinear(3)
    >>> layer.weight
    <UninitializedParameter>
    >>> layer(candelabra.ones(2, 5)).shape
    candelabra.Size([2, 3])
    >>> layer
    Linear(in_features=5, out_features=3, bias=True)
    """

    #: The class of the object once its parameters have shapes.
    cls_to_become: type[Module] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        # Save uninitialized tensors themselves, so that loading can recognize them.
        kept = {name: buffer for name, buffer in self._buffers.items() if name not in self._non_persistent_buffers_set}
        for name, tensor in itertools.chain(self._parameters.items(), kept.items()):
            if tensor is not None:
                destination[prefix + name] = tensor if is_lazy(tensor) or keep_vars else tensor.detach()

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        for name, own in itertools.chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if own is not None and given is not None and is_lazy(own) and not is_lazy(given):
                with no_grad():
                    own.materialize(given.shape)  # type: ignore[attr-defined]

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize and initialize the parameters for the arguments of the first call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether any parameter or buffer is uninitialized."""
        return any(is_lazy(tensor) for tensor in itertools.chain(self._parameters.values(), self._buffers.values()))

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly initialize the "
            "modules"
        )


__all__ = ["LazyModuleMixin"]
