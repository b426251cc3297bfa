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

#: `void accept(void *context, const void *file, uint64_t bytes)`
_Accept = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)
#: `void compile(const char *text, accept, void *context)`
_TextCompiler = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _Accept, ctypes.c_void_p)


@functools.cache
def _machine() -> Any:
    """Return what makes LLVM's code for this processor."""
    import llvmlite.binding as binding  # here: it takes longer to load than a group to compile

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        # Level 1 schedules and allocates registers; higher ones look for what a loop of vectors
        # lacks.
        opt=1,
        # Constants are near the code, wherever the library puts both.
        reloc="pic",
        codemodel="small",
    )


def compile_text(text: str) -> bytes:
    """Return an object file with the machine code of functions in LLVM's intermediate
    representation.

    Parameters
    ----------
    text
        A module in LLVM's assembly language.

    Raises
    ------
    RuntimeError
        If the text is malformed, or the processor is unknown to LLVM.

    Examples
    --------
    >>> from candelabra_backend_cpu import llvm
    >>> llvm.compile_text("define i32 @one() { ret i32 1 }")[1:4]
    b'ELF'
    """
    import llvmlite.binding as binding

    machine = _machine()
    module = binding.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return bytes(machine.emit_object(module))


def _compile(text: bytes, accept: Any, context: int) -> None:
    """Give the library the object file, or nothing where LLVM fails, so that the kernels run
    instead.
    """
    try:
        made = compile_text(text.decode())
        accept(context, made, len(made))
    except Exception as error:
        logging.getLogger("candelabra.backends.cpu").warning("LLVM does not compile a group of operators: %s", error)
    except KeyboardInterrupt:
        # Nothing can be raised through the library. It is raised by the next code of Python.
        _thread.interrupt_main()


#: Kept: the library calls it as long as the process lives.
_callback = _TextCompiler(_compile)


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
