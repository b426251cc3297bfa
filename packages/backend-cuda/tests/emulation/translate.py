"""From CUDA C++ to what g++ compiles with ``include/cuda_language.hpp``: the few places that are no C++."""

from __future__ import annotations

import re
from pathlib import Path

_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:(?:__align__|alignas)\(\d+\)\s*)?([\w: ]+?)\s+(\w+)\[\];")
_ALIGNED = re.compile(r"__shared__\s+((?:alignas|__align__)\((?:[^()]|\([^()]*\))*\))")
_ADDRESS = re.compile(r"reinterpret_cast<const void\*>\(")
_CHEVRONS = re.compile(r"<<<(.*?)>>>\s*\(", re.DOTALL)


def _start_of_kernel(text: str, end: int) -> int:
    """Return where the name of the kernel begins that ends at ``end``: an identifier, perhaps with template arguments."""
    at, depth = end, 0
    while at > 0:
        c = text[at - 1]
        if c == ">":
            depth += 1
        elif c == "<":
            depth -= 1
        elif depth == 0 and not (c.isalnum() or c in "_:"):
            break
        at -= 1
    return at


def translated(name: Path) -> str:
    """Return the text of a file for g++; every line keeps its number."""
    text = name.read_text()
    if name.suffix in {".cu", ".cuh", ".hpp"}:
        text = text.replace("__CUDACC__", "CANDELABRA_EMULATED_DEVICE_CODE")
        text = _DYNAMIC.sub(r"\1* const \2 = static_cast<\1*>(::emulation::dynamic_shared());", text)
        text = _ALIGNED.sub(r"\1 static", text)
        if name.suffix != ".hpp" or "CANDELABRA_EMULATED_DEVICE_CODE" in text:
            text = _ADDRESS.sub("::emulation::kernel_address(", text)
        while (found := _CHEVRONS.search(text)) is not None:
            start = _start_of_kernel(text, found.start())
            kernel = text[start : found.start()]
            text = f"{text[:start]}::emulation::configured({kernel}, {found.group(1)})({text[found.end() :]}"
    return f'#line 1 "{name}"\n{text}'


def translate_folder(source: Path, target: Path) -> list[Path]:
    """Write the translation of all sources below ``source`` to ``target``, touching only what has changed.

    Returns
    -------
    list of Path
        The files to be compiled, relative to ``target``.
    """
    wanted: set[Path] = set()
    compiled: list[Path] = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".cu", ".cuh", ".hpp", ".cpp", ".h"}:
            continue
        relative = path.relative_to(source)
        wanted.add(relative)
        written = target / relative
        text = translated(path)
        if not written.is_file() or written.read_text() != text:
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text)
        if path.suffix in {".cu", ".cpp"}:
            compiled.append(relative)
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target) not in wanted:
            path.unlink()
    return compiled
