"""LLVM as the compiler of groups of operators, by the package llvmlite.

The library writes each group as text in LLVM's intermediate representation, already in vectors, and
this module makes machine code of it. No pass runs but those of code generation: contraction and
reordering would change the bits of results.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import logging
from pathlib import Path
from typing import Any

#: `void *compile(const char *text, const char *name)`
_TextCompiler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
#: Code lives as long as its engine.
_engines: list[Any] = []


@functools.cache
def _processor() -> dict[str, Any]:
    """Return how LLVM makes code for this processor."""
    import llvmlite.binding as binding  # here: it takes longer to load than a group to compile

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    # Level 1 schedules and allocates registers; higher ones look for what a loop of vectors lacks.
    return {"cpu": binding.get_host_cpu_name(), "features": features, "opt": 1, "jit": True}


def compile_text(text: str, name: str) -> int:
    """Return the address of a function, compiled from LLVM's intermediate representation.

    Parameters
    ----------
    text
        A module in LLVM's assembly language.
    name
        The function in it.

    Raises
    ------
    RuntimeError
        If the text is malformed, or the processor is unknown to LLVM.

    Examples
    --------
    >>> import ctypes
    >>> from candelabra_backend_cpu import llvm
    >>> address = llvm.compile_text("define i32 @one() { ret i32 1 }", "one")
    >>> ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    1
    """
    import llvmlite.binding as binding

    processor = _processor()
    # The engine owns its machine.
    machine = binding.Target.from_default_triple().create_target_machine(**processor)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(name))


def _compile_or_null(text: bytes, name: bytes) -> int | None:
    """Return the address, or None where LLVM fails, so that the kernels run instead."""
    try:
        return compile_text(text.decode(), name.decode())
    except Exception as error:
        logging.getLogger("candelabra.backends.cpu").warning("LLVM does not compile a group of operators: %s", error)
    except KeyboardInterrupt:
        # Nothing can be raised through the library. It is raised by the next code of Python.
        _thread.interrupt_main()
    return None


#: Kept: the library calls it as long as the process lives.
_callback = _TextCompiler(_compile_or_null)


def register(library: Path) -> None:
    """Let the library compile groups of operators from now on.

    Examples
    --------
    >>> import candelabra_backend_cpu
    >>> from candelabra_backend_cpu import llvm
    >>> llvm.register(candelabra_backend_cpu.library_path())
    """
    ctypes.CDLL(str(library)).candelabra_cpu_set_text_compiler(_callback)


def unregister(library: Path) -> None:
    """Let the library compile no more groups. Those of existing programs go on.

    Examples
    --------
    >>> import candelabra_backend_cpu
    >>> from candelabra_backend_cpu import llvm
    >>> llvm.unregister(candelabra_backend_cpu.library_path())
    >>> llvm.register(candelabra_backend_cpu.library_path())
    """
    ctypes.CDLL(str(library)).candelabra_cpu_set_text_compiler(None)
