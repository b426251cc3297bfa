"""Check the layout: sizes of folders, files and functions, the width of comments, arguments by
name.

- A folder holds at most 30 files, so that its listing can be read. Programs that a test runs are
  its data.
- A file has at most 600 lines, and a function at most 80 without its docstring. A table of rows
  stands outside functions, as data.
- A line of a comment or a docstring ends at column 100, but for code and tables in them.
- Kernels and shape rules read arguments by name, never by a number.

``python tools/lint_layout.py`` prints violations, and returns 1 if there are any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_FILES = 30
MOST_LINES = 600
#: Folders of tests' data, which may hold more files.
DATA = {Path("tests/ecosystem/programs")}
#: Files that may have more lines, with the reason.
LONG_FILES = {
    "noxfile.py": "nox reads its sessions from one file",
}
MOST_FUNCTION_LINES = 80
WIDTH = 100
CODE = {".cpp", ".hpp", ".cu", ".cuh", ".h", ".c"}
#: A comment on its own line. Further indented text is code or a table, and is exempt.
COMMENT = {".py": re.compile(r"\s*#:? [^\s|]"), **dict.fromkeys(CODE, re.compile(r"\s*// [^\s|]"))}
BY_NUMBER = re.compile(
    r"\bcall\.(boolean|real|integer|tensor|tensors|ints|floats|string|scalar|given|optional_\w+)\(\d"
)
#: What holds no braces of C++ code: comments, strings (raw ones too), characters, directives.
NOT_CODE = re.compile(
    r"//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|R"([^\s()\\]*)\(.*?\)\1"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
#: What ends a declaration, or begins the body of one.
BOUNDARY = re.compile(r"[{};]|\b(?:public|private|protected)\s*:(?!:)")
#: The ends of declarations whose braces hold declarations, and of those that hold statements. Other
#: braces hold initial values.
SCOPE = re.compile(
    r"\bnamespace\b[\w\s:]*$|\bextern\s*$|(?<![<,]\s)(?<![<,])\b(?:struct|class|union|enum)\b.*(?<!\))\s*$", re.DOTALL
)
FUNCTION = re.compile(
    r"\(.*(?:[)}]|\)[\s&]*->[^;{}]*|\b(?:const|noexcept|override|final|mutable|try)[\s&]*|>)\s*$|=\s*\[[^\]]*\]\s*$",
    re.DOTALL,
)


def tracked_files() -> list[Path]:
    """Return the files of the repository, relative to its root."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first line and the number of lines of each function of a C, C++ or CUDA source.

    A lambda or a local class counts towards its function.
    """
    code = NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    begin = depth = 0
    is_function = False
    for boundary in BOUNDARY.finditer(code):
        mark = boundary.group()
        if depth == 0 and mark == "{" and not SCOPE.search(code, begin, boundary.start()):
            depth = 1
            is_function = FUNCTION.search(code, begin, boundary.start()) is not None
        elif depth:
            depth += (mark == "{") - (mark == "}")
            if depth == 0 and is_function:
                begin = boundary.end() - len(code[begin : boundary.end()].lstrip())
                yield code.count("\n", 0, begin) + 1, code.count("\n", begin, boundary.end()) + 1
                begin = boundary.end()
        else:
            begin = boundary.end()
    if depth:
        raise ValueError("the braces do not pair; a directive may have an opening brace in each branch")


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yield the first line of each function of a Python source, and its lines without the
    docstring.
    """
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        assert node.end_lineno is not None
        lines = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            assert docstring.end_lineno is not None
            lines -= docstring.end_lineno - docstring.lineno + 1
        yield node.lineno, lines


def long_parts(path: Path, text: str) -> Iterator[str]:
    """Yield a message if the file is too long, and one for each function that is."""
    lines = len(text.splitlines())
    if lines > MOST_LINES and str(path) not in LONG_FILES:
        yield f"{path}: {lines} lines; a file has at most {MOST_LINES}"
    for first, count in python_functions(text) if path.suffix == ".py" else cpp_functions(text):
        if count > MOST_FUNCTION_LINES:
            yield f"{path}:{first}: a function of {count} lines; they have at most {MOST_FUNCTION_LINES}"


def wide_docstrings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the numbers and the columns of the lines of docstrings that are too long."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is None:
            continue
        docstring = node.body[0]
        assert docstring.end_lineno is not None
        for number in range(docstring.lineno, docstring.end_lineno + 1):
            line = lines[number - 1]
            if len(line) > WIDTH and not line.lstrip().startswith((">>>", "...", "|")) and "http" not in line:
                yield number, len(line)


def broken_rules(files: list[Path], read: dict[Path, str]) -> list[str]:
    """Return a message for each violation."""
    found = []
    for folder, count in sorted(Counter(path.parent for path in files if path.parent not in DATA).items()):
        if count > MOST_FILES:
            found.append(f"{folder}: {count} files; a folder holds at most {MOST_FILES}: divide it into sub-folders")
    for path in files:
        if path.suffix not in COMMENT:
            continue
        found.extend(long_parts(path, read[path]))
        if path.suffix == ".py":
            for number, columns in wide_docstrings(read[path]):
                found.append(f"{path}:{number}: a line of a docstring of {columns} columns; they end at {WIDTH}")
        for number, line in enumerate(read[path].splitlines(), start=1):
            if (
                len(line) > WIDTH
                and COMMENT[path.suffix].match(line)
                and "http" not in line
                and " " in line.strip()[3:]
            ):
                found.append(f"{path}:{number}: a comment of {len(line)} columns; they end at {WIDTH}")
            if path.suffix in CODE and path.parts[0] == "packages" and BY_NUMBER.search(line):
                found.append(f"{path}:{number}: an argument is read by number: {line.strip()}")
    return found


def main() -> int:
    files = tracked_files()
    read = {path: (ROOT / path).read_text(encoding="utf-8") for path in files if path.suffix in COMMENT}
    found = broken_rules(files, read)
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
