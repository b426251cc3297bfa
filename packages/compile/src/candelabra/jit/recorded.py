"""What recorded functions and modules tell of their programs."""

from __future__ import annotations

import io
from typing import Any, NoReturn

from candelabra import export
from candelabra.export.interface import ExportedProgram


class Recorded:
    """The part of `ScriptModule` and `ScriptFunction` that is about the recorded operators."""

    def _program(self) -> ExportedProgram:
        raise NotImplementedError

    @property
    def graph(self) -> Any:
        """The recorded operators as a `candelabra.fx.Graph`."""
        return self._program().graph

    @property
    def inlined_graph(self) -> Any:
        """The same as `graph`: submodules have no calls in it."""
        return self.graph

    def graph_for(self, *args: Any, **kwargs: Any) -> Any:
        """Return `graph`: nothing is optimized for some arguments."""
        return self.graph

    @property
    def code(self) -> str:
        """The recorded operators as Python code."""
        return str(self._program().graph_module.code)

    @property
    def code_with_constants(self) -> tuple[str, dict[str, Any]]:
        """The code, and the tensors that are neither parameters nor buffers by name."""
        program = self._program()
        return str(program.graph_module.code), program.constants

    def save(self, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
        """Save the program, as `candelabra.jit.save` does."""
        export.save(self._program(), f, extra_files=_extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """Return what `save` writes."""
        file = io.BytesIO()
        self.save(file, _extra_files)
        return file.getvalue()

    def get_debug_state(self) -> NoReturn:
        """Raise an error: there is no executor of TorchScript."""
        raise NotImplementedError("get_debug_state(): there is no executor of TorchScript; graph has the operators")

    def define(self, src: str) -> NoReturn:
        """Raise an error: nothing is compiled from source."""
        raise NotImplementedError("define(): nothing is compiled from source; write a method, and use jit.script")


def export_opnames(m: Recorded) -> list[str]:
    """Return the operators that a recorded function or module calls.

    Raises
    ------
    TypeError
        If it is neither.

    Examples
    --------
    >>> import candelabra
    >>> candelabra.jit.export_opnames(candelabra.jit.trace(lambda x: (x + 1).relu(), candelabra.ones(2)))
    ['aten::add', 'aten::relu']
    """
    if not isinstance(m, Recorded):
        raise TypeError(f"jit.export_opnames(): a {type(m).__name__} is no program; use jit.script or jit.trace before")
    names = {str(node.op) for node in m._program()._graph.nodes}
    return sorted(name if "::" in name else f"aten::{name}" for name in names)
