"""Functions and modules that are recorded, saved and loaded, with the names of ``torch.jit``.

Nothing is compiled from source: a graph has the operators that a call computes.
"""

from __future__ import annotations

from candelabra import export as _export  # noqa: F401  (a package is imported before its modules)
from candelabra.export.interface import TracerWarning

from .files import load, save
from .modes import export, ignore, is_scripting, is_tracing, script_if_tracing, unused
from .programs import (
    Error,
    FrozenModule,
    LoadedModule,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
)
from .recorded import export_opnames
from .recording import (
    TracingCheckError,
    freeze,
    optimize_for_inference,
    run_frozen_optimizations,
    script,
    trace,
    trace_module,
)

__all__ = [
    "Error", "FrozenModule", "LoadedModule", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TopLevelTracedModule",
    "TracedModule", "TracerWarning", "TracingCheckError", "export", "export_opnames", "freeze", "ignore", "is_scripting", "is_tracing", "load",
    "optimize_for_inference", "run_frozen_optimizations", "save", "script", "script_if_tracing", "trace", "trace_module", "unused",
]  # fmt: skip
