"""The names of parameters without the modules that wrap others."""

from __future__ import annotations

from typing import Any

#: The attribute by which a compiled module has the original.
_COMPILED = "_orig_mod"


def plain_name(model: Any, name: str) -> str:
    """Return a name of a model's state without the parts of `DistributedDataParallel` and of
    compiled modules.
    """
    from ...data_parallel import DistributedDataParallel

    kept = []
    module = model
    for part in name.split("."):
        is_wrapper = part == _COMPILED or (isinstance(module, DistributedDataParallel) and part == "module")
        if not is_wrapper:
            kept.append(part)
        module = getattr(module, part, None)
    return ".".join(kept)


def parameter_names(model: Any) -> dict[int, list[str]]:
    """Return the plain names of each parameter, by its id; shared ones have several."""
    found: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(parameter), []).append(plain_name(model, name))
    return found
