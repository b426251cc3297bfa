"""Test device types that several distributions claim."""

from __future__ import annotations

import textwrap

import pytest
from backends import Backend, distribution, install, outcomes

VERSION = "candelabra._C.backend_info(D)['distribution']"


@pytest.fixture
def folder(tmp_path, cache):
    """Return a folder with two distributions that claim the device type "mine"."""
    install(tmp_path, cache, "first-party", Backend("mine"))
    install(tmp_path, cache, "second-party", Backend("mine"))
    return tmp_path


def run(folder, program, device="mine", **variables):
    return outcomes(folder, [("only", device, program)], **variables)["only"]


def test_two_claims_are_an_error(folder):
    found = run(folder, VERSION)
    assert found["error"] == "BackendError"
    for part in ("first-party 0.3", "second-party 0.3", "CANDELABRA_BACKEND_MINE=NAME", "select('mine', NAME)"):
        assert part in found["message"]


@pytest.mark.parametrize("name", ["first-party", "second-party", "Second_Party"])
def test_select(folder, name):
    found = run(folder, f"candelabra.backends.select(D, {name!r})\n{VERSION}")
    assert found.get("value") == repr(f"{name.lower().replace('_', '-')} 0.3"), found


def test_select_of_another_distribution(folder):
    found = run(folder, "candelabra.backends.select(D, 'third-party')")
    assert found["error"] == "BackendError"
    assert "'third-party' provides no device 'mine'" in found["message"]


def test_select_after_the_first_use(folder):
    program = "candelabra.backends.select(D, 'first-party')\ncandelabra.device(D)\ncandelabra.backends.select(D, 'second-party')"
    found = run(folder, program)
    assert found["error"] == "RuntimeError"
    assert "before its first use" in found["message"]


def test_a_choice_that_is_taken_back(folder):
    program = f"candelabra.backends.select(D, 'first-party')\ncandelabra.backends.select(D, None)\n{VERSION}"
    assert run(folder, program)["error"] == "BackendError"


def test_environment(folder):
    assert run(folder, VERSION, CANDELABRA_BACKEND_MINE="second-party").get("value") == "'second-party 0.3'"


def test_select_outranks_the_environment(folder):
    program = f"candelabra.backends.select(D, 'first-party')\n{VERSION}"
    assert run(folder, program, CANDELABRA_BACKEND_MINE="second-party").get("value") == "'first-party 0.3'"


def test_environment_with_a_wrong_name(folder):
    found = run(folder, VERSION, CANDELABRA_BACKEND_MINE="third-party")
    assert found["error"] == "BackendError"
    assert "CANDELABRA_BACKEND_MINE: 'third-party' provides no device" in found["message"]


def test_no_claim(folder):
    found = run(folder, "candelabra.ones(1, device=D)", "nowhere")
    assert found["error"] == "BackendError"
    assert "no backend for device 'nowhere' is installed" in found["message"]
    assert "mine" in found["message"]


def test_ours_is_the_default_for_cpu(tmp_path):
    distribution(tmp_path, "other-cpu", "cpu", "raise RuntimeError('this one must not be loaded')")
    program = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    total = (candelabra.ones(2) + 1).sum().item()
total, [(w.category.__name__, "other-cpu 0.3" in str(w.message), "candelabra-backend-cpu is used" in str(w.message)) for w in caught]
"""
    assert run(tmp_path, program, "cpu").get("value") == "(4.0, [('RuntimeWarning', True, True)])"


def test_a_python_kernel_that_fails_names_its_distribution(tmp_path):
    code = """
        import candelabra
        @candelabra.backends.hookimpl
        def candelabra_register_backend(registrar):
            def fail(out, a): raise ValueError("no")
            registrar.kernel("exp", fail)
            registrar.kernel("index", fail)
            registrar.kernel("nonzero", lambda allocate, a: allocate(4))
        """
    distribution(tmp_path, "python-party", "pythonic", code)
    exp = run(tmp_path, "candelabra.exp(candelabra.tensor([1.0], device=D))", "pythonic")
    assert (exp["error"], exp["message"]) == ("ValueError", "no")
    assert exp["notes"] == "in the kernel of exp for device pythonic, from python-party 0.3"
    masked = "candelabra.tensor([1.0, 0.0], device=D)[candelabra.tensor([True, False], device=D)]"
    found = run(tmp_path, masked, "pythonic")
    assert found["error"] == "BackendError", found
    assert "python-party 0.3" in found["message"]
    assert "the operator declares" in found["message"]


BESIDE_A_LIBRARY = """
    import pathlib
    import candelabra
    @candelabra.backends.hookimpl
    def candelabra_register_backend(registrar):
        def doubled(out, a):
            host = a.to("cpu")
            out.copy_(host + host)
        registrar.library(pathlib.Path(__file__).with_name("libapart_party.so"))
        registrar.kernel("exp", lambda out, a: a.numpy())
        registrar.kernel("log", lambda out, a: memoryview(a))
        registrar.kernel("sin", doubled)
    """


def test_a_python_kernel_on_memory_that_the_host_cannot_read(tmp_path, cache):
    """It may copy to the host and back. Otherwise the error names the operator and the way out."""
    install(tmp_path, cache, "apart-party", Backend("apart"))
    (tmp_path / "apart_party.py").write_text(textwrap.dedent(BESIDE_A_LIBRARY))
    x = "candelabra.tensor([[1.0, 2.0], [3.0, 4.0]], device=D)"
    assert run(tmp_path, f"candelabra.sin({x}).tolist()", "apart").get("value") == "[[2.0, 4.0], [6.0, 8.0]]"
    assert run(tmp_path, f"candelabra.sin({x}.t()).tolist()", "apart").get("value") == "[[2.0, 6.0], [4.0, 8.0]]"
    for name, error in (("exp", "TypeError"), ("log", "BufferError")):
        found = run(tmp_path, f"candelabra.{name}({x})", "apart")
        assert found["error"] == error, found
        assert found["notes"].startswith(f"in the kernel of {name} for device apart")
        assert 'a.to("cpu")' in found["notes"] and "out.copy_()" in found["notes"]
