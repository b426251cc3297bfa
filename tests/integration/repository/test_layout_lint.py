"""Test that tools/lint_layout.py reports what is too long or too wide, and arguments by index."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "lint_layout.py"


def _broken(name: str, text: str, copies: int = 1) -> list[str]:
    specification = importlib.util.spec_from_file_location("lint_layout", TOOL)
    assert specification is not None
    assert specification.loader is not None
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    path = Path(name)
    files = [path.with_stem(f"{path.stem}{number}" if number else path.stem) for number in range(copies)]
    return tool.broken_rules(files, dict.fromkeys(files, text))


def test_a_full_folder():
    assert _broken("packages/nn/src/a.py", "", 30) == []
    (line,) = _broken("packages/nn/src/a.py", "", 31)
    assert line.startswith("packages/nn/src: 31 files")
    (line,) = _broken("tests/integration/a.py", "", 31)
    assert line.startswith("tests/integration: 31 files")
    assert _broken("tests/ecosystem/programs/a.py", "", 31) == []  # tests' data


def test_long_files():
    assert _broken("packages/a/src/a.cpp", "\n" * 600) == []
    (line,) = _broken("packages/a/src/a.cpp", "\n" * 601)
    assert line == "packages/a/src/a.cpp: 601 lines; a file has at most 600"
    assert _broken("noxfile.py", "\n" * 601) == []  # named, with its reason


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int long_one(int x) {", "}"),
        ("int short_one() { return 1; }\nint long_one(int x) {", "}"),
        ('namespace a::b {\nextern "C" {\ntemplate <class T, int n>\nT long_one(T x) {', "}\n}\n}"),
        ("struct A : B<int> {\n A() : a{1}, b(2) { run(); }\n public:\n  int long_one() const {", "}\n};"),
        ("const Row rows[] = {\n  {1, 2},\n};\nauto long_one(int x) -> std::pair<int, int> {", "}"),
        ("const auto long_one = [](int x) {", "};"),
        ("__global__ void __launch_bounds__(256) long_one(int* x) {", "}"),
        ("int long_one() {\n  const auto part = [&] {", "};\n}"),
        ("#define OPEN {\\\n  {\nint long_one() {  // {\n  /* {\n */ const char open = '{', *text = \"{\";", "}"),
        ('int long_one() {\n  const int count = 1\'000;\n  text = R"x({")" {)x";', "}"),
    ],
)
def test_long_functions(before, after):
    first = next(number for number, line in enumerate(before.split("\n"), start=1) if "long_one" in line)
    first -= "template" in before
    around = len(before.split("\n")) - first + 1 + ("part" in before) + 1
    path = "packages/a/src/a.cpp"
    assert _broken(path, "\n".join([before, *["  f();"] * (80 - around), after])) == []
    (line,) = _broken(path, "\n".join([before, *["  f();"] * (81 - around), after]))
    assert line == f"{path}:{first}: a function of 81 lines; they have at most 80"


def test_long_tables_and_classes():
    rows = "  {1, 2},\n" * 100
    assert _broken("packages/a/src/a.cpp", f"constexpr Row rows[] = {{\n{rows}}};\n") == []
    assert _broken("packages/a/src/a.cpp", f"const std::vector<Row> rows(3) = {{\n{rows}}};\n") == []
    assert (
        _broken("packages/a/src/a.hpp", "class A final : public B {\n" + "  int a() { return 1; }\n" * 100 + "};\n")
        == []
    )


def test_braces_that_do_not_pair():
    with pytest.raises(ValueError, match="do not pair"):
        _broken("packages/a/src/a.cpp", "#if A\nvoid f() {\n#else\nvoid g() {\n#endif\n}\n")


def test_long_python_functions():
    path, body = "packages/a/src/a.py", "        x = 1\n"
    for opening in (
        "    def f():\n",
        "    async def f():\n",
        '    def f():\n        """One.\n\n        Two.\n        """\n',
    ):
        assert _broken(path, f"class A:\n{opening}{body * 79}") == []
        (line,) = _broken(path, f"class A:\n{opening}{body * 80}")
        assert line == f"{path}:2: a function of 81 lines; they have at most 80"


def test_wide_comments():
    words = "word " * 24
    for name, mark in (("packages/a/src/a.cpp", "//"), ("tests/a.py", "#")):
        (line,) = _broken(name, f"x = 1;\n{mark} {words}\n")
        assert line.startswith(f"{name}:2: a comment of")
        assert _broken(name, f"{mark}   {words}\n") == []  # code and tables are exempt
        assert _broken(name, f"{mark} short\n") == []


def test_wide_docstrings():
    path = "packages/a/src/a.py"
    assert _broken(path, f'"""{"word " * 18}."""\n') == []
    (line,) = _broken(path, f'def f():\n    """{"word " * 19}."""\n')
    assert line.startswith(f"{path}:2: a line of a docstring of 106 columns")
    assert _broken(path, f'"""Sum.\n\n>>> {"f(x) " * 30}\n"""\n') == []  # an example


def test_arguments_by_number():
    (line,) = _broken("packages/a/src/a.cpp", "const bool amsgrad = call.boolean(10);\n")
    assert "call.boolean(10)" in line
    assert _broken("packages/a/src/a.cpp", "const bool amsgrad = args.amsgrad;\n") == []
    assert _broken("packages/a/src/a.cpp", "const cb_tensor& x = call.tensor(at::self);\n") == []
