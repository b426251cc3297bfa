"""How a model is called with a batch, and what is made of what it returns."""

from __future__ import annotations

from typing import Any

import candelabra


def call_model(model: Any, inputs: Any) -> Any:
    """Call a model with inputs: the entries of a list or tuple are its arguments, those of a dict
    its keyword arguments.
    """
    if isinstance(inputs, dict):
        return model(**inputs)
    if isinstance(inputs, list | tuple):
        return model(*inputs)
    return model(inputs)


def inputs_of(batch: Any) -> Any:
    """The inputs of a batch that may have a target beside them."""
    return batch[0] if isinstance(batch, list | tuple) and len(batch) in (1, 2) else batch


def numbers_of(result: dict[str, Any]) -> dict[str, float]:
    """What is to be averaged of what a step returned."""
    return {
        name: float(value.detach().item() if isinstance(value, candelabra.Tensor) else value)
        for name, value in result.items()
        if name not in ("output", "target")
    }


def together(outputs: list[Any]) -> Any:
    """Outputs of batches as one output: tensors one behind the other, in whatever lists, tuples and
    dicts they are.
    """
    first = outputs[0]
    if isinstance(first, candelabra.Tensor):
        return candelabra.cat(outputs) if first.dim() else candelabra.stack(outputs)
    if isinstance(first, dict):
        return {key: together([output[key] for output in outputs]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(together(list(parts)) for parts in zip(*outputs, strict=True)))
    if isinstance(first, list | tuple):
        return type(first)(together(list(parts)) for parts in zip(*outputs, strict=True))
    return outputs
