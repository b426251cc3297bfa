"""Find floating-point numbers that kernels convert to integers without a check of their range:
``python tools/lint_float_index.py [FILES]``.

The conversion of NaN, or of a number that the integer type cannot hold, is undefined in C++, and an
index made of it lies anywhere. Kernels call `index_from_float` or `index_or_outside` of
``candelabra/float_index.hpp`` instead. A conversion that is safe without them has a comment with
the reason, on its line or the line above: ``// float index: REASON``.

The compiler knows types, this only reads the text: it takes an expression for floating-point where
it calls a function that gives such a number, has a literal of one, or names a variable that was
last declared as one. What it overlooks, ``nox -s sanitize`` finds (float-cast-overflow).
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
#: Functions that give a floating-point number, whatever their arguments are.
FUNCTIONS = re.compile(
    r"\b(?:floor|ceil|round|round_even|trunc|rint|nearbyint|sqrt|cbrt|exp2?|log(?:2|10|1p)?|pow|fmod|fmin|fmax|atof|strtod|ldexp)f?\("
    r"|static_cast<(?:float|double|C|F|R|real_t<\w+>|compute_t<\w+>)>\(|\b(?:C|F)\(|\.real\(|\bstd::real\("
)
LITERAL = re.compile(r"(?<![\w.])(?:\d+\.\d*|\.\d+|\d[\d.]*e[+-]?\d+|0x[\da-f]+p[+-]?\d+)f?\b", re.IGNORECASE)
#: Declarations of variables and parameters; C, F, R and V are the computing types of templates.
NAMES = r"((?:\w+(?:\s*=[^,;(){}]*(?:\([^()]*\)[^,;(){}]*)?)?\s*,\s*[*&]?\s*)*\w+)\s*(?=[=;,){\[(])"
TYPES = r"(?:double|float|C|F|R|V|real_t<\w+>|compute_t<\w+>)"
DECLARED = re.compile(rf"(?<![\w:<]){TYPES}\s*[*&]?\s+[*&]?\s*{NAMES}")
OTHERWISE = re.compile(rf"(?<![\w:<])(?:{INTEGER}|auto|bool|T|U|K)\s*[*&]?\s+[*&]?\s*{NAMES}")
#: A variable; members of objects and of classes have the types of other places.
NAME = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*\b(?!\s*(?:\(|::|\.|->))")
#: Calls whose result does not have to be of the type of their arguments.
CALL = re.compile(r"\b(?!(?:min|max|clamp|f?abs)\b)[A-Za-z_]\w*(?:<[\w:, ]*>)?\(")
COMPARISON = re.compile(r"[<>!=]=|&&|\|\||>>|<<|[<>]")
#: What gives an integer, or compares, whatever stands inside.
INTEGRAL = re.compile(
    r"\b(?:sizeof|bits_of|bit_cast<\w+>|__builtin_bit_cast|index_from_float(?:<\w+>)?|index_or_outside(?:<\w+>)?|truncated(?:_to)?<\w+>|"
    r"static_cast<(?:std::)?(?:u?int\w*|s?size_t|long|unsigned|ptrdiff_t|I|K|Count|bool)>|numeric_limits<\w+>::\w+|"
    r"isnan|isfinite|isinf|signbit|ilogb)\s*\("
)
ALLOWED = re.compile(r"//.*\bfloat index: \S")


def closing(text: str, start: int) -> int:
    """Where the parenthesis ends whose inside begins here."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return len(text)


def blanked(text: str) -> str:
    """The text with comments and strings replaced by blanks, at the same places."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def without_calls(expression: str, calls: re.Pattern[str]) -> str:
    """The expression with a number in the place of each of these calls."""
    while found := calls.search(expression):
        expression = expression[: found.start()] + " 0 " + expression[closing(expression, found.end()) + 1 :]
    return expression


def without_integral_calls(expression: str) -> str:
    """The expression without what gives integers, conditions and indices."""
    expression = without_calls(expression, INTEGRAL)
    expression = re.sub(r"\[[^\[\]]*\]", "", expression)
    return re.sub(r"[^?(,]*\?", " ", expression)


def declarations(code: str) -> dict[str, list[tuple[int, bool]]]:
    """Where names are declared, in order, and whether as floating-point numbers."""
    found: dict[str, list[tuple[int, bool]]] = {}
    for pattern, floating in ((DECLARED, True), (OTHERWISE, False)):
        for match in pattern.finditer(code):
            for name in re.findall(r"(?:^|,)\s*[*&]?\s*(\w+)", match[1]):
                found.setdefault(name, []).append((match.start(), floating))
    return {name: sorted(places) for name, places in found.items()}


def is_floating(expression: str, start: int, declared: dict[str, list[tuple[int, bool]]]) -> bool:
    """Whether this reads as a floating-point number; the last declaration of a name before `start`
    says what it is.
    """
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
    """Yield the line and the text of each conversion without a check."""
    code, lines = blanked(text), text.splitlines()
    declared = declarations(code)
    for cast in CASTS:
        for found in cast.finditer(code):
            end = closing(code, found.end())
            # Other functions than the cast take floating-point numbers only.
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
