"""Translate CUDA C++ to what g++ compiles with ``include/cuda_language.hpp``."""

from __future__ import annotations

import re
from pathlib import Path

_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:(?:__align__|alignas)\(\d+\)\s*)?([\w: ]+?)\s+(\w+)\[\];")
_ALIGNED = re.compile(r"__shared__\s+((?:alignas|__align__)\((?:[^()]|\([^()]*\))*\))")
_ADDRESS = re.compile(r"reinterpret_cast<const void\*>\(")
_SHARED = re.compile(r"(?<!extern )(?:(?:alignas|__align__)\((?:[^()]|\([^()]*\))*\)\s+static|__shared__)\s([^;{}]+);")
_BOUNDS = re.compile(r"__launch_bounds__\(")
_CHEVRONS = re.compile(r"<<<(.*?)>>>\s*\(", re.DOTALL)


def _start_of_kernel(text: str, end: int) -> int:
    """Return the start of the kernel's name that ends at ``end``: an identifier, perhaps with
    template arguments.
    """
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


def _closing(text: str, opening: int) -> int:
    """Return the position of the bracket that closes the one at ``opening``."""
    depth = 0
    for at in range(opening, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    raise ValueError("a bracket is not closed")


def _fresh_shared_memory(declaration: re.Match[str]) -> str:
    """Make the first thread of a block overwrite shared memory that an earlier block has used."""
    items, depth, start, text = [], 0, 0, declaration.group(1)
    for at, c in enumerate(text):
        depth += (c in "<([") - (c in ">)]")
        if c == "," and depth == 0:
            items.append(text[start:at])
            start = at + 1
    items.append(text[start:])
    names = [re.findall(r"[A-Za-z_]\w*", item.split("[")[0])[-1] for item in items]
    return declaration.group(0) + "".join(
        f" {{ static uint64_t block = 0; ::emulation::fresh(block, &{name}, sizeof {name}); }}" for name in names
    )


def _with_checked_bounds(text: str) -> str:
    """Make kernels check that the block is as small as their __launch_bounds__ promise."""
    at = 0
    while (found := _BOUNDS.search(text, at)) is not None:
        at = found.end()
        end = _closing(text, at - 1)
        bound, depth = text[at:end], 0
        for i, c in enumerate(bound):
            depth += (c in "<(") - (c in ">)")
            if c == "," and depth == 0:
                bound = bound[:i]
                break
        body = _closing(text, text.index("(", end + 1)) + 1
        while text[body].isspace():
            body += 1
        if text[body] == "{":
            text = f"{text[: body + 1]} ::emulation::within({bound});{text[body + 1 :]}"
    return text


def translated(name: Path, strict: bool = False) -> str:
    """Return a file's text translated for g++; lines keep their numbers. ``strict`` adds the checks
    of ``include/strict.hpp``.
    """
    text = name.read_text()
    if name.suffix in {".cu", ".cuh", ".hpp"}:
        text = text.replace("__CUDACC__", "CANDELABRA_EMULATED_DEVICE_CODE")
        text = _DYNAMIC.sub(r"\1* const \2 = static_cast<\1*>(::emulation::dynamic_shared());", text)
        text = _ALIGNED.sub(r"\1 static", text)
        if strict:
            text = _with_checked_bounds(_SHARED.sub(_fresh_shared_memory, text))
        if name.suffix != ".hpp" or "CANDELABRA_EMULATED_DEVICE_CODE" in text:
            text = _ADDRESS.sub("::emulation::kernel_address(", text)
        while (found := _CHEVRONS.search(text)) is not None:
            start = _start_of_kernel(text, found.start())
            kernel = text[start : found.start()]
            text = f"{text[:start]}::emulation::configured({kernel}, {found.group(1)})({text[found.end() :]}"
    return f'#line 1 "{name}"\n{text}'


def translate_folder(source: Path, target: Path, strict: bool = False) -> list[Path]:
    """Translate all sources below ``source`` to ``target``, and write only files that have changed.

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
        text = translated(path, strict)
        if not written.is_file() or written.read_text() != text:
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text)
        if path.suffix in {".cu", ".cpp"}:
            compiled.append(relative)
    for path in target.rglob("*"):
        if path.is_file() and path.relative_to(target) not in wanted:
            path.unlink()
    return compiled
