"""A file that is saved is there whole, the old one or the new one, whatever ends the process."""

from __future__ import annotations

import io
import os
import random
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra as c
from candelabra.serialization import replacing, save_npy, save_npz

KILLS = 100

WAYS = {
    "candelabra": lambda value, path: c.save(value, path),
    "pytorch": lambda value, path: c.save(value, path, format="pytorch"),
    "legacy": lambda value, path: c.save(value, path, _use_new_zipfile_serialization=False),
    "safetensors": lambda value, path: c.safetensors.save_file(value, path),
    "npz": lambda value, path: save_npz(path, **value),
}


def is_whole(found, states):
    return any(all(bool((found[name] == value[name]).all()) for name in value) for value in states)


@pytest.mark.parametrize("named", [False, True], ids=["without a name", "named"])
def test_killed_while_saving(tmp_path, monkeypatch, named):
    if named:
        # As on file systems that have no files without names.
        monkeypatch.delattr(os, "O_TMPFILE")
    path = tmp_path / "model"
    states = [{"x": c.full((30_000,), float(n)), "y": c.full((500,), n)} for n in range(2)]
    draw = random.Random(3)
    kinds = list(WAYS)
    killed = 0
    for number in range(KILLS // 2):
        way = WAYS[kinds[number % len(kinds)]]
        way(states[0], path)
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            # Only saving: there are no threads here.
            try:
                os.write(told, b"!")
                while True:
                    way(states[1], path)
                    way(states[0], path)
            finally:
                os._exit(1)
        os.close(told)
        assert os.read(ready, 1) == b"!"
        os.close(ready)
        time.sleep(draw.random() * 0.01)
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
        assert is_whole(c.load(path), states)
        left = [name for name in os.listdir(tmp_path) if name != "model"]
        # What was not renamed yet has a name of its own, that tells what it is.
        assert all(name.startswith("model.") and name.endswith(".part") for name in left) and len(left) <= 1
        for name in left:
            os.unlink(tmp_path / name)
    assert killed == KILLS // 2


@pytest.mark.parametrize("step", ["fsync", "link", "replace"])
def test_what_fails_on_the_way_leaves_the_old_one(tmp_path, monkeypatch, step):
    path = tmp_path / "model"
    c.save(1, path)

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        c.save(2, path)
    monkeypatch.undo()
    assert c.load(path) == 1 and os.listdir(tmp_path) == ["model"]


def test_the_bytes_are_on_the_disk_before_the_name(tmp_path, monkeypatch):
    done = []
    for step in ("fsync", "replace"):
        call = getattr(os, step)
        monkeypatch.setattr(os, step, lambda *arguments, step=step, call=call: (done.append(step), call(*arguments))[1])
    c.save(c.ones(3), tmp_path / "x")
    assert done == ["fsync", "replace", "fsync"]


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "x"
    before = os.umask(0o027)
    try:
        c.save(1, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        c.save(2, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604 and c.load(path) == 2
        path.chmod(0o400)
        c.save(3, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o400 and c.load(path) == 3
    finally:
        os.umask(before)


def test_symbolic_links_stay(tmp_path):
    (tmp_path / "real").mkdir()
    target, link, other = tmp_path / "real" / "model", tmp_path / "latest", tmp_path / "new"
    c.save(1, target)
    link.symlink_to("real/model")
    c.save(2, link)
    assert link.is_symlink() and c.load(target) == 2 and os.listdir(tmp_path / "real") == ["model"]
    # One that leads nowhere yet.
    other.symlink_to(tmp_path / "real" / "second")
    c.save(3, other)
    assert other.is_symlink() and c.load(tmp_path / "real" / "second") == 3


def test_hard_links_keep_what_was(tmp_path):
    c.save(1, tmp_path / "x")
    os.link(tmp_path / "x", tmp_path / "y")
    c.save(2, tmp_path / "x")
    assert c.load(tmp_path / "x") == 2 and c.load(tmp_path / "y") == 1


def test_what_is_no_ordinary_file_is_written_to(tmp_path):
    c.save({"x": c.ones(2)}, "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-c", f"print(len(open({str(pipe)!r}, 'rb').read()))"], stdout=subprocess.PIPE
    ) as reader:
        c.save({"x": c.ones(2)}, pipe)
        held = io.BytesIO()
        c.save({"x": c.ones(2)}, held)
        assert int(reader.communicate()[0]) == len(held.getvalue())


def test_streams_that_take_bytes_in_parts():
    class Slow(io.RawIOBase):
        def __init__(self):
            self.held = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.held += bytes(data[:1000])
            return min(len(data), 1000)

    slow, fast = Slow(), io.BytesIO()
    for stream in (slow, fast):
        c.save({"x": c.arange(5000.0)}, stream)
    assert bytes(slow.held) == fast.getvalue()
    slow = Slow()
    save_npy(slow, c.arange(5000))
    assert np.load(io.BytesIO(bytes(slow.held))).tolist() == list(range(5000))


def test_an_archive_in_the_middle_of_a_file():
    file = io.BytesIO()
    file.write(b"before" * 7)
    c.save({"x": c.arange(3)}, file)
    assert c.load(file)["x"].tolist() == [0, 1, 2]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        c.save(1, tmp_path / "nowhere" / "x")
    with pytest.raises(IsADirectoryError):
        c.save(1, tmp_path)
    assert os.listdir(tmp_path) == []


def test_names_as_bytes(tmp_path):
    path = os.fsencode(tmp_path / "ß")
    c.save([1], path)
    assert c.load(path) == [1] and os.listdir(tmp_path) == ["ß"]


def interrupted(path):
    with replacing.replaced(path) as stream:
        stream.write(b"new")
        raise ZeroDivisionError


def test_the_block_is_left_by_an_exception(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        interrupted(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x"]
