"""Record a module as a program that is saved, loaded and run without the module's code.

The names are those of ``torch.export``.
"""

from __future__ import annotations

from candelabra.pytree import register_dataclass

from .dims import Dim, dims
from .exporting import export
from .files import load, save
from .graph import ExportError
from .modules import ExportedModule
from .program import ExportedProgram, default_decompositions
from .shape_builders import AdditionalInputs, ShapesCollection
from .signature import ExportGraphSignature

__all__ = [
    "AdditionalInputs", "Dim", "ExportError", "ExportGraphSignature", "ExportedModule", "ExportedProgram", "ShapesCollection",
    "default_decompositions", "dims", "export", "load", "register_dataclass", "save",
]  # fmt: skip
