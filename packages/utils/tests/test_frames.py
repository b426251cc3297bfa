"""Test tables of pandas and polars as tensors, and back."""

import pytest

import candelabra as c
from candelabra.utils import data, frames

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
BOTH = pytest.mark.parametrize("library", [pandas, polars], ids=["pandas", "polars"])


@BOTH
def test_columns_keep_their_dtypes(library):
    found = frames.to_tensors(library.DataFrame({"x": [1.5, 2.0], "n": [3, 4], "b": [True, False]}))
    assert {name: tensor.dtype for name, tensor in found.items()} == {"x": c.float64, "n": c.int64, "b": c.bool}
    assert found["n"].tolist() == [3, 4]


@BOTH
def test_one_tensor_of_all_columns(library):
    frame = library.DataFrame({"x": [1.5, 2.0], "n": [3, 4]})
    assert frames.to_tensor(frame).tolist() == [[1.5, 3.0], [2.0, 4.0]]
    assert frames.to_tensor(frame, ["n"]).dtype is c.int64
    assert frames.to_tensor(frame, dtype=c.float32).dtype is c.float32
    assert frames.to_tensor(frame["n"]).tolist() == [3, 4]


@BOTH
def test_a_tensor_has_memory_of_its_own(library):
    frame = library.DataFrame({"x": [1.0, 2.0]})
    frames.to_tensors(frame)["x"].zero_()
    assert list(frame["x"]) == [1.0, 2.0]


@BOTH
def test_missing_values(library):
    frame = library.DataFrame({"x": [1.0, None], "n": [1.0, None]})
    assert frames.to_tensors(frame)["x"].isnan().tolist() == [False, True]
    with pytest.raises(ValueError, match="column 'x' has missing values"):
        frames.to_tensor(frame, ["x"], dtype=c.int64)


def test_missing_integers():
    with pytest.raises(ValueError, match="missing values"):
        frames.to_tensor(polars.DataFrame({"n": [1, None]}), dtype=c.int64)
    assert frames.to_tensor(polars.DataFrame({"n": [1, None]}), dtype=c.float32).isnan().sum() == 1
    assert (
        frames.to_tensor(pandas.DataFrame({"n": pandas.array([1, None], "Int64")}), dtype=c.float32).isnan().sum() == 1
    )


@BOTH
def test_what_holds_no_numbers_is_refused(library):
    frame = library.DataFrame({"s": ["a", "b"], "x": [1.0, 2.0]})
    with pytest.raises(TypeError, match="column 's' is of .* encode it first"):
        frames.to_tensor(frame)
    with pytest.raises(KeyError, match="there is no column 'y'; there are s, x"):
        frames.to_tensor(frame, ["y"])
    with pytest.raises(TypeError, match="but got list"):
        frames.to_tensor([1])


@BOTH
def test_there_and_back(library):
    tensors = {"x": c.tensor([1.5, 2.0]), "n": c.tensor([3, 4])}
    frame = (frames.to_pandas if library is pandas else frames.to_polars)(tensors)
    assert isinstance(frame, library.DataFrame)
    again = frames.to_tensors(frame)
    assert all(c.equal(tensors[name], again[name]) for name in tensors)


def test_a_column_is_a_vector():
    with pytest.raises(ValueError, match=r"'x' has shape \(2, 2\)"):
        frames.to_polars({"x": c.ones(2, 2)})


@BOTH
def test_rows_as_a_dataset(library):
    frame = library.DataFrame({"x": [1.0, 2.0, 3.0], "y": [4.0, 5.0, 6.0], "label": [0, 1, 1]})
    rows = frames.FrameDataset(frame, target="label")
    assert rows.features == ["x", "y"]
    features, labels = next(iter(data.DataLoader(rows, batch_size=3)))
    assert features.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert (features.dtype, labels.dtype) == (c.float32, c.int64)
    assert frames.FrameDataset(frame, target="x", features=["y"])[0][1].dtype is c.float32
    assert len(frames.FrameDataset(frame)[0]) == 1
