"""The headers that tools/make_headers.py writes from the catalogue agree with the operators'
schemas.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from candelabra.catalogue import FAMILIES, OPERATORS
from candelabra.catalogue.declaration import FACTS

TOOL = Path(__file__).parents[2] / "tools" / "make_headers.py"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason="not run from the source tree")


def write_headers(folder: Path, *options: str) -> Path:
    """Run the tool in a process of its own, because it imports the catalogue without the compiled
    core.

    Without site packages (``-S``): an editable install of another checkout would give that one's
    catalogue.
    """
    done = subprocess.run(
        [sys.executable, "-S", str(TOOL), str(folder), *options], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return folder / "candelabra"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("make_headers", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    return write_headers(tmp_path_factory.mktemp("headers"))


def in_cpp(tool, name: str) -> str:
    return f"{name}_" if name in tool.RESERVED else name


def namespace_of(tool, name: str) -> str:
    """``_fused_adam_`` is ``fused_adam``; an operator beside one of the same name is
    ``bernoulli_in_place``.
    """
    in_place = "_in_place" if name.endswith("_") and name[:-1] in OPERATORS else ""
    return in_cpp(tool, name.strip("_") + in_place)


def test_positions_are_those_of_the_schemas(tool, generated):
    text = (generated / "positions.hpp").read_text()
    written = {
        name: tuple(names.split(", "))
        for name, names in re.findall(r"namespace (\w+) \{\nenum Position : int \{ (.+) \};\n\}", text)
    }
    expected = {
        namespace_of(tool, name): tuple(in_cpp(tool, parameter) for parameter in operator.parameters)
        for name, operator in OPERATORS.items()
        if operator.parameters
    }
    assert written == expected


def test_positions_in_c_are_those_of_the_schemas(generated):
    text = (generated / "positions.h").read_text()
    written = [tuple(names.split(", ")) for names in re.findall(r"enum \{ (.+) \};", text)]
    operators = [(name, operator.parameters) for name, operator in OPERATORS.items() if operator.parameters]
    assert len(written) == len(operators)
    for names, (operator, parameters) in zip(written, operators, strict=True):
        prefix = "CB_" + operator.strip("_").upper() + "_"
        if operator.endswith("_") and operator[:-1] in OPERATORS:
            prefix += "IN_PLACE_"
        assert names == tuple(prefix + parameter.upper() for parameter in parameters)
    # Enumerators of C share one namespace.
    every = [name for names in written for name in names]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("family", FAMILIES)
def test_structs_read_each_argument_at_its_position(tool, generated, family):
    text = (generated / "arguments" / f"{family}.hpp").read_text()
    structs = re.findall(
        r"^// (\w+)\(.+\nstruct (\w+) \{\n((?:  .+\n)+)\n  explicit (\w+)\(const kernel::Call& call\)\n((?:.+\n)+?)\};",
        text,
        re.M,
    )
    assert structs
    assert len(structs) == len(re.findall(r"^struct ", text, re.M))
    assert {name for name, *_ in structs} <= set(FAMILIES[family])
    for name, struct, fields, constructor, initializers in structs:
        assert struct == constructor
        declared = re.findall(r"(\w+);$", fields, re.M)
        read = re.findall(r"(\w+)\(call\.(\w+)\((\d+)\)\)", initializers)
        assert [field for field, _, _ in read] == declared  # members are initialized in this order
        parameters = [in_cpp(tool, parameter) for parameter in OPERATORS[name].parameters]
        for field, reader, position in read:
            parameter = (
                field.removesuffix("_number") if reader == "optional_scalar" and field not in parameters else field
            )
            assert parameters[int(position)] == parameter, (name, field)


def test_parse_arguments(tool):
    schema = (
        "tricky(Tensor(a!)[] params, Tensor?[] indices, Tensor(b!)? out, int[2]? stride=(1, 2), int[] padding=0, *, "
        "Scalar? end=nan, float eps=1e-5, str? mode='sum', bool[] needs=(True, False), object layout=None) -> (Tensor(a!) x, Tensor y)"
    )
    arguments = tool.parse_arguments(schema)
    assert [(argument.name, argument.kind) for argument in arguments] == [
        ("params", "Tensor[]"), ("indices", "Tensor?[]"), ("out", "Tensor?"), ("stride", "int[]?"), ("padding", "int[]"),
        ("end", "Scalar?"), ("eps", "float"), ("mode", "str?"), ("needs", "bool[]"), ("layout", "object"),
    ]  # fmt: skip
    assert [argument.position for argument in arguments] == list(range(10))


def test_parse_arguments_of_none(tool):
    assert tool.parse_arguments("barrier() -> ()") == ()


@pytest.mark.parametrize("parameters", ["Tensor", "Tensor self, int[ k", "Tensor self other", "Tensor self, , int"])
def test_parse_arguments_refuses_what_it_cannot_read(tool, parameters):
    with pytest.raises(ValueError, match="cannot read the parameter"):
        tool.parse_arguments(f"broken({parameters}) -> Tensor")


def row(tool, schema: str, family: str = "made_up", numbers: bool = False):
    name = schema[: schema.index("(")]
    words = tuple(word for word in name.split("_") if word)
    return tool.Row(name, family, schema, "formula", 0, (), numbers, tool.parse_arguments(schema), words)


def test_reserved_words_get_an_underscore(tool):
    texts = tool.headers([row(tool, "xor(Tensor self, bool default) -> Tensor")])
    assert "namespace xor_ {\nenum Position : int { self, default_ };\n}" in texts["positions.hpp"]
    assert "enum { CB_XOR_SELF, CB_XOR_DEFAULT };" in texts["positions.h"]
    assert "bool default_;" in texts["arguments/made_up.hpp"]


def test_numbers_in_place_of_tensors_have_fields_of_their_own(tool):
    schema = "mix(Tensor self, Tensor? other, Scalar alpha) -> Tensor"
    text = tool.headers([row(tool, schema, numbers=True)])["arguments/made_up.hpp"]
    assert re.findall(r"  (.+) (\w+);", text) == [
        ("const cb_tensor*", "self"), ("const cb_scalar*", "self_number"), ("const cb_tensor*", "other"), ("const cb_scalar*", "alpha"),
    ]  # fmt: skip
    assert "self_number" not in tool.headers([row(tool, schema)])["arguments/made_up.hpp"]


def test_arguments_that_no_kernel_sees_have_positions_only(tool):
    texts = tool.headers(
        [row(tool, "make(int[] size, device? device=None) -> Tensor"), row(tool, "move(device device) -> Tensor")]
    )
    assert "enum Position : int { size, device };" in texts["positions.hpp"]
    assert f"call.ints({0})" in texts["arguments/made_up.hpp"]
    assert "device;" not in texts["arguments/made_up.hpp"]
    assert "struct Move" not in texts["arguments/made_up.hpp"]


def test_rows_are_those_of_the_catalogue(generated):
    text = (generated / "operator_rows.hpp").read_text()
    written = re.findall(r'^    \{"(\w+)", "(.*)", "(\w+)", (\d+), (\d+)\},$', text, re.M)
    assert [name for name, *_ in written] == sorted(OPERATORS)
    for name, parameters, rule, tags, refused in written:
        operator, facts = OPERATORS[name], FACTS[name]
        assert [one.rpartition(" ")[2] for one in parameters.split(", ") if one] == list(operator.parameters)
        assert [one.partition(" ")[0].endswith("!") for one in parameters.split(", ") if one] == [
            "!" in kind for kind in operator.parameter_types
        ]
        assert (rule, int(tags)) == (facts.shape, operator.tags)
        assert int(refused).bit_count() == len(facts.refuses)


def test_collisions_of_names_raise(tool):
    rows = [
        row(tool, "fused_adam(Tensor self) -> Tensor"),
        row(tool, "fused__adam_(Tensor self) -> Tensor", "other_family"),
    ]
    with pytest.raises(ValueError, match=r"fused_adam and fused__adam_ would both be arguments::FusedAdam"):
        tool.headers(rows)


def test_unchanged_files_are_not_rewritten(tmp_path):
    target = write_headers(tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in target.rglob("*.h*")}
    changed = target / "arguments" / "sorting.hpp"
    changed.write_text("stale")
    write_headers(tmp_path)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in target.rglob("*.h*")}
    assert after.keys() == before.keys()
    assert [path for path in after if after[path] != before[path]] == [changed]
    assert after[changed][1] == before[changed][1]


def test_with_headers_gives_a_complete_folder(tmp_path):
    stale = tmp_path / "candelabra" / "arguments" / "removed_family.hpp"
    stale.parent.mkdir(parents=True)
    stale.write_text("stale")
    target = write_headers(tmp_path, "--with-headers")
    assert not stale.exists()
    include = TOOL.parents[1] / "include" / "candelabra"
    for path in include.rglob("*.h*"):
        assert (target / path.relative_to(include)).read_bytes() == path.read_bytes()
    assert {"positions.h", "positions.hpp", "arguments/sorting.hpp"} <= {
        str(path.relative_to(target)) for path in target.rglob("*.h*")
    }
