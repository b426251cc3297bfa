"""Test that warnings point at the line of the program, through frames of Candelabra."""

import ast
import warnings
from pathlib import Path

import pytest

import candelabra as c
from candelabra import _C

ROOT = Path(__file__).parents[4]


def here(caught) -> list[str]:
    return [Path(warning.filename).name for warning in caught]


@pytest.mark.parametrize(
    "call",
    [
        lambda: c.meshgrid(c.ones(2), c.ones(3)),
        lambda: c.ones(2, 3, 4).T,
        lambda: c.cov(c.ones(2, 1)),
        lambda: c.ones(2).resize(2),
        lambda: c.pytree.register_pytree_node(type("Again", (), {}), list, lambda values, context: values),
    ],
)
def test_warnings_are_at_the_line_of_the_call(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
        call()
    assert set(here(caught)) <= {Path(__file__).name}


def test_each_line_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            c.cov(c.ones(2, 1))
        c.cov(c.ones(2, 1))
    assert here(caught) == [Path(__file__).name] * 2


def test_frames_of_candelabra_and_of_wrappers_are_passed():
    namespace = {"_C": _C, "__name__": "candelabra_backend_somebodys"}
    exec("def warn(): _C.warn('below', FutureWarning)", namespace)
    with pytest.warns(FutureWarning, match="below") as caught:
        namespace["warn"]()
    assert here(caught) == [Path(__file__).name]


def test_without_a_line_of_the_program_the_innermost_one_is_named():
    source = "import warnings; from candelabra import _C\nwith warnings.catch_warnings(record=True) as caught:\n    _C.warn('alone')\n"
    namespace = {"__name__": "candelabra"}
    code = compile(source, "<program>", "exec")
    from threading import Thread

    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        thread = Thread(target=exec, args=(code, namespace))
        thread.start()
        thread.join()
    assert [type(warning.message) for warning in namespace["caught"]] == [UserWarning]


def test_a_category_is_a_class_of_warnings():
    with pytest.raises(TypeError, match="subclass of Warning"):
        _C.warn("text", ValueError)


@pytest.mark.skipif(not (ROOT / "noxfile.py").exists(), reason="needs the repository")
def test_no_package_counts_frames_by_hand():
    found = []
    for path in ROOT.glob("packages/*/*/candelabra*/**/*.py"):
        if "include" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn":
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == [], "candelabra._C.warn() finds the line of the program"
