"""What a special value gives does not depend on what is beside it: kernels take quick ways for
blocks of ordinary numbers.
"""

import numpy as np
import pytest

import candelabra
from candelabra.catalogue import FAMILIES, OPERATORS
from candelabra.testing.reference import references

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-310, 3e38, -3e38, 1.7e308, 88.8, -104.0, 710.0, -746.0,
    1e20, -1e20, 2.0**53, 0.9999999, 1.0000001,
]  # fmt: skip


def tensors(name):
    """How many tensors the operator takes, where it takes nothing else."""
    schema = OPERATORS[name].schema
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")].split("*")[0]
    required = [part.strip() for part in inside.split(",") if part.strip() and "=" not in part]
    return len(required) if all(part.startswith("Tensor ") for part in required) else 0


REFERENCES = references()
#: Those of floating-point numbers; some are of integers only.
NAMES = [
    name for family in ("elementwise", "special") for name in FAMILIES[family]
    if 1 <= tensors(name) <= 2 and name != "clamp" and name in REFERENCES and "float64" in REFERENCES[name].dtypes
]  # fmt: skip


def results(name, *arguments):
    made = OPERATORS[name](*arguments)
    return [part.numpy() for part in (made if isinstance(made, tuple) else (made,))]


def assert_same_bits(alone, beside):
    """Equal, NaN like NaN, zeros with their signs."""
    np.testing.assert_array_equal(alone, beside)
    if alone.dtype.kind == "f":
        numbers = ~np.isnan(alone)
        np.testing.assert_array_equal(np.signbit(alone[numbers]), np.signbit(beside[numbers]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_alone_and_beside_others(name, dtype):
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL).astype(dtype)
    count = len(values)
    # degrees of polynomials are few and small: the time goes with them
    few = (
        [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-45, 3e38]
        if "polynomial" not in name
        else [0.0, 1.0, 3.0, 6.0]
    )
    seconds = np.array(few, dtype)
    pairs = (
        [np.repeat(values, len(seconds)), np.tile(seconds, count)][: tensors(name)] if tensors(name) == 2 else [values]
    )
    beside = results(name, *(candelabra.tensor(column) for column in pairs))
    # each of them 40 times, which is more than any vector holds, and its row in a block of its own
    for i in range(len(pairs[0])):
        alone = results(
            name, *(candelabra.full((40,), float(column[i]), dtype=getattr(candelabra, dtype)) for column in pairs)
        )
        for part, mixed in zip(alone, beside, strict=True):
            assert_same_bits(part, np.repeat(mixed[i : i + 1], 40))
