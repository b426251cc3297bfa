"""safetensors files by hand: what the format says is read and written, and everything else
refused.
"""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra import safetensors
from candelabra.serialization import FileError


def made(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def tensor(dtype="F32", shape=(2,), begin=0, end=8):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


NAMES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "I16": "<i2", "U16": "<u2", "F16": "<f2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "I64": "<i8",
    "U64": "<u8", "F64": "<f8", "C64": "<c8",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_dtypes(name):
    array = np.array([[0, 1], [1, 0]]).astype(NAMES[name])
    found = safetensors.load(made({"x": tensor(name, (2, 2), 0, array.nbytes)}, array.tobytes()))["x"]
    assert np.array_equal(found.numpy(), array) and found.numpy().dtype == array.dtype
    text = safetensors.save({"x": found})
    length = int.from_bytes(text[:8], "little")
    assert (8 + length) % 8 == 0 and text[8 + length :] == array.tobytes()
    assert json.loads(text[8 : 8 + length]) == {"x": tensor(name, (2, 2), 0, array.nbytes)}


def test_bfloat16():
    found = safetensors.load(made({"x": tensor("BF16", (2,), 0, 4)}, b"\x80\x3f\x00\xc0"))["x"]
    assert found.dtype is c.bfloat16 and found.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3"])
def test_dtypes_that_are_not_there(dtype, tmp_path):
    data = made({"x": tensor(dtype, (8,), 0, 8), "y": tensor("F32", (1,), 8, 12)}, bytes(12))
    for load in (safetensors.load, lambda data: c.load(io.BytesIO(data))):
        with pytest.raises(FileError, match=rf"'x' is of the dtype {dtype}, which is not there.*those of float8"):
            load(data)
    (tmp_path / "x").write_bytes(data)
    with safetensors.safe_open(tmp_path / "x") as file:
        # The others can be had.
        assert (
            file.keys() == ["x", "y"]
            and file.get_tensor("y").tolist() == [0]
            and file.get_slice("x").get_dtype() == dtype
        )
        with pytest.raises(FileError, match="not there"):
            file.get_tensor("x")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x00" * 8, b"\x02" + bytes(7) + b"{}x", made({}, b"x"), made(b"[]"), made(b"{"), made({"x": 3}), made({"x": {}}),
        made({"x": tensor()}, bytes(7)), made({"x": tensor()}, bytes(9)), made({"x": tensor(shape=(3,))}, bytes(8)),
        made({"x": tensor(begin=8, end=16)}, bytes(16)), made({"x": tensor(), "y": tensor()}, bytes(8)),
        made({"x": tensor(), "y": tensor(begin=4, end=12)}, bytes(12)), made({"x": tensor(begin=8, end=0)}, bytes(8)),
        made({"x": tensor(shape=(-2,))}, bytes(8)), made({"x": tensor(shape=(True, 2))}, bytes(8)), made({"x": tensor(shape=(1.0, 2))}, bytes(8)),
        made({"x": tensor(shape=(1 << 62, 1 << 62, 0), end=0)}), made({"x": tensor(shape=(1,) * 65 + (2,))}, bytes(8)),
        made({"x": tensor("F31")}, bytes(8)), made({"x": tensor(["F32"])}, bytes(8)), made({"x": {**tensor(), "more": 1}}, bytes(8)),
        made({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0]}}, bytes(8)), made({"__metadata__": {"a": 1}}), made({"__metadata__": []}),
        made(b'{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'),
        made(b"{}", length=1 << 60), made(b"{}", length=100_000_001), made(b'{"a":' * 20_000, bytes(100)), made(b'{"\xff":1}'),
        made({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 1e308]}}, bytes(8)),
    ],
)  # fmt: skip
def test_refused(data, tmp_path):
    with pytest.raises(FileError, match="is no"):
        c.load(io.BytesIO(data))
    with pytest.raises(FileError, match="is no safetensors file"):
        safetensors.load(data)
    (tmp_path / "x").write_bytes(data)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileError, match=r"load_file\(\): .*x is no safetensors file"):
        safetensors.load_file(tmp_path / "x")
    with pytest.raises(FileError, match="is no safetensors file"):
        safetensors.safe_open(tmp_path / "x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_not_saved():
    base = c.arange(6.0)
    for tensors, kind, text in (
        ([base], ValueError, "Expected a dict"),
        ({"x": 3}, ValueError, "Key `x` is invalid, expected Tensor but received int"),
        ({3: base}, ValueError, "cannot be the name"),
        ({"__metadata__": base}, ValueError, "cannot be the name"),
        ({"x": base.reshape(2, 3).T}, ValueError, "non contiguous tensor: `x`"),
        ({"x": base.to(c.complex128)}, ValueError, "no dtype for 'x', which is of complex128"),
        ({"x": base, "y": base[3:], "z": c.ones(1)}, RuntimeError, r"share memory.*\[\['x', 'y'\]\]"),
    ):
        with pytest.raises(kind, match=text):
            safetensors.save(tensors)
    with pytest.raises(TypeError, match="metadata must be"):
        safetensors.save({"x": base}, {"epoch": 3})
    with pytest.raises(TypeError, match="expected bytes"):
        safetensors.load("x.safetensors")
    # Parts of one storage that do not overlap are tensors of their own.
    found = safetensors.load(safetensors.save({"x": base[:3], "y": base[3:]}))
    assert found["x"].tolist() == [0, 1, 2] and found["y"].tolist() == [3, 4, 5]


def test_large_dtypes_come_first(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file(
        {"a": c.ones(3, dtype=c.uint8), "z": c.ones(1, dtype=c.float64), "b": c.ones(3, dtype=c.float16)}, path
    )
    with safetensors.safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == ["a", "b", "z"] and file.offset_keys() == ["z", "b", "a"] and file.metadata() is None
        assert file.get_slice("b").get_shape() == [3] and file.get_slice("b")[1:].tolist() == [1, 1]
        with pytest.raises(KeyError, match="no tensor 'c'"):
            file.get_tensor("c")
    with pytest.raises(ValueError, match="closed"):
        file.get_tensor("a")
    with pytest.raises(ValueError, match="framework 'jax'"):
        safetensors.safe_open(path, framework="jax")
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(tmp_path / "none")


class Model:
    """What save_model and load_model need of a module."""

    def __init__(self, value):
        weight = c.full((2, 3), value)
        self.state = {"weight": weight, "tied": weight, "other": c.full((3, 2), value).T}

    def state_dict(self):
        return self.state

    def load_state_dict(self, state, strict):
        for name, tensor in state.items():
            self.state[name].copy_(tensor)


def test_models(tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors.save_model(Model(2.0), path, {"epoch": "1"})
    with safetensors.safe_open(path) as file:
        assert file.keys() == ["other", "tied"] and file.metadata() == {"epoch": "1", "weight": "tied"}
    fresh = Model(0.0)
    assert safetensors.load_model(fresh, path) == ([], [])
    assert all((tensor == 2).all() for tensor in fresh.state.values())
    fresh.state["more"] = c.ones(1)
    del fresh.state["other"]
    with pytest.raises(RuntimeError, match=r"missing names \['more'\], names that are not expected \['other'\]"):
        safetensors.load_model(fresh, path)
    with pytest.raises(ValueError, match="non contiguous"):
        safetensors.save_model(Model(1.0), path, force_contiguous=False)
    parts = Model(1.0)
    parts.state = {"whole": (base := c.ones(4)), "part": base[1:]}
    with pytest.raises(RuntimeError, match="share a part of their memory"):
        safetensors.save_model(parts, path)
