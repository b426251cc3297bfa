"""The conformance suite on the CPU, one test an operator; and the suite itself: that it sees what
is wrong.
"""

from __future__ import annotations

import numpy as np
import pytest

import candelabra
from candelabra.testing import conformance
from candelabra.testing.reference import references
from candelabra.testing.sampling import Reference, Sample

REFERENCES = references()


@pytest.mark.parametrize("name", conformance.applicable())
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*degrees of freedom.*:UserWarning")
def test_operator_conforms(name):
    outcome = conformance.check_operator(name, "cpu", REFERENCES[name])
    assert outcome.failures == []
    assert outcome.state == "passed"


def test_every_operator_has_a_reference():
    assert set(conformance.applicable()) <= set(REFERENCES)


@pytest.mark.parametrize("wrong", [lambda a: a + 1, lambda a: a[:0], lambda a: np.where(np.isnan(a), 0, a)])
def test_a_wrong_result_is_seen(wrong):
    reference = Reference(wrong, REFERENCES["neg"].samples, ("float64",))
    assert conformance.check_operator("neg", "cpu", reference).state == "FAILED"


def test_an_exception_is_a_failure():
    def samples(rng, dtype):
        yield Sample(("no tensor",))

    outcome = conformance.check_operator("neg", "cpu", Reference(np.negative, samples, ("float64",)))
    assert outcome.state == "FAILED"
    assert "TypeError" in outcome.failures[0]


def test_a_changed_argument_is_seen(monkeypatch):
    class Changing:
        """An operator that also writes to its argument."""

        name, schema, parameters = "neg", "neg(Tensor self) -> Tensor", ("self",)

        def __call__(self, a):
            return a.add_(0)

        def has_kernel(self, device):
            return True

    monkeypatch.setitem(conformance.OPERATORS, "neg", Changing())
    outcome = conformance.check_operator("neg", "cpu", Reference(np.negative, REFERENCES["neg"].samples, ("float64",)))
    assert "an argument was changed" in outcome.failures[0]


def test_main_reports(capsys):
    assert conformance.main("cpu", ["add", "exp"]) == 0
    assert "cpu: 2 operators right, 0 wrong, 0 not there" in capsys.readouterr().out


def test_unknown_operator():
    with pytest.raises(LookupError, match="no_such_operator has no reference"):
        conformance.run("cpu", ["no_such_operator"])


def test_devices_are_checked():
    with pytest.raises(candelabra.BackendError, match="nowhere"):
        conformance.run("nowhere", ["add"])
