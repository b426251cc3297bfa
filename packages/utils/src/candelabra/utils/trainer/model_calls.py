"""Calls of a model with a batch, and processing of the results."""

from __future__ import annotations

from typing import Any

import candelabra


def call_model(model: Any, inputs: Any) -> Any:
    """Call a model; lists and tuples are positional arguments, dicts are keyword arguments."""
    if isinstance(inputs, dict):
        return model(**inputs)
    if isinstance(inputs, list | tuple):
        return model(*inputs)
    return model(inputs)


def inputs_of(batch: Any) -> Any:
    """Return the inputs of a batch, which may also contain a target."""
    return batch[0] if isinstance(batch, list | tuple) and len(batch) in (1, 2) else batch


def numbers_of(result: dict[str, Any]) -> dict[str, float]:
    """Return the values of a step's result that are to be averaged."""
    return {
        name: float(value.detach().item() if isinstance(value, candelabra.Tensor) else value)
        for name, value in result.items()
        if name not in ("output", "target")
    }


def together(outputs: list[Any]) -> Any:
    """Concatenate the outputs of batches, within nested lists, tuples and dicts."""
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
