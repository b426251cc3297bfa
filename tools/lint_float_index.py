"""Find floating-point numbers that kernels convert to integers without a check of their range:
``python tools/lint_float_index.py [FILES]``.

In C++, it is undefined to convert NaN, or a number outside the range of the integer type. An index
from such a conversion may be anything. Kernels call `index_from_float` or `index_or_outside` of
``candelabra/float_index.hpp`` instead. A conversion that is safe without them has a comment with
the reason, on its line or the line above: ``// float index: REASON``.

Unlike the compiler, this tool does not know types and only reads the text. It treats an expression
as floating-point if it calls a function that returns such a number, contains such a literal, or
names a variable last declared as one. ``nox -s sanitize`` finds what this misses
(float-cast-overflow).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATTERNS = [
    "packages/*/src/**/*.[ch]pp",
    "packages/*/src/**/*.cu*",
    "packages/*/include/**/*.hpp",
]

INTEGER = r"(?:std::)?(?:u?int(?:8|16|32|64)?_t|s?size_t|ptrdiff_t|unsigned|int|long|long long|short|I|Index|Count)"
CASTS = [
    re.compile(rf"\bstatic_cast<\s*(?:const\s+)?{INTEGER}\s*>\("),
    re.compile(r"\b(?:std::|math::)?l?l(?:rint|round)f?\("),
    re.compile(r"\b__(?:float|double)2u?(?:int|ll)_r[nzud]\("),
]
#: Functions that return a floating-point number for all argument types.
FUNCTIONS = re.compile(
    r"\b(?:floor|ceil|round|round_even|trunc|rint|nearbyint|sqrt|cbrt|exp2?|log(?:2|10|1p)?|pow|fmod|fmin|fmax|atof|strtod|ldexp)f?\("
    r"|static_cast<(?:float|double|C|F|R|real_t<\w+>|compute_t<\w+>)>\(|\b(?:C|F)\(|\.real\(|\bstd::real\("
)
LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d[\d.]*e[+-]?\d+|0x[\da-f]+p[+-]?\d+)f?\b", re.IGNORECASE)
#: Declarations of variables and parameters. C, F, R and V are the compute types of templates.
NAMES = r"((?:\w+(?:\s*=[^,;(){}]*(?:\([^()]*\)[^,;(){}]*)?)?\s*,\s*[*&]?\s*)*\w+)\s*(?=[=;,){\[(])"
TYPES = r"(?:double|float|C|F|R|V|real_t<\w+>|compute_t<\w+>)"
DECLARED = re.compile(rf"(?<![\w:<]){TYPES}\s*[*&]?\s+[*&]?\s*{NAMES}")
OTHERWISE = re.compile(rf"(?<![\w:<])(?:{INTEGER}|auto|bool|T|U|K)\s*[*&]?\s+[*&]?\s*{NAMES}")
#: A variable. The types of members are declared elsewhere, so members do not match.
NAME = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*\b(?!\s*(?:\(|::|\.|->))")
#: Calls whose result may have another type than their arguments.
CALL = re.compile(r"\b(?!(?:min|max|clamp|f?abs)\b)[A-Za-z_]\w*(?:<[\w:, ]*>)?\(")
COMPARISON = re.compile(r"[<>!=]=|&&|\|\||>>|<<|[<>]")
#: Expressions that give an integer or a bool, whatever they contain.
INTEGRAL = re.compile(
    r"\b(?:sizeof|bits_of|bit_cast<\w+>|__builtin_bit_cast|index_from_float(?:<\w+>)?|index_or_outside(?:<\w+>)?|truncated(?:_to)?<\w+>|"
    r"static_cast<(?:std::)?(?:u?int\w*|s?size_t|long|unsigned|ptrdiff_t|I|K|Count|bool)>|numeric_limits<\w+>::\w+|"
    r"isnan|isfinite|isinf|signbit|ilogb)\s*\("
)
ALLOWED = re.compile(r"//.*\bfloat index: \S")


def closing(text: str, start: int) -> int:
    """Return the end of the parenthesis whose inside begins at `start`."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text)


def blanked(text: str) -> str:
    """Return the text with comments and strings replaced by blanks of the same length."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def without_calls(expression: str, calls: re.Pattern[str]) -> str:
    """Return the expression with each of these calls replaced by a number."""
    while found := calls.search(expression):
        expression = expression[: found.start()] + " 0 " + expression[closing(expression, found.end()) + 1 :]
    return expression


def without_integral_calls(expression: str) -> str:
    """Return the expression without integer-valued calls, conditions and indices."""
    expression = without_calls(expression, INTEGRAL)
    expression = re.sub(r"\[[^\[\]]*\]", "", expression)
    return re.sub(r"[^?(,]*\?", " ", expression)


def declarations(code: str) -> dict[str, list[tuple[int, bool]]]:
    """Return where each name is declared, in order, and whether as a floating-point number."""
    found: dict[str, list[tuple[int, bool]]] = {}
    for pattern, floating in ((DECLARED, True), (OTHERWISE, False)):
        for match in pattern.finditer(code):
            for name in re.findall(r"(?:^|,)\s*[*&]?\s*(\w+)", match[1]):
                found.setdefault(name, []).append((match.start(), floating))
    return {name: sorted(places) for name, places in found.items()}


def is_floating(expression: str, start: int, declared: dict[str, list[tuple[int, bool]]]) -> bool:
    """Return whether the expression is floating-point, by the last declarations before `start`."""
    rest = without_integral_calls(expression)
    if COMPARISON.search(re.sub(r"<[\w:, ]*>", "", rest)):
        return False
    if FUNCTIONS.search(rest) or LITERAL.search(rest):
        return True
    for name in NAME.findall(without_calls(rest, CALL)):
        places = declared.get(name, [])
        before = [floating for place, floating in places if place < start]
        if before[-1] if before else any(floating for _, floating in places):
            return True
    return False


def found_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each unchecked conversion."""
    code, lines = blanked(text), text.splitlines()
    declared = declarations(code)
    for cast in CASTS:
        for found in cast.finditer(code):
            end = closing(code, found.end())
            # Except for the cast, these functions take only floating-point numbers.
            floating = cast is not CASTS[0] or is_floating(code[found.end() : end], found.start(), declared)
            first, last = code.count("\n", 0, found.start()), code.count("\n", 0, end)
            if floating and not any(ALLOWED.search(line) for line in lines[max(first - 1, 0) : last + 1]):
                yield first + 1, lines[first].strip()


def main(arguments: list[str]) -> int:
    paths = [Path(name) for name in arguments] or sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern)})
    count = 0
    for path in paths:
        for line, text in found_in(path.read_text()):
            count += 1
            print(f"{path}:{line}: a floating-point number becomes an integer without a check of its range: {text}")
    if count:
        print(
            "Use index_from_float or index_or_outside (candelabra/float_index.hpp), or say why it is safe: // float index: REASON"
        )
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
