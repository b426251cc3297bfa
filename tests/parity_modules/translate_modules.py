"""Translate PyTorch modules to Candelabra modules, with all their attributes."""

from __future__ import annotations

from typing import Any

import torch
from translate import NotTranslatable, Translator, dtype_of

import candelabra
from candelabra import nn


class ModuleTranslator(Translator):
    """Also translates modules and packed sequences."""

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            sizes = candelabra.tensor(value.batch_sizes.tolist(), device="cpu")  # on every device
            data, _, *order = (self(item) for item in value)
            return nn.utils.rnn.PackedSequence(data, sizes, *order)
        if isinstance(value, torch.nn.parameter.UninitializedTensorMixin):
            return uninitialized(value)
        if isinstance(value, torch.nn.Module):
            return self.module(value)
        return super().__call__(value)

    def module(self, module: torch.nn.Module) -> Any:
        """Return a module of the class of the same name with the same attributes, parameters,
        buffers and submodules.
        """
        ours = own_class(type(module))
        made = ours.__new__(ours)
        nn.Module.__init__(made)
        for name, value in vars(module).items():
            if not name.startswith("_") and name != "training":
                setattr(made, name, self(value))
        made.training = module.training
        for name, parameter in module._parameters.items():
            made.register_parameter(name, None if parameter is None else self.parameter(parameter))
        for name, buffer in module._buffers.items():
            made.register_buffer(
                name,
                None if buffer is None else self(buffer),
                persistent=name not in module._non_persistent_buffers_set,
            )
        for name, child in module._modules.items():
            made.add_module(name, None if child is None else self.module(child))
        for name in ("_qkv_same_embed_dim", "_all_weights", "_flat_weights_names", "_reversed_padding_repeated_twice"):
            if name in vars(module):
                setattr(made, name, vars(module)[name])
        return made

    def parameter(self, parameter: torch.nn.Parameter) -> Any:
        """Return a parameter with the same values."""
        return nn.Parameter(self.tensor(parameter), requires_grad=parameter.requires_grad)


def own_class(theirs: type) -> Any:
    """Return Candelabra's class of the same name."""
    ours = getattr(nn, theirs.__name__, None)
    if ours is None:
        ours = getattr(nn.modules.multihead_attention, theirs.__name__, None)
    if ours is None:
        raise NotTranslatable(f"there is no candelabra.nn.{theirs.__name__}")
    return ours


def uninitialized(value: Any) -> Any:
    """Return a parameter or buffer without a shape."""
    kind = getattr(nn, type(value).__name__)
    return kind(value.requires_grad, dtype=dtype_of(value.dtype))
