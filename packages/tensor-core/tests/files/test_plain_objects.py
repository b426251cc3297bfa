"""Plain objects of Python and NumPy in files: sets, dates, arrays, namespaces, and what is
refused.
"""

from __future__ import annotations

import argparse
import base64
import collections
import datetime
import io
import pickle
import pickletools
import zipfile

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c


def through(value, **options):
    file = io.BytesIO()
    c.save(value, file, **options)
    file.seek(0)
    return c.load(file)


def load_pickle(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", text)
        archive.writestr("archive/version", "3\n")
    return c.load(file)


ZONE = datetime.timezone(datetime.timedelta(hours=1), "X")


@pytest.mark.parametrize("options", [{}, {"format": "pytorch"}], ids=str)
@pytest.mark.parametrize(
    "value",
    [
        {1, "a", (2, None)}, frozenset("ab"), datetime.datetime(2026, 1, 2, 3, 4, 5, 6), datetime.datetime(2026, 1, 2, tzinfo=ZONE),
        datetime.date(2026, 1, 2), datetime.time(3, 4), datetime.timedelta(1, 2, 3), ZONE, {datetime.date(2026, 1, 2): 1},
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_sets_and_dates(value, options):
    loaded = through(value, **options)
    assert loaded == value and type(loaded) is type(value)


@pytest.mark.parametrize("options", [{}, {"format": "pytorch"}], ids=str)
def test_defaultdicts_keep_what_makes_their_values(options):
    value = collections.defaultdict(list, {"a": [c.ones(2)]})
    loaded = through(value, **options)
    assert loaded["a"][0].tolist() == [1, 1] and loaded["new"] == [] and type(loaded) is collections.defaultdict


@pytest.mark.parametrize("options", [{}, {"format": "pytorch"}], ids=str)
@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3)[:, ::-1], np.array(["ab", "c"]), np.array([b"x"]), np.array(["2026-01-02"], "M8[D]"), np.zeros((0, 3)),
        np.array(3.5), np.arange(3, dtype=">i4"), np.asfortranarray(np.eye(2, 3, dtype=np.float16)), np.array([1 + 2j]),
        np.array([True]),
    ],
    ids=lambda a: a.dtype.str,
)  # fmt: skip
def test_arrays_of_numpy(array, options):
    loaded = through(array, **options)
    assert np.array_equal(loaded, array) and loaded.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
    loaded[...] = loaded
    assert loaded.shape == array.shape


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        argparse.Namespace(lr=0.1, layers=[1, 2]), np.float32(3), np.int64(-4), np.bool_(True), np.str_("ab"), np.datetime64("2026-01-02"),
        np.arange(4), np.array(["2026-01-02T03"], "M8[h]"), np.dtype("f4"), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    ],
    ids=repr,
)  # fmt: skip
def test_what_pickles_of_pytorch_s_files_hold(value, protocol):
    loaded = load_pickle(pickle.dumps(value, protocol))
    assert type(loaded) is type(value) and np.all(loaded == value)


class Loud:
    """Calls print where it is unpickled."""

    def __reduce__(self):
        return print, ("code ran",)


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize(
    "value",
    [
        np.array([{"x": 1}], object), np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.ma.array([1.0]),
        argparse.Namespace(inner=Loud()),
    ],
    ids=lambda v: type(v).__name__,
)  # fmt: skip
def test_arrays_of_objects_are_refused(value, protocol, capsys):
    with pytest.raises(c.serialization.FileError):
        load_pickle(pickle.dumps(value, protocol))
    assert capsys.readouterr().out == ""


def test_states_that_do_not_fit_are_refused():
    text = pickle.dumps(np.arange(4, dtype=np.int64), 2)
    (at,) = [place for code, argument, place in pickletools.genops(text) if code.name == "BININT1" and argument == 4]
    for count in (3, 5, 255):
        with pytest.raises(c.serialization.FileError, match="bytes are not as many"):
            load_pickle(text[: at + 1] + bytes([count]) + text[at + 2 :])
    with pytest.raises(c.serialization.FileError, match="damaged"):
        load_pickle(pickle.dumps(datetime.date(2026, 1, 2), 4).replace(b"\x07\xea\x01\x02", b"\x07\xea\x0f\x02"))


class OfState:
    """Pickles as a NumPy dtype with a state that NumPy would not check."""

    def __init__(self, code, state):
        self.code, self.state = code, state

    def __reduce__(self):
        return np.dtype, (self.code, False, True), self.state


UNIT = ({}, (b"s", 1, 1, 1))


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("M8", (3, "<", None, None, None, -1, -1, 0)), ("f4", (4, "<", None, None, None, -1, -1, 0, UNIT)),
        ("f4", (3, "x", None, None, None, -1, -1, 0)), ("f4", (3, "|", None, None, None, -1, -1, 0)),
        ("M8", (4, "<", None, None, None, -1, -1, 0, ({}, (b"s", 0, 1, 1)))), ("M8", (4, "<", None, None, None, -1, -1, 0, ({}, (b"q", 1, 1, 1)))),
        ("M8", (4, "<", None, None, None, -1, -1, 0, ({}, (b"s", 1, 1, 0)))), ("f4", (3, "<", None, ("a",), {"a": 1}, -1, -1, 0)),
        ("O", (3, "|", None, None, None, -1, -1, 63)), ("f4", None), ("f4", "<"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("protocol", [2, 4])
def test_states_of_dtypes_are_checked(code, state, protocol):
    with pytest.raises(c.serialization.FileError):
        load_pickle(pickle.dumps(OfState(code, state), protocol) if state is not None else NO_STATE)
    assert np.dtype("f4").str == "<f4" and np.dtype("M8[s]").str == "<M8[s]"


#: The dtype f4 with None as its state.
NO_STATE = b"\x80\x02cnumpy\ndtype\nX\x02\x00\x00\x00f4\x89\x88\x87RNb."


@pytest.mark.parametrize(
    "described",
    [
        {"array": ["O", [1], base64.b64encode(b"12345678").decode()]}, {"array": ["<U1", [2], base64.b64encode(b"1234").decode()]},
        {"time": ["datetime", "AAAA"]}, {"time": ["today"]}, {"time": ["timedelta", "x", 1, 2]}, {"defaultdict": ["eval", []]},
    ],
    ids=str,
)  # fmt: skip
def test_descriptions_that_make_no_sense(described):
    import json

    text = json.dumps({"format": "candelabra archive", "version": 1, "storages": [], "content": described})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("description.json", text)
    with pytest.raises(c.serialization.FileError):
        c.load(file)


class Model:
    pass


def test_what_is_not_allowed_is_named(tmp_path):
    text = pickle.dumps(Model(), 2)
    with pytest.raises(
        c.serialization.UnsafeFileError, match=r"the file is not loaded: it holds .*Model, and only"
    ) as caught:
        load_pickle(text)
    assert caught.value.missing == f"{Model.__module__}.Model" and "damaged" not in str(caught.value)
    with c.serialization.safe_globals([Model]):
        assert isinstance(load_pickle(text), Model)
