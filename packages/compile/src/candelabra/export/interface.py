"""What `candelabra.jit` and `candelabra.onnx` use of recorded programs."""

from __future__ import annotations

from .dims import Dim
from .exporting import exported_graph
from .graph import ExportError, Graph, Node, Ref, Scaled, Size, find_operator, replaced, uses, walk
from .modules import ExportedModule
from .program import ExportedProgram
from .recording import RANDOM, TracerWarning
from .sizes import resized

__all__ = [
    "RANDOM", "Dim", "ExportError", "ExportedModule", "ExportedProgram", "Graph", "Node", "Ref", "Scaled", "Size", "TracerWarning",
    "exported_graph", "find_operator", "replaced", "resized", "uses", "walk",
]  # fmt: skip
