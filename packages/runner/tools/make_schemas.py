"""Write what kernels need of their arguments, for the checks of files.

``python make_schemas.py INCLUDE_FOLDER OUTPUT`` reads ``candelabra/arguments/*.hpp``, which
tensor-core generates from its operator catalogue, and writes the body of a table in C++: for each
operator its name, a letter for each argument, the number of its outputs, and a mask of the
arguments that it changes. The letters are those of ``src/schemas.hpp``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

STRUCT = re.compile(
    r"^// (?P<name>\w+)\((?P<parameters>[^\n]*)\) -> (?P<results>[^\n]*)\n"
    r"struct \w+ \{\n(?P<body>.*?)^\};",
    re.MULTILINE | re.DOTALL,
)
READER = re.compile(r"(\w+)\(call\.(\w+)\((\d+)\)\)")
LETTERS = {
    "optional_tensor": "t", "tensors": "l", "optional_scalar": "s", "integer": "i", "boolean": "i",
    "optional_integer": "i", "optional_boolean": "i", "real": "f", "optional_real": "f", "dtype": "d",
    "optional_dtype": "d", "ints": "I", "optional_ints": "I", "floats": "F", "string": "c", "optional_string": "c",
}  # fmt: skip
#: Arguments that must be there, by their types in a schema.
REQUIRED = {"Tensor": "T", "Tensor[]": "L", "Scalar": "S"}


def split(text: str) -> list[str]:
    """Return the parts of a list of parameters.

    Examples
    --------
    >>> split("Tensor self, int[] dim=(0, 1)")
    ['Tensor self', 'int[] dim=(0, 1)']
    """
    return [part.strip() for part in re.split(r",(?![^()\[\]]*[)\]])", text) if part.strip() not in ("", "*")]


def letters(parameters: str, body: str) -> str:
    """Return a letter for each parameter; ``-`` for one that no kernel reads."""
    types = [
        re.sub(r"\(\w+!?\)|\[\d+\]", lambda m: "[]" if m[0][0] == "[" else "", one).split()[0]
        for one in split(parameters)
    ]
    found = ["-"] * len(types)
    for name, reader, position in READER.findall(body):
        at = int(position)
        if name.endswith("_number") and found[at] in "tT":
            found[at] = "N"
            continue
        letter = LETTERS[reader]
        required = REQUIRED.get(types[at], "")
        found[at] = required if required.lower() == letter else letter
    return "".join(found)


def outputs(results: str) -> int:
    """Return how many outputs a kernel has; -1 for a list of them."""
    if results.startswith("("):
        return len(split(results[1:-1]))
    return -1 if results.startswith("Tensor[]") else 1


def changed(parameters: str) -> int:
    """Return a mask of the parameters that are changed.

    Examples
    --------
    >>> changed("Tensor(a!) self, Tensor src")
    1
    """
    return sum(1 << position for position, one in enumerate(split(parameters)) if "!" in one)


def main() -> None:
    include, target = Path(sys.argv[1]), Path(sys.argv[2])
    lines = []
    for header in sorted((include / "candelabra" / "arguments").glob("*.hpp")):
        for match in STRUCT.finditer(header.read_text()):
            kinds = letters(match["parameters"], match["body"])
            lines.append(
                f'{{"{match["name"]}", "{kinds}", {outputs(match["results"])}, {changed(match["parameters"])}}},\n'
            )
    if not lines:
        raise SystemExit(f"{include} has no headers of operators")
    text = "".join(sorted(lines))
    if not target.exists() or target.read_text() != text:
        target.write_text(text)


if __name__ == "__main__":
    main()
