"""PyTorch's names without a Candelabra module of the same name, and where their meaning is.

`FILES` has stand-ins, one file per PyTorch module: unavailable features report that they are
unavailable, settings without a meaning here do nothing, and unsupported calls raise. The other
tables name modules and objects of Candelabra that PyTorch has elsewhere.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import refusing
from .elsewhere import COUNTERPARTS, NAMES_ELSEWHERE

__all__ = ["FILES", "counterpart", "names", "submodules"]

#: Stand-in files by PyTorch module, without the prefix ``torch.``. The ``__all__`` of a file lists
#: the added names.
FILES = {
    "": "package",
    "_C": "bindings",
    "_C._autograd": "internals.autograd_names",
    "_C._functions": "internals.engine_functions",
    "_C._functorch": "internals.functorch",
    "_C._profiler": "internals.traceback_names",
    "__config__": "configuration",
    "__future__": "settings.future_behavior",
    "_custom_ops": "operators.custom_ops",
    "_dynamo": "compilers.dynamo",
    "_dynamo._trace_wrapped_higher_order_op": "internals.dynamo",
    "_dynamo.eval_frame": "compilers.dynamo",
    "_dynamo.exc": "internals.dynamo",
    "_dynamo.utils": "internals.dynamo",
    "_export.wrappers": "internals.export_wrappers",
    "_functorch.vmap": "internals.functorch",
    "_higher_order_ops.cond": "internals.conditional",
    "_vmap_internals": "internals.vmap_names",
    "_guards": "internals.guards",
    "_logging": "internals.warning_filters",
    "_logging._internal": "internals.warning_filters",
    "_prims_common": "internals.prims_common",
    "_refs": "internals.references",
    "_subclasses.fake_tensor": "internals.fake_names",
    "_tensor_str": "internals.tensor_text",
    "_utils": "internals.common",
    "_utils_internal": "internals.paths",
    "amp.autocast_mode": "autocasting",
    "ao": "ao.package",
    "ao.quantization": "ao.quantization",
    "backends": "backends.package",
    "backends.cpu": "backends.cpu",
    "backends.mha": "backends.mha",
    "backends.mkl": "backends.library",
    "backends.mkldnn": "backends.library",
    "backends.mps": "backends.absent",
    "backends.openmp": "backends.library",
    "backends.opt_einsum": "backends.opt_einsum",
    "compiler": "compilers.compiler",
    "cpu.amp": "settings.cpu_amp",
    "cpu.amp.autocast_mode": "settings.cpu_amp",
    "cpu.amp.grad_scaler": "settings.cpu_amp",
    "cuda": "cuda",
    "cuda.amp.common": "autocasting",
    "cuda.nccl": "nccl",
    "distributed": "distributed",
    "distributed._tensor": "internals.placements",
    "distributed.tensor": "internals.placements",
    "distributed.tensor.placement_types": "internals.placements",
    "distributions.utils": "distribution_utils",
    "export": "compilers.export",
    "futures": "futures",
    "fx.experimental.proxy_tensor": "internals.guards",
    "hub": "internals.hub_names",
    "fx._compatibility": "graphs.compatibility",
    "fx.graph": "graphs.graph",
    "fx.graph_module": "graphs.graph_module",
    "fx.node": "graphs.node",
    "jit": "compilers.jit",
    "jit.annotations": "internals.jit_annotations",
    "library": "operators.library_names",
    "mps": "absent_device",
    "multiprocessing.reductions": "internals.storage_references",
    "nested": "nested.package",
    "nested._internal.nested_tensor": "nested.names",
    "nn": "nn.package",
    "nn.attention": "nn.attention",
    "nn.common_types": "nn.common_types",
    "nn.modules.module": "nn.module_names",
    "nn.modules.utils": "nn.tuples",
    "nn.parameter": "nn.parameter_names",
    "onnx": "compilers.onnx",
    "optim.optimizer": "optimizer_names",
    "onnx.symbolic_helper": "internals.onnx_symbolic",
    "overrides": "overriding",
    "profiler": "operators.profiler_names",
    "profiler.profiler": "operators.profiler_names",
    "random": "random",
    "return_types": "return_types",
    "serialization": "files",
    "storage": "storage",
    "testing": "testing",
    "torch_version": "version",
    "types": "types",
    "utils._contextlib": "internals.contextlib_names",
    "utils._cxx_pytree": "optree",
    "utils._device": "internals.device_context",
    "utils._dtype_abbrs": "internals.dtype_texts",
    "utils._foreach_utils": "internals.foreach_names",
    "utils._pytree": "pytree",
    "utils._traceback": "internals.tracebacks",
    "utils.bundled_inputs": "bundled_inputs",
    "utils.data._utils": "data.utils",
    "utils.data._utils.collate": "data.collate",
    "utils.data._utils.fetch": "data.fetch",
    "utils.data._utils.pin_memory": "data.pinning",
    "utils.data._utils.signal_handling": "data.signal_handling",
    "utils.data._utils.worker": "data.worker",
    "utils.data.dataloader": "data.dataloader",
    "utils.deterministic": "settings.deterministic",
    "utils._python_dispatch": "operators.dispatch_modes",
    "utils.model_zoo": "internals.hub_names",
    "utils.serialization": "settings.serialization_package",
    "utils.serialization.config": "settings.serialization_config",
    "version": "version",
    "xpu": "absent_device",
}
_PARENTS = {name.rpartition(".")[0] for name in refusing.MODULES} - {"", "nn"}
#: Modules without names, which libraries import and ask later.
_EMPTY = {"_export", "_functorch", "_higher_order_ops", "nested._internal", "onnx.symbolic_opset11"}
#: The modules of PyTorch that have names which Candelabra's modules of the same names lack.
_KNOWN = {*FILES, *NAMES_ELSEWHERE, *refusing.MODULES, *_PARENTS, *_EMPTY}
#: Modules whose import raises.
_REFUSED = {"utils._cxx_pytree"}


def names(module: str) -> dict[str, Any] | None:
    """Return the names that are added to a PyTorch module, or None."""
    if module not in _KNOWN:
        return None
    added: dict[str, Any] = refusing.names_of(module)
    for place, elsewhere in NAMES_ELSEWHERE.get(module, {}).items():
        found = importlib.import_module(f"candelabra.{place}" if place else "candelabra")
        for name in elsewhere.split():
            name, _, here = name.partition("=")
            added[name] = getattr(found, here or name)
    if module in FILES and not (module.partition(".")[0] == "distributed" and refusing.is_installed()):
        file = importlib.import_module(f"{__name__}.{FILES[module]}")
        added.update({name: getattr(file, name) for name in file.__all__})
    return added


def counterpart(module: str) -> str:
    """Return the name of Candelabra's module for one of PyTorch."""
    known = module
    while known and known not in COUNTERPARTS:
        known = known.rpartition(".")[0]
    place = (COUNTERPARTS[known] + module[len(known) :]).lstrip(".") if known else module
    return f"candelabra.{place}" if place else "candelabra"


def submodules(module: str) -> list[str]:
    """Return the submodules of a PyTorch module that Candelabra's module of that name lacks."""
    prefix = f"{module}." if module else ""
    known = {name for name in {*_KNOWN, *COUNTERPARTS} - _REFUSED if name.startswith(prefix)}
    return sorted({name[len(prefix) :].partition(".")[0] for name in known} - {""})
