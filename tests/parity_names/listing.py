"""Write the public names of the installed PyTorch as JSON: ``python listing.py FILE``.

A name is public by PyTorch's own rule (its test_public_bindings): no part of its path begins with
an underscore, and it is in the module's ``__all__``; or, where there is none, it was defined in
that module, or is a submodule. Of the modules of `torch.distributed` in scope, names that come from
others count, too, since their documentation has them there.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import warnings
from types import ModuleType
from typing import Any, TypeVar

import torch
from scope import DISTRIBUTED

#: Classes whose members are listed too: what programs call most.
CLASSES = (
    "torch.Tensor", "torch.Generator", "torch.Size", "torch.device", "torch.dtype", "torch.finfo", "torch.iinfo",
    "torch.UntypedStorage", "torch.TypedStorage", "torch.nn.Module", "torch.nn.Parameter", "torch.nn.Sequential", "torch.nn.ModuleList",
    "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict", "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler", "torch.autograd.function.FunctionCtx", "torch.autograd.graph.Node", "torch.utils.data.DataLoader",
    "torch.utils.data.Dataset", "torch.distributions.Distribution", "torch.distributions.Transform", "torch.library.Library",
    "torch.profiler.profile", "torch.amp.GradScaler", "torch.nn.parallel.DistributedDataParallel", "torch.distributed.Store",
    "torch.distributed.TCPStore", "torch.distributed.FileStore", "torch.distributed.HashStore", "torch.distributed.PrefixStore",
    "torch.distributed.Work", "torch.distributed.DeviceMesh", "torch.distributed.GradBucket", "torch.distributed.fsdp.FSDPModule",
    "torch.distributed.optim.ZeroRedundancyOptimizer", "torch.distributed.algorithms.join.Join",
    "torch.distributed.algorithms.join.Joinable", "torch.distributed.algorithms.join.JoinHook", "torch.distributed.tensor.DTensor",
)  # fmt: skip
#: Where the names are from that modules of `torch.distributed` have without an ``__all__``.
REEXPORTED = ("torch.distributed", "torch._C._distributed_c10d")
#: Modules that run a program when they are imported.
PROGRAMS = ("__main__", "torch.utils.bottleneck", "torch.distributed.launch", "torch.distributed.run")


def modules() -> dict[str, ModuleType]:
    """Return the public modules that can be imported, by name."""
    found = {"torch": torch}
    walk = pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None)
    for info in walk:
        if any(part.startswith("_") for part in info.name.split(".")) or info.name.startswith(PROGRAMS):
            continue
        try:
            found[info.name] = importlib.import_module(info.name)
        except Exception as error:
            # Modules for hardware or packages that are not there.
            print(f"{info.name}: {type(error).__name__}: {error}", file=sys.stderr)
    return found


def is_public(module: ModuleType, name: str, value: Any, known: dict[str, ModuleType]) -> bool:
    """Return whether a name of a module without ``__all__`` is public."""
    if isinstance(value, ModuleType):
        return f"{module.__name__}.{name}" in known
    where = getattr(value, "__module__", None)
    if module.__name__ in DISTRIBUTED and isinstance(where, str) and where.startswith(REEXPORTED):
        return True
    if not callable(value):
        return isinstance(value, torch.dtype | torch.layout | torch.memory_format)
    if not isinstance(where, str) or where.startswith("torch._C"):
        return inspect.isbuiltin(value)
    return where == module.__name__ or where.startswith(f"{module.__name__}._")


def names_of(module: ModuleType, known: dict[str, ModuleType]) -> list[str]:
    """Return the public names of a module."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return sorted({name for name in declared if not name.startswith("_") and hasattr(module, name)})
    return sorted(
        name
        for name in dir(module)
        if not name.startswith("_") and is_public(module, name, getattr(module, name, None), known)
    )


def parameters_of(call: Any) -> list[str] | None:
    """Return the public names of the parameters of a function or class; None for one that has no
    signature.
    """
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return None
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.kind not in variable and not each.name.startswith("_")]


def signatures(known: dict[str, ModuleType], listed: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the parameters of what is in the modules whose signatures are compared, and of the
    methods of their classes in `CLASSES`.
    """
    found = {}
    for module in sorted(DISTRIBUTED & set(known)):
        for name in listed[module]:
            value = getattr(known[module], name)
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            parameters = None if is_error or not callable(value) else parameters_of(value)
            if parameters is not None:
                found[f"{module}.{name}"] = parameters
    for path in CLASSES:
        module, _, name = path.rpartition(".")
        if module in DISTRIBUTED:
            for member, value in vars(getattr(known[module], name)).items():
                parameters = None if member.startswith("_") or not callable(value) else parameters_of(value)
                if parameters is not None:
                    found[f"{path}.{member}"] = parameters
    return found


def main() -> None:
    """Write the list."""
    warnings.simplefilter("ignore")
    known = modules()
    listed = {name: names_of(module, known) for name, module in sorted(known.items())}
    classes = {}
    for path in CLASSES:
        module, _, name = path.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        classes[path] = sorted(
            member
            for member in dir(found)
            if not member.startswith("_") and not isinstance(getattr(found, member), TypeVar)
        )
    with open(sys.argv[1], "w") as file:
        found = {"modules": listed, "classes": classes, "signatures": signatures(known, listed)}
        json.dump({"version": torch.__version__, **found}, file, indent=1)


if __name__ == "__main__":
    main()
