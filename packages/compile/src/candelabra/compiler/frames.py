"""Which of the program's code runs in a call: the names of that code say which state it reads."""

from __future__ import annotations

import functools
import io
import os
import random
import sys
from types import CodeType, FrameType
from typing import Any, Self

import candelabra

from .code_names import computes_names, names_of

_LIBRARY = os.path.dirname(os.__file__) + os.sep
_SITES = (_LIBRARY + "site-packages", _LIBRARY + "dist-packages")


@functools.lru_cache(maxsize=4096)
def is_inside(file: str | None) -> bool:
    """Return whether a file is Candelabra's own, or Python's.

    Its code reads no state that a program changes, or state that the core guards.
    """
    if not file or file.startswith(("<frozen", "<candelabra")):
        return True
    if file.startswith(_LIBRARY):
        inside = not file.startswith(_SITES)
        if inside:
            return True
    return any(file.startswith(folder + os.sep) for folder in candelabra.__path__)


def is_installed(file: str | None) -> bool:
    """Return whether a file is of an installed package, whose own state programs seldom change."""
    return bool(file) and ("/site-packages/" in str(file) or "/dist-packages/" in str(file))


class RanCode:
    """Collects the code of the program that runs on this thread while it is entered.

    A profile function that is set, such as cProfile's, is called as well.
    """

    def __init__(self) -> None:
        #: By code object: the namespace of its module.
        self.codes: dict[CodeType, dict[str, Any]] = {}
        #: What had an effect besides computing, such as print: its name, file and line; or None.
        self.effect: tuple[str, str, int] | None = None
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(self._before)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in self.codes and not is_inside(code.co_filename):
                self.codes[code] = frame.f_globals
        elif event == "c_call" and self.effect is None and _has_effect(argument, frame):
            self.effect = (argument.__name__, *line_of(frame))
        if self._before is not None:
            self._before(frame, event, argument)

    def names(self) -> set[str]:
        """Return the names of globals and attributes that the code uses, and those of its parts."""
        return {name for code in self.codes for name in names_of(code)}

    def computes_names(self) -> bool:
        """Return whether the program's own code looks up attributes by computed names."""
        return any(computes_names(code) for code in self.codes if not is_installed(code.co_filename))


#: Modules of Python whose functions read or change what is outside of the process.
_OUTSIDE = ("io", "_io", "nt", "posix", "time", "_socket", "_warnings")
#: Of these modules, what does not.
_HARMLESS = ("fspath", "getpid", "cpu_count", "isatty", "readable", "writable", "seekable", "fileno")
#: Functions of the core whose results or effects a replay would not have.
_OF_CORE = ("get_num_threads", "set_num_threads", "initial_seed")
#: Functions of the interpreter whose results no guard watches, by module.
_OF_INTERPRETER = {
    "sys": ("getrecursionlimit", "setrecursionlimit", "getrefcount", "getswitchinterval", "gettrace", "_getframe"),
    "gc": ("get_count", "get_objects", "get_threshold", "isenabled"),
    "_signal": ("getsignal",),
    "resource": ("getrlimit", "getrusage"),
}
#: Methods that say where a tensor lies, which may differ between calls of one program.
_PLACES = ("storage_offset", "data_ptr")


def _has_effect(function: Any, frame: FrameType) -> bool:
    """Return whether a built-in function prints, reads or writes a file, reads a clock or other
    state outside of tensors, or draws a number.
    """
    name = function.__name__
    owner = getattr(function, "__self__", None)
    if function is print or name in _OF_CORE:
        return True
    module = getattr(function, "__module__", None)
    if isinstance(owner, io.IOBase):
        return name not in _HARMLESS
    if module in _OUTSIDE:
        # Imports look for files.
        file = frame.f_code.co_filename
        return name not in _HARMLESS and not file.startswith("<frozen importlib") and not _is_of_library(module, file)
    if name in _OF_INTERPRETER.get(module or "", ()):
        return not is_inside(frame.f_code.co_filename)
    if name in _PLACES and isinstance(owner, candelabra.Tensor):
        return not is_inside(frame.f_code.co_filename)
    return isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random")


def _is_of_library(module: str, file: str) -> bool:
    """Return whether a warning is one of Candelabra's own, which no program waits for."""
    return module == "_warnings" and is_inside(file) and not file.startswith(_LIBRARY)


def line_of(frame: FrameType | None) -> tuple[str, int]:
    """Return the file and line of the innermost frame outside Candelabra and Python."""
    while frame is not None and is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
