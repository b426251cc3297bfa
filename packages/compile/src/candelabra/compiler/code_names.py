"""What a code object names: globals, imported modules, and attributes that it looks up by a
computed name.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType

_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
#: Names of functions and attributes that lead to all attributes of an object.
_ALL_ATTRIBUTES = ("vars", "__dict__", "attrgetter", "__getattribute__")
_BY_NAME = ("getattr", "hasattr")
#: Jumps make it unclear which instruction computed an operand.
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)


@functools.lru_cache(maxsize=4096)
def names_of(code: CodeType) -> frozenset[str]:
    """Return the names that a code object and the functions defined in it use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= names_of(constant)
        elif isinstance(constant, str) and constant.isidentifier():  # getattr(options, "name")
            names.add(constant)
    return frozenset(names)


@functools.lru_cache(maxsize=4096)
def globals_of(code: CodeType) -> frozenset[str]:
    """Return the names that a code object and the functions defined in it look up as globals or as
    builtins, or assign.
    """
    names = {one.argval for one in dis.get_instructions(code) if one.opname in _GLOBALS}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= globals_of(constant)
    # globals()["name"]
    return frozenset(names | names_of(code) if "globals" in names else names)


@functools.lru_cache(maxsize=4096)
def imports_of(code: CodeType) -> frozenset[str]:
    """Return the names of the modules that a code object imports when it runs."""
    names = {one.argval for one in dis.get_instructions(code) if one.opname == "IMPORT_NAME"}
    if not {"modules", "import_module", "__import__"}.isdisjoint(code.co_names):
        names |= {constant for constant in code.co_consts if isinstance(constant, str)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= imports_of(constant)
    return frozenset(names)


@functools.lru_cache(maxsize=4096)
def asks_for_classes(code: CodeType) -> bool:
    """Return whether a code object, or a function defined in it, asks whether objects are instances
    of classes, or classes are derived from others.
    """
    if not {"isinstance", "issubclass"}.isdisjoint(names_of(code)):
        return True
    if any(isinstance(constant, CodeType) and asks_for_classes(constant) for constant in code.co_consts):
        return True
    return any(one.opname == "MATCH_CLASS" for one in dis.get_instructions(code))


@functools.lru_cache(maxsize=4096)
def computes_names(code: CodeType) -> bool:
    """Return whether a code object looks up attributes whose names are no constants."""
    if not set(_ALL_ATTRIBUTES).isdisjoint(code.co_names):
        return True
    if any(isinstance(constant, CodeType) and computes_names(constant) for constant in code.co_consts):
        return True
    if set(_BY_NAME).isdisjoint(code.co_names):
        return False
    instructions = list(dis.get_instructions(code))
    return any(
        not _has_constant_name(instructions[number:])
        for number, one in enumerate(instructions)
        if one.opname in _GLOBALS and one.argval in _BY_NAME
    )


def _has_constant_name(instructions: list[dis.Instruction]) -> bool:
    """Return whether the second argument of a call is a constant, given the instructions from that
    which loads the function.
    """
    depth = loaded = dis.stack_effect(instructions[0].opcode, instructions[0].arg)
    is_constant = False
    for one in instructions[1:]:
        if one.opcode in _JUMPS:
            return False
        before = depth
        depth += dis.stack_effect(one.opcode, one.arg)
        if one.opname.startswith("CALL") and depth <= 1:
            return is_constant
        if before == loaded + 1 and depth == loaded + 2:
            is_constant = one.opname == "LOAD_CONST" and isinstance(one.argval, str)
        elif depth <= loaded + 2 and one.opname not in ("PRECALL", "KW_NAMES"):
            is_constant = False  # computed of the constant
    return False
