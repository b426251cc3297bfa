"""The example in every docstring runs and prints what it says, and every public function and
operator has one.
"""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
from candelabra import composite
from candelabra.catalogue import OPERATORS
from candelabra.composite.registration import BY_OPERATOR

#: Everything documented: where it is found, and its docstring.
DOCUMENTED: dict[str, str | None] = {f"ops.{name}": operator.__doc__ for name, operator in OPERATORS.items()}
DOCUMENTED |= {name: function.__doc__ for name, function in composite.FUNCTIONS.items()}
for _module in ("backends", "defaults", "grad_mode", "numeric_info", "printing"):
    _found = __import__(f"candelabra.{_module}", fromlist=[_module])
    for _name, _object in vars(_found).items():
        if not _name.startswith("_") and inspect.getmodule(_object) is _found and callable(_object):
            DOCUMENTED[f"{_module}.{_name}"] = _object.__doc__
for _module in ("linalg", "fft", "special", "signal.windows", "serialization", "safetensors"):
    _found = importlib.import_module(f"candelabra.{_module}")
    DOCUMENTED |= {f"{_module}.{_name}": getattr(_found, _name).__doc__ for _name in _found.__all__}
METHODS: dict[str, str | None] = {f"Tensor.{name}": method.__doc__ for name, method in composite.METHODS.items()}
PROPERTIES: dict[str, str | None] = {
    f"Tensor.{name}": attribute.__doc__ for name, attribute in composite.PROPERTIES.items()
}

#: What has no example to run: it needs a device or changes the process.
WITHOUT_EXAMPLE = {
    "backends.device_properties", "backends.empty_cache", "backends.reset_peak_statistics", "backends.set_memory_limit",
    "backends.synchronize", "backends.load", "backends.distribution_text", "defaults.seed", "defaults.set_rng_state",
    "printing.tensor_text", "serialization.load",
}  # fmt: skip


@pytest.fixture(autouse=True)
def state_is_restored():
    yield
    candelabra.set_printoptions(profile="default")
    candelabra.set_default_dtype(candelabra.float32)


@pytest.mark.parametrize("name", [*DOCUMENTED, *METHODS, *PROPERTIES])
def test_has_a_docstring(name):
    text = {**DOCUMENTED, **METHODS, **PROPERTIES}[name]
    assert (text and text.strip()[0].isupper()) or text.strip()[0] in "`"
    assert "TODO" not in text


@pytest.mark.parametrize("name", [name for name in DOCUMENTED if name not in WITHOUT_EXAMPLE])
def test_has_an_example(name):
    text = DOCUMENTED[name] or ""
    assert ">>>" in text or name == "zero_", f"{name} has no example"


@pytest.mark.parametrize("name", [*DOCUMENTED, *METHODS])
def test_example_runs(name):
    text = inspect.cleandoc({**DOCUMENTED, **METHODS}[name] or "")
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report: list[str] = []
    failures = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert failures.failed == 0, "".join(report)


# Those that functions stand behind have their docstrings, which tell of all forms of a call.
@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in BY_OPERATOR])
def test_parameters_of_operators_are_documented(name):
    operator = OPERATORS[name]
    text = operator.__doc__
    missing = [p for p in operator.parameters if f"\n{p} : " not in text and p != "self"]
    assert missing == []
