"""The kernel contract of each operator, from its catalogue row: ``python -m candelabra.backends
contract NAME``.
"""

from __future__ import annotations

from candelabra.catalogue import FACTS, OPERATORS
from candelabra.catalogue import declaration as tags

from .tiers import is_decomposed

#: What a tag means for a kernel, without tags that concern only the Python functions.
WORDS = {
    tags.INPLACE: "has an in-place variant",
    tags.RANDOM: "draws random numbers",
    tags.NUMBERS: "takes numbers for tensors",
    tags.TENSOR_FIRST: "the first argument is always a tensor",
    tags.DATA_DEPENDENT: "the kernel asks for the memory of its results",
    tags.NONDETERMINISTIC: "may be non-deterministic",
    tags.NONDIFFERENTIABLE: "no gradient",
    tags.ONE_VALUE: "elements of the output may share memory",
}


def has_kernel(name: str) -> bool:
    """Return whether a backend can have a kernel. Views and operators tagged CORE have none."""
    return not OPERATORS[name].tags & (tags.VIEW | tags.CORE)


def kind(name: str) -> str:
    """Return what a device without a kernel does, and the tier of the kernel."""
    if OPERATORS[name].tags & tags.COMPOSITE:
        words = "has a decomposition"
    else:
        words = "primitive with a decomposition" if is_decomposed(name) else "primitive"
    return f"{words}; tier {FACTS[name].tier}" if FACTS[name].tier else words


def said(name: str) -> str:
    """Describe an operator beside its schema: shape rule, kind, tags in words."""
    facts = [f"Shape rule `{FACTS[name].shape}`", kind(name)]
    facts += [words for tag, words in WORDS.items() if OPERATORS[name].tags & tag]
    if FACTS[name].refuses:
        *others, last = FACTS[name].refuses
        facts.append(f"never called with {', '.join(others)}{' or ' if others else ''}{last} dtypes")
    return "; ".join(facts) + "."


def entry(names: list[str]) -> list[str]:
    """Return the entry of operators with the same description: schemas, description, kernel
    arguments.
    """
    title = ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"
    schemas = [OPERATORS[name].schema for name in names]
    return [f"### {title}", "", "```text", *schemas, "```", "", said(names[0]), "", FACTS[names[0]].sees.strip(), ""]
