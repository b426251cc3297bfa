"""Tensors on the file itself: what is written stays in the process, storages are shared as they
were, and nothing is left open.
"""

from __future__ import annotations

import gc
import io
import mmap
import os

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.serialization import FileError, load_npy, load_npz, save_npy, save_npz, set_default_mmap_options


def mapped_files():
    """The files that this process maps, apart from programs and libraries."""
    gc.collect()
    with open("/proc/self/maps") as maps:
        return sum(line.rstrip().endswith((".cb", ".pt", ".npy", ".npz", ".safetensors")) for line in maps)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def nothing_is_left():
    before, held = mapped_files(), descriptors()
    yield
    assert (mapped_files(), descriptors()) == (before, held)


@pytest.mark.parametrize("format", ["candelabra", "pytorch"])
def test_mapped_archives(tmp_path, format):
    path = tmp_path / f"x.{'cb' if format == 'candelabra' else 'pt'}"
    base = c.arange(24.0).reshape(4, 6)
    c.save(
        {"base": base, "view": base[1:, ::2], "half": c.ones(3, dtype=c.bfloat16), "none": c.zeros(0, 3), "n": 7},
        path,
        format=format,
    )
    before = path.read_bytes()
    count = mapped_files()
    found = c.load(path, mmap=True)
    assert mapped_files() > count
    assert found["base"].tolist() == base.tolist() and found["view"].stride() == (6, 2) and found["n"] == 7
    assert found["none"].shape == (0, 3) and found["base"].data_ptr() % 64 == 0
    found["view"].fill_(-1)
    assert found["base"][1].tolist() == [-1, 7, -1, 9, -1, 11]
    assert path.read_bytes() == before and c.load(path)["base"].tolist() == base.tolist()
    assert not found["base"].is_shared()


def test_the_file_is_read_as_it_is_used(tmp_path):
    path = tmp_path / "large.cb"
    c.save({"x": c.zeros(16 << 20), "y": c.ones(2)}, path)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    before = resident()
    found = c.load(path, mmap=True)
    assert found["y"].tolist() == [1, 1] and resident() - before < 16 << 20
    assert c.load(path)["x"].shape == found["x"].shape


def test_a_saved_file_leaves_what_is_mapped(tmp_path):
    path = tmp_path / "x.cb"
    c.save(c.full((5000,), 1.0), path)
    found = c.load(path, mmap=True)
    c.save(found + 1, path)
    assert found.tolist() == [1] * 5000 and c.load(path).tolist() == [2] * 5000
    os.unlink(path)
    assert found.sum().item() == 5000
    # Even to itself.
    c.save(found, path)
    assert c.load(path).tolist() == found.tolist()


def test_shared_mappings_write_the_file(tmp_path):
    path = tmp_path / "x.cb"
    c.save(c.zeros(4), path)
    with set_default_mmap_options(mmap.MAP_SHARED):
        found = c.load(path, mmap=True)
        found.copy_(c.arange(4.0))
    assert c.load(path, mmap=True).tolist() == [0, 1, 2, 3]
    # It is another file than the one that was saved, by its checksum.
    with pytest.raises(FileError, match="checksum"):
        c.load(path)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED"):
        set_default_mmap_options(77)


def test_what_cannot_be_mapped(tmp_path):
    with pytest.raises(ValueError, match="f must be a string filename"):
        c.load(io.BytesIO(), mmap=True)
    c.save(c.ones(2), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(FileError, match="mmap can only be used"):
        c.load(tmp_path / "old.pt", mmap=True)
    # Compressed entries are read.
    save_npz(tmp_path / "x.npz", c.arange(3), compressed=True)
    assert load_npz(tmp_path / "x.npz", mmap=True)["arr_0"].tolist() == [0, 1, 2]
    assert mapped_files() == 0


def test_map_location(tmp_path):
    path = tmp_path / "x.cb"
    c.save(c.arange(3), path)
    asked = []

    def where(storage, place):
        asked.append((type(storage), storage.nbytes(), place))
        return storage

    found = c.load(path, map_location=where, mmap=True)
    assert asked == [(c.UntypedStorage, 24, "cpu")] and found.tolist() == [0, 1, 2]
    assert c.load(path, map_location="cpu", mmap=True).tolist() == [0, 1, 2]


def test_numpy_and_safetensors(tmp_path):
    x = c.arange(6.0).reshape(2, 3)
    save_npy(tmp_path / "x.npy", x.T)
    save_npz(tmp_path / "x.npz", x, b=x.bool())
    c.safetensors.save_file({"x": x, "i": c.arange(3, dtype=c.uint8)}, tmp_path / "x.safetensors")
    count = mapped_files()
    found = [
        load_npy(tmp_path / "x.npy", mmap=True),
        load_npz(tmp_path / "x.npz", mmap=True),
        c.safetensors.load_file(tmp_path / "x.safetensors"),
    ]
    assert mapped_files() >= count + 3
    assert found[0].tolist() == x.T.tolist() and found[0].stride() == (1, 3)
    assert found[1]["arr_0"].tolist() == x.tolist() and found[1]["b"].tolist() == x.bool().tolist()
    assert found[2]["x"].tolist() == x.tolist() and found[2]["i"].tolist() == [0, 1, 2]
    for y in (found[0], found[1]["arr_0"], found[2]["x"]):
        y.zero_()
    assert np.load(tmp_path / "x.npy").tolist() == x.T.tolist()
    assert c.load(tmp_path / "x.safetensors", mmap=True)["x"].tolist() == x.tolist()


# ---- from_file


def test_a_shared_file_is_one_storage(tmp_path):
    path = tmp_path / "numbers"
    x = c.from_file(path, shared=True, size=4, dtype=c.int32)
    y = c.from_file(str(path), True, 4, dtype=c.int32)
    assert x.untyped_storage() is y.untyped_storage() and x.is_shared() and x.untyped_storage().filename == str(path)
    longer = c.from_file(path, True, 6, dtype=c.int32)
    x[0], longer[5] = 7, 8
    assert longer.tolist() == [7, 0, 0, 0, 0, 8] and np.fromfile(path, np.int32).tolist() == longer.tolist()
    private = c.from_file(path, size=4, dtype=c.int32)
    private[1] = 9
    assert not private.is_shared() and private.untyped_storage().filename is None and x[1] == 0


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    storage = c.UntypedStorage.from_file(str(path), True, 8)
    assert storage.nbytes() == 8 and storage.filename == str(path) and storage.is_shared()
    storage.fill_(3)
    assert path.read_bytes() == b"\x03" * 8
    private = c.UntypedStorage.from_file(str(path), nbytes=4)
    assert private.nbytes() == 4 and private.tolist() == [3] * 4 and private.filename is None
    assert c.UntypedStorage.from_file(str(path)).nbytes() == 0
    with pytest.raises(RuntimeError, match="smaller than the required mapping size <9>"):
        c.UntypedStorage.from_file(str(path), nbytes=9)
    with pytest.raises(RuntimeError, match="must not be negative"):
        c.UntypedStorage.from_file(str(path), nbytes=-1)


def test_a_file_that_cannot_be_made_longer(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abcd")
    for size in (1 << 60, 1 << 62):
        with pytest.raises(RuntimeError, match="unable to mmap"):
            c.from_file(path, shared=True, size=size, dtype=c.uint8)
        assert path.read_bytes() == b"abcd"


def test_ranges_are_checked(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(range(100)))
    with open(path, "rb") as file:
        storage = c._C.map_range(file.fileno(), 10, 5, False, "cpu")
        assert storage.tolist() == [10, 11, 12, 13, 14] and not storage.is_shared()
        for offset, count in ((96, 5), (101, 1), (-1, 1), (0, 0), (0, -1), (1 << 62, 1 << 62)):
            with pytest.raises(ValueError, match="beyond the end|cannot map"):
                c._C.map_range(file.fileno(), offset, count, False, "cpu")
        # Sharing needs a file that is open for writing.
        with pytest.raises(OSError, match="Permission denied"):
            c._C.map_range(file.fileno(), 0, 5, True, "cpu")
    with pytest.raises(OSError, match="Bad file descriptor"):
        c._C.map_range(10_000_000, 0, 1, False, "cpu")
    assert storage.tolist() == [10, 11, 12, 13, 14]
