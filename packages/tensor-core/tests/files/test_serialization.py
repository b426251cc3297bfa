"""save, load, pickle and deepcopy: everything comes back, shared memory is shared again, and
damaged files are refused.
"""

from __future__ import annotations

import collections
import copy
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c

DTYPES = [
    c.bool,
    c.uint8,
    c.int8,
    c.int16,
    c.int32,
    c.int64,
    c.float16,
    c.bfloat16,
    c.float32,
    c.float64,
    c.complex64,
    c.complex128,
]


def through_archive(value):
    file = io.BytesIO()
    c.save(value, file)
    file.seek(0)
    return c.load(file)


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


WAYS = pytest.mark.parametrize("way", [through_archive, through_pickle, copy.deepcopy])


@WAYS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes(way, dtype):
    x = c.tensor([[0, 1, 2], [3, 1, 0]]).to(dtype)
    y = way(x)
    assert y is not x and y.dtype is dtype and y.shape == x.shape and y.tolist() == x.tolist()
    assert y.data_ptr() != x.data_ptr()


@WAYS
def test_geometry(way):
    base = c.arange(24.0).reshape(2, 3, 4)
    for x in (
        base.T,
        base[1, ::2],
        base[:, 1:, ::3],
        c.tensor(3.5),
        c.empty(0, 3),
        base[2:],
        c.ones(2, 1).expand(2, 3),
    ):
        y = way(x)
        assert y.shape == x.shape and y.stride() == x.stride() and y.tolist() == x.tolist()
        assert y._base is None


@WAYS
def test_shared_memory_is_shared_again(way):
    base = c.arange(6.0)
    first, second, apart = way([base[:4], base[2:], c.arange(6.0)])
    first[3] = 100
    assert second.tolist() == [2, 100, 4, 5] and apart.tolist() == [0, 1, 2, 3, 4, 5]
    assert base.tolist() == [0, 1, 2, 3, 4, 5]


@WAYS
def test_views_of_another_dtype_share(way):
    x = c.arange(4, dtype=c.int32)
    a, b = way((x, x.view(c.int16)))
    a[0] = 7
    assert b[0].item() == 7 and b.dtype is c.int16


@WAYS
def test_the_same_tensor_twice(way):
    x = c.ones(2)
    a, b = way([x, x])
    a[0] = 5
    assert b[0].item() == 5


@WAYS
def test_requires_grad(way):
    x = way(c.ones(2, requires_grad=True))
    assert x.requires_grad and x.is_leaf
    assert not way(c.ones(2)).requires_grad


@pytest.mark.parametrize("way", [through_pickle, copy.deepcopy])
def test_grad_subclass_and_attributes(way):
    class_ = Weight
    x = c.Tensor._make_subclass(class_, c.ones(2), True)
    x.grad = c.tensor([3.0, 4.0])
    x.label = ["first"]
    y = way(x)
    assert type(y) is class_ and y.requires_grad and y.grad.tolist() == [3, 4]
    assert y.label == ["first"] and y.label is not x.label and y.grad is not x.grad


class Weight(c.Tensor):
    pass


@WAYS
def test_plain_data(way):
    value = {
        "none": None, "true": True, "int": -(2**70), "float": 0.1, "complex": 1 - 2j, "text": "ß\n\0", "bytes": b"\x00\xff",
        3: [1, (2, [3.5]), ()], (1, "a"): collections.OrderedDict([("z", 1), ("a", 2)]), None: c.float16, True: c.Size([2, 3]),
        "device": c.device("cpu"), "nested": {"empty": {}, "list": []},
    }  # fmt: skip
    result = way(value)
    assert result == value and list(result) == list(value)
    assert type(result[(1, "a")]) is collections.OrderedDict and list(result[(1, "a")]) == ["z", "a"]
    assert type(result[True]) is c.Size and type(result[3][1]) is tuple


def test_floats_that_json_does_not_have():
    nan, up, down, zero = through_archive([float("nan"), float("inf"), -float("inf"), -0.0])
    assert np.isnan(nan) and up == float("inf") and down == -up and str(zero) == "-0.0"


def test_values_survive_exactly():
    x = c.tensor([np.pi, -0.0, np.nan, 5e-324, np.inf], dtype=c.float64)
    y = through_archive(x)
    assert y.numpy().tobytes() == x.numpy().tobytes()


def test_deepcopy_of_a_graph_is_refused():
    pytest.importorskip("candelabra.autograd")
    x = c.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(x)


@pytest.mark.parametrize(
    "way", [lambda x: pickle.loads(pickle.dumps(x)), lambda x: through_archive(x)], ids=["pickle", "archive"]
)
def test_a_tensor_of_a_graph_is_read_as_a_leaf(way):
    # As in {"loss": loss} of a checkpoint.
    pytest.importorskip("candelabra.autograd")
    y = way(c.ones(2, requires_grad=True) * 2)
    assert y.tolist() == [2, 2] and y.requires_grad and y.is_leaf


@pytest.mark.parametrize("weights_only", [True, False])
def test_weights_only_is_taken(weights_only):
    file = io.BytesIO()
    c.save({"x": c.ones(2)}, file)
    file.seek(0)
    assert c.load(file, map_location="cpu", weights_only=weights_only)["x"].tolist() == [1, 1]


def test_pickle_of_types_and_functions():
    for value in (c.float32, c.channels_last, c.strided, c.device("cpu"), c.Size([1, 2]), c.add, c.einsum, c.matmul):
        result = pickle.loads(pickle.dumps(value))
        assert result == value
    result = pickle.loads(pickle.dumps(c.tensor([3, 1]).sort()))
    assert result.values.tolist() == [1, 3]


# ---- files


def test_a_path_is_replaced_at_once(tmp_path):
    path = tmp_path / "model.cb"
    c.save({"a": c.ones(3)}, path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="builtins.object"):
        c.save({"a": c.zeros(3), "b": object()}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.cb"]
    c.save({"a": c.zeros(3)}, str(path))
    assert c.load(path)["a"].tolist() == [0, 0, 0]
    assert os.listdir(tmp_path) == ["model.cb"]


def test_the_same_content_gives_the_same_file(tmp_path):
    for name in ("one", "two"):
        c.save({"x": c.arange(5), "y": [1, 2]}, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_storage_is_stored_once(tmp_path):
    base = c.zeros(100_000)
    c.save([base[i:] for i in range(10)], tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 500_000


def test_map_location(tmp_path):
    file = io.BytesIO()
    c.save(c.ones(2), file)
    asked = []
    for where in (
        "cpu", c.device("cpu"), {"cpu": "cpu"}, {}, lambda storage, place: storage, lambda storage, place: storage.cpu(),
        lambda storage, place: asked.append(place), lambda storage, place: "cpu",
    ):  # fmt: skip
        loaded = c.load(file, map_location=where)
        assert loaded.device == c.device("cpu") and loaded.tolist() == [1, 1]
    assert asked == ["cpu"]
    with pytest.raises(RuntimeError, match="other bytes"):
        c.load(file, map_location=lambda storage, place: storage[1:])
    with pytest.raises(c.BackendError, match="no_such_device"):
        c.load(file, map_location="no_such_device")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        c.load(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        c.save(1, tmp_path / "no folder" / "x")


@pytest.mark.parametrize(
    "value",
    [lambda: 0, c.Tensor, np.longdouble(1), np.array([{}]), collections.defaultdict(lambda: 0), object()],
    ids=lambda v: type(v).__name__,
)
def test_what_is_not_plain_data_is_refused(value):
    with pytest.raises(TypeError, match=r"candelabra\.save\(\): cannot store"):
        c.save({"x": [value]}, io.BytesIO())


def test_a_loop_is_refused():
    loop: list = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        c.save(loop, io.BytesIO())


# ---- damaged and hostile files


def archive(description, **storages):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("description.json", description if isinstance(description, str) else json.dumps(description))
        for name, data in storages.items():
            made.writestr(f"storages/{name[1:]}", data)
    file.seek(0)
    return file


def description(content, storages=(), **changes):
    return {"format": "candelabra archive", "version": 1, "storages": list(storages), "content": content, **changes}


TENSOR = {"storage": 0, "dtype": "float32", "size": [2], "stride": [1], "offset": 0, "requires_grad": False}
EIGHT = [{"bytes": 8, "device": "cpu"}]


def test_the_format_by_hand():
    x = c.load(archive(description({"tensor": TENSOR}, EIGHT), s0=np.float32([1, 2]).tobytes()))
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"size": [3]}, {"offset": 1}, {"stride": [2]}, {"size": [2, 2]}, {"size": [-1]}, {"size": ["2"]}, {"size": [True]},
        {"stride": [-1]}, {"offset": -1}, {"dtype": "float31"}, {"dtype": "Tensor"}, {"storage": 1}, {"storage": -1},
        {"size": [1 << 62], "stride": [1 << 62]}, {"dtype": "complex128"}, {"size": None},
    ],
    ids=str,
)  # fmt: skip
def test_tensors_that_do_not_fit_are_refused(changes):
    file = archive(description({"tensor": {**TENSOR, **changes}}, EIGHT), s0=bytes(8))
    with pytest.raises(RuntimeError, match=r"candelabra\.load\(\): the file"):
        c.load(file)


@pytest.mark.parametrize(
    "content",
    [
        "{", "[]", "3", json.dumps(description({"function": "os.system"})), json.dumps(description({"tuple": 3})),
        json.dumps(description({"a": 1, "b": 2})), json.dumps(description({"dict": [[1]]})), json.dumps(description({"bytes": "%%"})),
        json.dumps(description(1, format="other")), json.dumps({"format": "candelabra archive"}), "[" * 100_000,
        json.dumps(description({"dict": [[[], 1]]})), json.dumps(description({"float": "x"})),
    ],
)  # fmt: skip
def test_descriptions_that_make_no_sense_are_refused(content):
    with pytest.raises(
        RuntimeError,
        match=r"candelabra\.load\(\): the file is no archive of candelabra.save or torch.save, or it is damaged",
    ):
        c.load(archive(content))


def test_a_newer_version_says_so():
    with pytest.raises(RuntimeError, match="version 2.*pip install --upgrade candelabra-tensor-core"):
        c.load(archive(description(1, version=2)))


def test_missing_and_short_storages():
    with pytest.raises(RuntimeError, match="damaged"):
        c.load(archive(description({"tensor": TENSOR}, EIGHT)))
    with pytest.raises(RuntimeError, match="4 bytes instead of 8"):
        c.load(archive(description({"tensor": TENSOR}, EIGHT), s0=bytes(4)))


def test_every_cut_and_every_flipped_byte_is_noticed_or_harmless():
    file = io.BytesIO()
    c.save({"weight": c.arange(16.0), "step": 3}, file)
    whole = file.getvalue()
    for length in range(0, len(whole), 7):
        with pytest.raises(RuntimeError, match="damaged"):
            c.load(io.BytesIO(whole[:length]))
    refusals = []
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x10
        try:
            result = c.load(io.BytesIO(bytes(damaged)))
        except RuntimeError as error:
            refusals.append(str(error))
        else:
            # Only what carries no content: dates, flags and comments of the zip archive.
            assert result["weight"].tolist() == list(range(16))
            assert result["step"] == 3
    assert len(refusals) > len(whole) // 2
    assert [text for text in refusals if "damaged" not in text and "version" not in text] == []


def test_not_an_archive(tmp_path):
    (tmp_path / "x").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(RuntimeError, match="no archive"):
        c.load(tmp_path / "x")


def test_numbers_of_numpy_are_stored_by_their_value():
    loaded = through_archive(
        {"loss": np.float64(2.5), "step": np.int64(3), "flag": np.bool_(True), "half": np.float32(0.5)}
    )
    assert loaded == {"loss": 2.5, "step": 3, "flag": True, "half": 0.5} and type(loaded["step"]) is int
    file = io.BytesIO()
    c.save(c.ones(1), file, pickle_protocol=4)
    file.seek(0)
    assert c.load(file).tolist() == [1]


def test_a_counter_stays_one(tmp_path):
    """MultiStepLR counts its milestones in one."""
    counter = collections.Counter([3, 3, 5])
    for layout in ("candelabra", "pytorch"):
        c.save({"milestones": counter}, tmp_path / layout, format=layout)
        found = c.load(tmp_path / layout)["milestones"]
        assert type(found) is collections.Counter
        assert found == counter


@pytest.mark.parametrize("options", [{}, {"format": "pytorch"}], ids=str)
def test_skipped_data(options):
    file = io.BytesIO()
    with c.serialization.skip_data():
        c.save({"x": c.ones(2)}, file, **options)
    file.seek(0)
    assert c.load(file)["x"].tolist() == [0, 0]
    # The space that was reserved is filled in by others.
    filled = io.BytesIO(file.getvalue().replace(bytes(8) + b"PK", c.ones(2).numpy().tobytes() + b"PK", 1))
    assert c.load(filled)["x"].tolist() == [1, 1]
    with c.serialization.skip_data():
        filled.seek(0)
        assert c.load(filled)["x"].tolist() == [0, 0]
        with pytest.raises(RuntimeError, match="skip_data=True"):
            c.save(1, io.BytesIO(), _use_new_zipfile_serialization=False)


def test_generators():
    generator = c.Generator().manual_seed(5)
    c.randn(3, generator=generator)
    loaded, copied = pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)
    assert loaded.initial_seed() == 5
    expected = c.randn(4, generator=generator)
    assert c.equal(expected, c.randn(4, generator=loaded)) and c.equal(expected, c.randn(4, generator=copied))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_without_memory(dtype):
    x = c.empty(2, 3, dtype=dtype, device="meta").t()
    y = through_archive({"x": x})["x"]
    assert y.is_meta and y.dtype is dtype and y.shape == (3, 2) and y.stride() == (1, 3)
    assert through_archive(c.empty(2, device="meta", requires_grad=True)).requires_grad


@pytest.mark.parametrize(
    "damaged",
    [{"size": [-1]}, {"size": [2, 2]}, {"stride": [1 << 62]}, {"size": [1 << 62]}, {"dtype": "none"}, {"size": ["2"]}],
    ids=str,
)
def test_damaged_tensors_without_memory(damaged):
    described = {"dtype": "float32", "size": [2], "stride": [1], "requires_grad": False, **damaged}
    text = {"format": "candelabra archive", "version": 1, "storages": [], "content": {"meta": described}}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("description.json", json.dumps(text))
    file.seek(0)
    with pytest.raises(RuntimeError, match="size|stride|dtype|geometry"):
        c.load(file)


def test_intact_files_with_what_is_not_read_are_not_called_damaged(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([object()]), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", np.array([{}], dtype=object))
    (tmp_path / "alone.pkl").write_bytes(pickle.dumps({"a": 1}))
    for name in ("objects.npy", "objects.npz", "alone.pkl"):
        with pytest.raises(c.serialization.FileError, match=f"{name} is not loaded: ") as raised:
            c.load(tmp_path / name)
        assert "damaged" not in str(raised.value)
