"""The conformance suite: tests every operator of the catalogue on one device against NumPy and
SciPy.

``python -m candelabra.backends --verify DEVICE`` runs it. Every backend must pass this suite,
including Candelabra's own. It requires NumPy and SciPy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import candelabra
from candelabra.backends.fallback import fallback_calls
from candelabra.catalogue import FAMILIES, OPERATORS
from candelabra.catalogue.declaration import CORE, VIEW
from candelabra.testing.reference import references
from candelabra.testing.reference.random import SEED
from candelabra.testing.sampling import TOLERANCES, Input, Reference, Sample, values_of


@dataclass
class Outcome:
    """The result of one operator on one device."""

    operator: str
    kernel: bool  #: whether the backend has a kernel for it
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)  #: dtypes without an implementation
    missing: str = ""  # why it could not be run

    @property
    def state(self) -> str:
        if self.failures:
            return "FAILED"
        if self.missing:
            return "missing"
        return "passed" if self.passed else "untested"


def _materialize(value: Any, device: str) -> tuple[Any, Any]:
    """Return an argument for the call, and for the reference the values that the dtype holds."""
    if isinstance(value, Input):
        tensor = value.tensor(device)
        return tensor, values_of(tensor)
    if isinstance(value, list):
        pairs = [_materialize(element, device) for element in value]
        return [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    return value, value


def _flatten(results: Any) -> Iterator[Any]:
    if isinstance(results, (list, tuple)):
        for result in results:
            yield from _flatten(result)
    else:
        yield results


def _difference(result: candelabra.Tensor, expected: Any, tolerance: float) -> str | None:
    """Return the difference between the result and the expected value, or None."""
    wanted = np.asarray(expected)
    if tuple(result.shape) != wanted.shape:
        return f"shape {tuple(result.shape)} instead of {wanted.shape}"
    got = values_of(result)
    if wanted.dtype.kind in "fc" and got.dtype.kind in "biu":
        wanted = np.where(np.isfinite(wanted), wanted, 0)
    if got.dtype.kind in "biu":
        # A result of fewer bits wraps around, as in NumPy.
        bits = result.element_size() * 8
        wanted = wanted.astype(np.int64) if result.dtype is not candelabra.bool else wanted.astype(bool)
        if result.dtype is not candelabra.bool and bits < 64:
            wanted = wanted & ((1 << bits) - 1)
            if result.dtype.is_signed:
                wanted = np.where(wanted >> (bits - 1) & 1, wanted - (1 << bits), wanted)
        return None if np.array_equal(got, wanted) else f"{got!r} instead of {wanted!r}"
    with np.errstate(all="ignore"):
        limit = candelabra.finfo(result.dtype).max
        wanted = (
            np.where(np.abs(wanted) > limit, np.sign(wanted.real) * np.inf, wanted)
            if wanted.dtype.kind == "f"
            else wanted
        )
        close = np.isclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    if close.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{got[place]} instead of {wanted[place]} at {list(place)}"


def _run_sample(operator: Any, reference: Reference, sample: Sample, dtype: str, device: str) -> str | None:
    pairs = [_materialize(argument, device) for argument in sample.arguments]
    arguments, arrays = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    keywords = dict(sample.keywords)
    on_device = {"device": device} if "device" in operator.parameters else {}
    versions = [a._version for a in arguments if isinstance(a, candelabra.Tensor)]
    candelabra._C.manual_seed(SEED)  # the default device alone would not do: it need not be installed
    results = operator(*arguments, **keywords, **on_device)
    with np.errstate(all="ignore"):
        expected = reference.expected(*arrays, **keywords)
    if results is None:  # an operator that changes its lists in place
        results = [argument for argument in arguments if isinstance(argument, list)]
    elif (
        versions
        and "!)" not in operator.schema
        and versions != [a._version for a in arguments if isinstance(a, candelabra.Tensor)]
    ):
        return "an argument was changed"
    if reference.compare is not None:
        return reference.compare(tuple(values_of(result) for result in _flatten(results)), *arrays, **keywords)
    for number, (result, wanted) in enumerate(zip(_flatten(results), _flatten(expected), strict=True)):
        if wanted is None:
            continue
        name = str(result.dtype).rpartition(".")[2]
        tolerance = TOLERANCES.get(dtype, TOLERANCES.get(name, 0)) * reference.tolerance
        if difference := _difference(result, wanted, tolerance):
            return f"result {number}: {difference}" if number else difference
    return None


def _stable(name: str) -> int:
    """Return a seed that depends only on the name."""
    return int.from_bytes(name.encode()[:8].ljust(8, b"."), "little") % 2**32


def check_operator(name: str, device: str, reference: Reference) -> Outcome:
    """Run one operator on its samples.

    Parameters
    ----------
    name
        Of the catalogue.
    device
        For instance ``"cpu"``.
    reference
        The expected results and the samples.

    Returns
    -------
    Outcome
        The number of correct calls, and the failures of the others.
    """
    operator = OPERATORS[name]
    outcome = Outcome(name, operator.has_kernel(device))
    for dtype in reference.dtypes:
        rng = np.random.default_rng(_stable(name + dtype))
        for sample in reference.samples(rng, dtype):
            try:
                failure = _run_sample(operator, reference, sample, dtype, device)
            except NotImplementedError as error:
                outcome.refused.add(dtype)
                outcome.missing = str(error)
                break
            except Exception as error:
                failure = f"{type(error).__name__}: {error}"
            if failure:
                outcome.failures.append(f"{name}({sample}): {failure}")
            else:
                outcome.passed += 1
    if outcome.passed:
        outcome.missing = ""
    return outcome


def applicable() -> list[str]:
    """Return the operators that backends are responsible for: all but views and core operators."""
    return [name for name, operator in OPERATORS.items() if not operator.tags & (CORE | VIEW)]


def run(device: str, operators: Iterable[str] | None = None) -> list[Outcome]:
    """Run the suite on a device.

    Parameters
    ----------
    device
        For instance ``"cpu"``.
    operators
        Names of operators; None for all that backends are responsible for.

    Returns
    -------
    list of Outcome
        One for each operator, in the order of the catalogue.

    Raises
    ------
    LookupError
        An operator has no reference.

    Examples
    --------
    >>> from candelabra.testing import conformance
    >>> [outcome.state for outcome in conformance.run("cpu", ["add", "exp"])]
    ['passed', 'passed']
    """
    known = references()
    names = _with_reference(applicable() if operators is None else operators, known)
    return [check_operator(name, device, known[name]) for name in names]


def _with_reference(names: Iterable[str], known: dict[str, Reference]) -> list[str]:
    """Check that each of these names has a reference."""
    chosen = list(names)
    for name in chosen:
        if name not in known:
            raise LookupError(f"the operator {name} has no reference in candelabra.testing.reference")
    return chosen


def _kind(outcome: Outcome, device: str) -> str:
    """Return what has computed an operator."""
    if outcome.operator in fallback_calls(candelabra.device(device).type):
        return "kernel, CPU fallback" if outcome.kernel else "CPU fallback"
    return "kernel" if outcome.kernel else "composite"


def main(device: str, operators: Iterable[str] | None = None) -> int:
    """Run the suite, print a line per operator, and return 1 if a result differs, else 0.

    Operators without a kernel and without a decomposition that runs are listed as missing; they do
    not fail the suite.
    """
    known = references()
    chosen = _with_reference(applicable() if operators is None else operators, known)
    outcomes: dict[str, Outcome] = {}
    for family, names in FAMILIES.items():
        lines = [name for name in names if name in chosen]
        if not lines:
            continue
        print(family)
        for name in lines:
            # Printed before the operator runs, so that the last name identifies a crash.
            print(f"  {name:32} ", end="", flush=True)
            outcome = outcomes[name] = check_operator(name, device, known[name])
            kind = _kind(outcome, device) if outcome.passed or outcome.kernel else ""
            refused = f"  not for {', '.join(sorted(outcome.refused))}" if outcome.refused and outcome.passed else ""
            print(f"{outcome.state:8} {outcome.passed:5} calls  {kind}{refused}", flush=True)
            for failure in outcome.failures[:5]:
                print(f"      {failure}", file=sys.stderr)
            if len(outcome.failures) > 5:
                print(f"      and {len(outcome.failures) - 5} more", file=sys.stderr)
    failed = sum(bool(outcome.failures) for outcome in outcomes.values())
    missing = sum(outcome.state == "missing" for outcome in outcomes.values())
    print(f"{device}: {len(outcomes) - failed - missing} operators right, {failed} wrong, {missing} not there")
    fallbacks = fallback_calls(candelabra.device(device).type)
    if fallbacks:
        print(f"CPU fallback: {sum(fallbacks.values())} calls of {len(fallbacks)} operators")
    return int(failed > 0)
