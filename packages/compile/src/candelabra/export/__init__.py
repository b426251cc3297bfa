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
from .program import ExportedProgram
from .signature import ExportGraphSignature

__all__ = [
    "Dim", "ExportError", "ExportGraphSignature", "ExportedModule", "ExportedProgram", "dims", "export", "load", "register_dataclass", "save",
]  # fmt: skip
