"""The array object of the standard: indexing, attributes, conversions, exchange, and the namespace
with its signatures.
"""

from __future__ import annotations

import copy
import doctest
import inspect
import math
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

from array_api_arrays import ALL, INTEGRAL, NUMERIC, SHAPES, check, numpy_arrays, to_numpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from hypothesis.extra.array_api import make_strategies_namespace

import candelabra
import candelabra.array_api as xp

fast = settings(derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
xps = make_strategies_namespace(xp, api_version="2024.12")


# ---- the namespace


#: Every function of the standard, version 2024.12, with its parameters.
SIGNATURES = {
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)", "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "empty": "(shape, *, dtype=None, device=None)", "empty_like": "(x, /, *, dtype=None, device=None)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)", "from_dlpack": "(x, /, *, device=None, copy=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)", "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)", "meshgrid": "(*arrays, indexing='xy')",
    "ones": "(shape, *, dtype=None, device=None)", "ones_like": "(x, /, *, dtype=None, device=None)", "tril": "(x, /, *, k=0)",
    "triu": "(x, /, *, k=0)", "zeros": "(shape, *, dtype=None, device=None)", "zeros_like": "(x, /, *, dtype=None, device=None)",
    "astype": "(x, dtype, /, *, copy=True, device=None)", "can_cast": "(from_, to, /)", "finfo": "(type, /)", "iinfo": "(type, /)",
    "isdtype": "(dtype, kind)", "result_type": "(*arrays_and_dtypes)", "clip": "(x, /, min=None, max=None)",
    "take": "(x, indices, /, *, axis=None)", "take_along_axis": "(x, indices, /, *, axis=-1)", "matmul": "(x1, x2, /)",
    "matrix_transpose": "(x, /)", "tensordot": "(x1, x2, /, *, axes=2)", "vecdot": "(x1, x2, /, *, axis=-1)",
    "broadcast_arrays": "(*arrays)", "broadcast_to": "(x, /, shape)", "concat": "(arrays, /, *, axis=0)", "expand_dims": "(x, /, axis)",
    "flip": "(x, /, *, axis=None)", "moveaxis": "(x, source, destination, /)", "permute_dims": "(x, /, axes)",
    "repeat": "(x, repeats, /, *, axis=None)", "reshape": "(x, /, shape, *, copy=None)", "roll": "(x, /, shift, *, axis=None)",
    "squeeze": "(x, /, axis)", "stack": "(arrays, /, *, axis=0)", "tile": "(x, repetitions, /)", "unstack": "(x, /, *, axis=0)",
    "argmax": "(x, /, *, axis=None, keepdims=False)", "argmin": "(x, /, *, axis=None, keepdims=False)",
    "count_nonzero": "(x, /, *, axis=None, keepdims=False)", "nonzero": "(x, /)",
    "searchsorted": "(x1, x2, /, *, side='left', sorter=None)", "where": "(condition, x1, x2, /)", "unique_all": "(x, /)",
    "unique_counts": "(x, /)", "unique_inverse": "(x, /)", "unique_values": "(x, /)",
    "argsort": "(x, /, *, axis=-1, descending=False, stable=True)", "sort": "(x, /, *, axis=-1, descending=False, stable=True)",
    "cumulative_prod": "(x, /, *, axis=None, dtype=None, include_initial=False)",
    "cumulative_sum": "(x, /, *, axis=None, dtype=None, include_initial=False)", "max": "(x, /, *, axis=None, keepdims=False)",
    "mean": "(x, /, *, axis=None, keepdims=False)", "min": "(x, /, *, axis=None, keepdims=False)",
    "prod": "(x, /, *, axis=None, dtype=None, keepdims=False)", "std": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "sum": "(x, /, *, axis=None, dtype=None, keepdims=False)", "var": "(x, /, *, axis=None, correction=0.0, keepdims=False)",
    "all": "(x, /, *, axis=None, keepdims=False)", "any": "(x, /, *, axis=None, keepdims=False)",
    "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None)", "__array_namespace_info__": "()",
    **dict.fromkeys(
        ["abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "negative", "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt", "tan", "tanh", "trunc"], "(x, /)"
    ),
    **dict.fromkeys(
        ["add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow", "remainder", "subtract"], "(x1, x2, /)"
    ),
    "linalg.cholesky": "(x, /, *, upper=False)", "linalg.cross": "(x1, x2, /, *, axis=-1)", "linalg.det": "(x, /)",
    "linalg.diagonal": "(x, /, *, offset=0)", "linalg.eigh": "(x, /)", "linalg.eigvalsh": "(x, /)", "linalg.inv": "(x, /)",
    "linalg.matmul": "(x1, x2, /)", "linalg.matrix_norm": "(x, /, *, keepdims=False, ord='fro')", "linalg.matrix_power": "(x, n, /)",
    "linalg.matrix_rank": "(x, /, *, rtol=None)", "linalg.matrix_transpose": "(x, /)", "linalg.outer": "(x1, x2, /)",
    "linalg.pinv": "(x, /, *, rtol=None)", "linalg.qr": "(x, /, *, mode='reduced')", "linalg.slogdet": "(x, /)",
    "linalg.solve": "(x1, x2, /)", "linalg.svd": "(x, /, *, full_matrices=True)", "linalg.svdvals": "(x, /)",
    "linalg.tensordot": "(x1, x2, /, *, axes=2)", "linalg.trace": "(x, /, *, offset=0, dtype=None)",
    "linalg.vecdot": "(x1, x2, /, *, axis=-1)", "linalg.vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)",
    **dict.fromkeys([f"fft.{name}" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")], "(x, /, *, n=None, axis=-1, norm='backward')"),
    **dict.fromkeys([f"fft.{name}" for name in ("fftn", "ifftn", "rfftn", "irfftn")], "(x, /, *, s=None, axes=None, norm='backward')"),
    **dict.fromkeys(("fft.fftfreq", "fft.rfftfreq"), "(n, /, *, d=1.0, dtype=None, device=None)"),
    **dict.fromkeys(("fft.fftshift", "fft.ifftshift"), "(x, /, *, axes=None)"),
}  # fmt: skip


def found(name: str) -> Any:
    module: Any = xp
    for part in name.split("."):
        module = getattr(module, part)
    return module


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name: str) -> None:
    signature = inspect.signature(found(name))
    bare = signature.replace(
        parameters=[p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    assert str(bare) == SIGNATURES[name]


METHODS = {
    "__array_namespace__": "(self, /, *, api_version=None)", "to_device": "(self, device, /, *, stream=None)",
    "__dlpack__": "(self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
    "__getitem__": "(self, key, /)", "__setitem__": "(self, key, value, /)",
    **dict.fromkeys(("__abs__", "__neg__", "__pos__", "__invert__", "__bool__", "__index__", "__complex__"), "(self, /)"),
    **{
        f"__{prefix}{name}__": "(self, other, /)"
        for prefix in ("", "i", "r")
        for name in (
            "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul",
        )
    },
    **{f"__{name}__": "(self, other, /)" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str) -> None:
    method = getattr(xp.Array, name)
    try:
        signature = inspect.signature(method)
    except ValueError:
        assert callable(method)  # written in C, without a signature to be read
        return
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    assert str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty)) == METHODS[name]


def test_everything_exported_is_of_the_standard() -> None:
    constants = {"e", "inf", "nan", "newaxis", "pi", "linalg", "fft", "Array", "__array_api_version__", *ALL}
    assert set(xp.__all__) == {name for name in SIGNATURES if "." not in name} | constants
    for extension in ("linalg", "fft"):
        names = {name.partition(".")[2] for name in SIGNATURES if name.startswith(extension + ".")}
        assert set(found(extension).__all__) == names
    assert xp.__array_api_version__ == "2024.12"
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(xp.nan)


@pytest.mark.parametrize("name", SIGNATURES)
def test_example(name: str) -> None:
    function = found(name)
    assert ">>>" in function.__doc__
    for test in doctest.DocTestFinder(recurse=False).find(function, name, globs={}):
        assert doctest.DocTestRunner().run(test).failed == 0


def test_namespace_of_arrays_and_tensors() -> None:
    for x in (xp.ones(1), candelabra.ones(1)):
        assert x.__array_namespace__() is xp
        for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            assert x.__array_namespace__(api_version=version) is xp
        with pytest.raises(ValueError, match="not served"):
            x.__array_namespace__(api_version="2019.1")


def test_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert candelabra.device("cpu") in info.devices()
    assert info.default_device() == xp.ones(1).device
    assert info.default_dtypes() == {
        "real floating": xp.float32, "complex floating": xp.complex64, "integral": xp.int64, "indexing": xp.int64
    }  # fmt: skip
    assert {*info.dtypes()} == {*ALL}
    assert {*info.dtypes(kind="integral")} == {*INTEGRAL}
    assert {*info.dtypes(kind=("bool", "real floating"))} == {"bool", "float32", "float64"}
    assert {*info.dtypes(device="cpu", kind="numeric")} == {*NUMERIC}
    with pytest.raises(ValueError, match="unknown kind"):
        info.dtypes(kind="strings")
    assert xp.ones((1,) * 64).ndim == 64


# ---- attributes and conversions


def test_attributes() -> None:
    x = xp.asarray(np.arange(6.0).reshape(2, 3))
    assert (x.shape, x.ndim, x.dtype, x.device) == ((2, 3), 2, xp.float64, candelabra.device("cpu"))
    assert isinstance(x.size, int)
    assert x.size == 6
    assert x.size() == (2, 3)
    assert x.size(-1) == 3
    assert pickle.loads(pickle.dumps(x.size)) == 6
    check(x.T, np.arange(6.0).reshape(2, 3).T)
    check(xp.ones((4, 2, 3)).mT, np.ones((4, 3, 2), np.float32))
    with pytest.raises(ValueError, match="2 dimensions"):
        _ = xp.ones(3).T
    with pytest.raises(ValueError, match="2 dimensions or more"):
        _ = xp.ones(3).mT
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)
    assert hash(x) == hash(x)


def test_arrays_are_tensors() -> None:
    x = xp.asarray([1.0, 2.0])
    assert isinstance(x, candelabra.Tensor)
    assert repr(x) == "Array([1., 2.])"
    assert type(candelabra.Tensor(x)) is candelabra.Tensor
    tensor = candelabra.ones(2)
    shared = xp.asarray(tensor)
    shared[0] = 5
    assert tensor.tolist() == [5, 1]
    assert type(tensor) is candelabra.Tensor
    assert type(tensor + shared) is xp.Array
    assert type(xp.reshape(tensor, (2,))) is xp.Array
    assert type(tensor) is candelabra.Tensor
    for twin in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(twin) is xp.Array
        assert twin.tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ALL)
def test_python_conversions(dtype: str) -> None:
    x = xp.ones((), dtype=getattr(xp, dtype))
    assert bool(x) is True
    if dtype in ("complex64", "complex128"):
        assert complex(x) == 1
        for convert in (int, float):
            with pytest.raises((TypeError, RuntimeError)):
                convert(x)
    else:
        assert (int(x), float(x), complex(x)) == (1, 1.0, 1 + 0j)
        assert type(int(x)) is int
        assert type(float(x)) is float
    if dtype in INTEGRAL:
        assert x.__index__() == 1
        assert int(xp.asarray(np.iinfo(dtype).max, dtype=getattr(xp, dtype))) == np.iinfo(dtype).max
    elif dtype != "bool":
        with pytest.raises(TypeError):
            x.__index__()


def test_conversions_of_nan_and_infinity() -> None:
    assert math.isnan(float(xp.asarray(xp.nan)))
    assert bool(xp.asarray(xp.nan))
    with pytest.raises(ValueError, match="NaN"):
        int(xp.asarray(xp.nan))
    with pytest.raises(OverflowError):
        int(xp.asarray(xp.inf))
    with pytest.raises((ValueError, RuntimeError)):
        bool(xp.ones(2))


def test_dlpack() -> None:
    x = xp.arange(4)
    assert np.from_dlpack(x).tolist() == [0, 1, 2, 3]
    assert x.__dlpack_device__()[0] == 1
    for options in (
        {},
        {"stream": None},
        {"max_version": (1, 0)},
        {"dl_device": (1, 0), "copy": False},
        {"copy": True},
    ):
        assert "dltensor" in repr(x.__dlpack__(**options))
    shared = xp.from_dlpack(x)
    shared[0] = 7
    assert int(x[0]) == 7
    copied = xp.from_dlpack(x, copy=True, device="cpu")
    copied[0] = 8
    assert int(x[0]) == 7


# ---- indexing


@fast
@given(st.data())
def test_basic_indexing(data: st.DataObject) -> None:
    x = data.draw(numpy_arrays("int64", SHAPES))
    key = data.draw(hnp.basic_indices(x.shape, allow_newaxis=True, max_dims=6))
    wanted = x[key]
    check(xp.asarray(x)[key], wanted)
    changed, array = x.copy(), xp.asarray(x, copy=True)
    value = data.draw(st.sampled_from(["number", "scalar array", "array"]))
    if value == "number":
        changed[key] = 5
        array[key] = 5
    elif value == "scalar array":
        changed[key] = 6
        array[key] = xp.asarray(6)
    else:
        new = np.arange(wanted.size).reshape(wanted.shape)
        changed[key] = new
        array[key] = xp.asarray(new)
    check(array, changed)


@fast
@given(st.data())
def test_indices_of_the_standard(data: st.DataObject) -> None:
    x = data.draw(numpy_arrays("float64", SHAPES, allow_nan=False))
    key = data.draw(xps.indices(x.shape, allow_newaxis=True))
    check(xp.asarray(x)[key], x[key])


@fast
@given(st.data(), st.sampled_from(INTEGRAL))
def test_integer_arrays_as_indices(data: st.DataObject, dtype: str) -> None:
    x = data.draw(numpy_arrays("int64", hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)))
    lowest = 0 if dtype.startswith("u") else -1
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=x.ndim, max_dims=2, max_side=3)).input_shapes
    key = tuple(
        data.draw(hnp.arrays(dtype, shape, elements=st.integers(lowest * size, size - 1)))
        for size, shape in zip(x.shape, shapes, strict=True)
    )
    arrays = tuple(xp.asarray(one) for one in key)
    check(xp.asarray(x)[arrays], x[key])
    check(xp.asarray(x)[arrays[0]], x[key[0]])
    changed, array = x.copy(), xp.asarray(x, copy=True)
    changed[key] = 9
    array[arrays] = 9
    check(array, changed)


@fast
@given(st.data())
def test_masks(data: st.DataObject) -> None:
    x = data.draw(numpy_arrays("int64", SHAPES))
    shape = tuple(
        size if keep else 0 for size, keep in zip(x.shape, data.draw(st.tuples(*[st.booleans()] * x.ndim)), strict=True)
    )
    shape = data.draw(st.sampled_from([x.shape, shape, (), x.shape[:1]]))
    mask = data.draw(hnp.arrays(bool, shape))
    check(xp.asarray(x)[xp.asarray(mask)], x[mask])
    changed, array = x.copy(), xp.asarray(x, copy=True)
    if mask.shape == x.shape:
        changed[mask] = 3
        array[xp.asarray(mask)] = 3
        check(array, changed)
        assert array[xp.asarray(mask)].shape == (int(mask.sum()),)


def test_negative_steps_with_arrays() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    rows, mask = np.asarray([1, 0]), np.asarray([True, False, True])
    for key, arrays in (
        ((rows, slice(None, None, -1)), (xp.asarray(rows), slice(None, None, -1))),
        ((slice(None, None, -1), mask, slice(3, 0, -2)), (slice(None, None, -1), xp.asarray(mask), slice(3, 0, -2))),
        ((Ellipsis, slice(None, None, -3), rows), (Ellipsis, slice(None, None, -3), xp.asarray(rows))),
        ((rows, slice(0, 2, -1)), (xp.asarray(rows), slice(0, 2, -1))),
    ):
        check(xp.asarray(x)[arrays], x[key])
        changed, array = x.copy(), xp.asarray(x, copy=True)
        changed[key] = -1
        array[arrays] = -1
        check(array, changed)
        changed[key] = new = np.arange(x[key].size).reshape(x[key].shape)
        array[arrays] = xp.asarray(new)
        check(array, changed)


def test_indexing_errors() -> None:
    x = xp.ones((2, 3))
    for key in (
        2,
        (0, 3),
        -3,
        (0, 0, 0),
        (slice(None, None, -1), 0, 0),
        xp.asarray([5]),
        xp.ones((3,), dtype=xp.bool),
        (..., ...),
    ):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 1
    with pytest.raises(IndexError):
        x[xp.ones((2, 3, 1), dtype=xp.bool)]
    with pytest.raises(ValueError, match="zero"):
        x[:: slice(0, 1, 0).step]


@fast
@given(xps.arrays(dtype=xps.scalar_dtypes(), shape=SHAPES))
def test_strategies_of_hypothesis_draw_arrays(x: Any) -> None:
    assert type(x) is xp.Array
    check(x, to_numpy(x))
