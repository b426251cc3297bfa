"""Every elementwise operator against its NumPy reference, over random shapes and layouts, with
broadcasting.
"""

import warnings

import numpy
import pytest
from drawing import layouts, pair, same, seeds, shapes
from hypothesis import given, settings
from hypothesis import strategies as st

import candelabra
from candelabra.catalogue import FAMILIES, OPERATORS
from candelabra.testing.reference import references

REFERENCES = references()


def tensor_count(operator):
    """How many tensors the operator takes, or None where it needs something else, or more than one
    dtype.
    """
    inside = operator.schema[operator.schema.index("(") + 1 : operator.schema.rindex(") ->")]
    kinds = [part.strip() for part in inside.split(",") if part.strip()]
    required = [kind for kind in kinds[: kinds.index("*")] if "*" in kinds] if "*" in kinds else kinds
    required = [kind for kind in required if "=" not in kind]
    return len(required) if required and all(kind.startswith("Tensor ") for kind in required) else None


#: Those whose arguments are of several dtypes or are restricted: drawn in test_special.py,
#: test_loss.py and the conformance suite.
_OTHERS = {"where", "polar", "complex", "special_zeta", "view_as_complex"}
#: Numbers that follow the tensors.
_NUMBERS = {
    "clamp": (1, 2), "hardshrink": (0.5,), "softshrink": (0.5,), "shrink_backward": (0.5,), "hardtanh_backward": (-1.0, 1.0),
    "leaky_relu_backward": (0.1,), "elu_backward": (1.5, 1.0, 0.5), "softplus_backward": (2.0, 20.0),
}  # fmt: skip
CASES = [
    (name, tensor_count(OPERATORS[name]))
    for family in ("elementwise", "special")
    for name in FAMILIES[family]
    if name in REFERENCES and name not in _OTHERS and tensor_count(OPERATORS[name]) is not None
    and OPERATORS[name].result_count == 1 and REFERENCES[name].compare is None
]  # fmt: skip
DTYPES = ("float64", "float32", "int64", "bool", "complex128", "uint8")


def shrunk(draw, shape):
    """A shape that broadcasts with `shape`."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(draw(st.sampled_from([1, size])) for size in kept)


@pytest.mark.parametrize(("name", "count"), CASES, ids=[name for name, _ in CASES])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data(), shape=shapes, seed=seeds)
def test_operator(name, count, data, shape, seed):
    reference = REFERENCES[name]
    dtype = data.draw(
        st.sampled_from([dtype for dtype in DTYPES if dtype in reference.dtypes] or list(reference.dtypes)[:1])
    )
    random = numpy.random.default_rng(seed)
    drawn = [
        pair(random, dtype, shape if i == 0 else shrunk(data.draw, shape), data.draw(layouts)) for i in range(count)
    ]
    tensors, arrays = [tensor for tensor, _ in drawn], [array for _, array in drawn]
    if name in ("floor_divide", "remainder", "fmod", "div", "gcd", "lcm", "pow") and dtype in ("int64", "uint8"):
        arrays = [numpy.abs(array) + 1 if i else array for i, array in enumerate(arrays)]
        tensors = [tensors[0], *(candelabra.tensor(array) for array in arrays[1:])]
    if "shift" in name:
        arrays = [arrays[0], numpy.abs(arrays[1])]
        tensors = [tensors[0], candelabra.tensor(arrays[1])]
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wide = [array.astype({"float32": "float64"}.get(dtype, dtype)) for array in arrays]
        made = OPERATORS[name](*tensors, *_NUMBERS.get(name, ()))
        if made.dtype.is_floating_point and dtype in ("int64", "uint8", "bool"):
            wide = [array.astype("float64") for array in arrays]  # NumPy would compute in half precision
        expected = reference.expected(*wide, *_NUMBERS.get(name, ()))
    tolerance = {"float32": 2e-4, "float64": 1e-8, "complex128": 1e-8}.get(dtype, 1e-5)
    expected = numpy.asarray(expected)
    if expected.dtype.kind in "fc" and made.dtype in (candelabra.float32, candelabra.float64):
        finite = numpy.isfinite(expected) & (numpy.abs(expected) < 1e6)
        assert tuple(made.shape) == expected.shape
        # Beside poles, single precision is far off in a way that says nothing; elsewhere it has to
        # agree.
        numpy.testing.assert_allclose(made.numpy()[finite], expected[finite], rtol=tolerance, atol=tolerance)
        assert numpy.array_equal(numpy.isnan(made.numpy()), numpy.isnan(expected))
    else:
        same(made, expected, tolerance)


def test_nothing_is_left_out():
    tested = {name for name, _ in CASES}
    left = {name for name in FAMILIES["elementwise"] if name in REFERENCES} - tested
    assert len(tested) > 100, sorted(left)
