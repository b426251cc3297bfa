"""Checkpoints that are interrupted or damaged: the last whole one stays, bad files are named."""

from __future__ import annotations

import json
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest
from programs import environment

import candelabra
import candelabra.distributed.checkpoint as dcp
from candelabra.serialization import FileError

PYTORCH = Path(__file__).parent / "files" / "pytorch_checkpoint"

#: Saves again and kills itself at each call by which it changes files, one after another.
KILLED = """
import builtins, os, signal, sys
import candelabra, candelabra.distributed.checkpoint as dcp
from candelabra.distributed.checkpoint import saving, rank_files, index
from candelabra.serialization import replacing
folder, calls, fatal = sys.argv[1], 0, 0
class Stream:
    def __init__(self, stream): self.stream = stream
    def __enter__(self): self.stream.__enter__(); return self
    def __exit__(self, *error): return self.stream.__exit__(*error)
    def __getattr__(self, name): return getattr(self.stream, name)
    def write(self, data):
        data = memoryview(data).cast("B")
        step(lambda: (self.stream.write(data[: len(data) // 2]), self.stream.flush()))
        return self.stream.write(data)
def step(half=None):
    global calls
    calls += 1
    if calls == fatal:
        if half is not None: half()
        os.kill(os.getpid(), signal.SIGKILL)
def counted(module, name):
    original = getattr(module, name)
    def call(*arguments, **keywords):
        step()
        return original(*arguments, **keywords)
    setattr(module, name, call)
for name in ("open", "fsync", "link", "replace", "unlink", "mkdir"): counted(os, name)
replacing.open = lambda *arguments: Stream(builtins.open(*arguments))
value = 1.0
while True:
    child = os.fork()
    if child == 0:
        calls, fatal = 0, int(value)
        dcp.save({"x": candelabra.full((5,), value), "step": int(value)}, checkpoint_id=folder)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    found = {"x": candelabra.zeros(5), "step": None}
    dcp.load(found, checkpoint_id=folder)
    print(found["x"].tolist(), found["step"], os.waitstatus_to_exitcode(status), len(os.listdir(folder)), flush=True)
    if status == 0: break
    value += 1.0
"""


def test_a_kill_at_any_step_leaves_a_whole_checkpoint(tmp_path):
    dcp.save({"x": candelabra.zeros(5), "step": 0}, checkpoint_id=tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, env=environment(), timeout=100, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) > 10 and lines[-1].split()[-2:] == ["0", "2"]
    last, were_new = 0, 0
    for number, line in enumerate(lines, start=1):
        step = int(line.split()[-3])
        assert line.startswith(str([float(step)] * 5)) and step in (last, number)
        assert line.split()[-2] == ("0" if number == len(lines) else "-9")
        were_new += step == number
        last = step
    assert 1 < were_new < len(lines)  # kills before and after the index was there


@pytest.mark.parametrize(
    ("rank", "when", "expected"),
    [
        (1, "before its file", 1.0),
        (1, "within its file", 1.0),
        (1, "after its file", 1.0),
        (0, "within its file", 1.0),
        (0, "before the index", 1.0),
        (0, "after the index", 0.0),
    ],
    ids=lambda value: str(value).replace(" ", "-"),
)
def test_a_rank_that_is_killed_while_others_wait(job, tmp_path, rank, when, expected):
    """The folder holds the earlier checkpoint, or the new one if its index is there."""
    folder = tmp_path / "checkpoint"
    dcp.save({"x": candelabra.ones(2, 2), "y": candelabra.ones(2, 2)}, checkpoint_id=folder)
    program = f"""
    import candelabra.distributed.checkpoint as dcp, candelabra.distributed.checkpoint.saving as saving
    from candelabra.distributed.checkpoint import index, rank_files
    dist.init_process_group("cpu:reference"); dist.barrier()
    def die(*arguments): os.kill(os.getpid(), signal.SIGKILL)
    def killed(module, name, after=False):
        original = getattr(module, name)
        def call(*arguments):
            if after: original(*arguments)
            die()
        setattr(module, name, call)
    if dist.get_rank() == {rank}:
        if {when!r} == "before its file": killed(saving, "write_rank_file")
        if {when!r} == "within its file": killed(rank_files, "storage_memory")
        if {when!r} == "after its file": killed(saving, "write_rank_file", after=True)
        if {when!r} == "before the index": killed(saving, "_complete")
        if {when!r} == "after the index": killed(index, "write_index", after=True)
    state = {{name: candelabra.zeros(2, 2) for name in "xy"}}  # each rank writes one of them
    line("error", raised(dist.DistBackendError, dcp.save, state, checkpoint_id={str(folder)!r}))
    """
    result = job(program, 2)
    assert result.lines("error"), result.errors
    (error,) = result.lines("error")
    assert f"rank {rank}" in error and "was killed by signal 9" in error
    loaded = {"x": candelabra.zeros(2, 2), "y": candelabra.zeros(2, 2)}
    dcp.load(loaded, checkpoint_id=folder)
    assert all(value.tolist() == [[expected] * 2] * 2 for value in loaded.values())
    dcp.save({"x": candelabra.ones(2)}, checkpoint_id=folder)
    assert len(list(folder.iterdir())) == 2


def _saved(folder: Path) -> dict:
    dcp.save({"x": candelabra.arange(6).reshape(2, 3), "step": 1}, checkpoint_id=folder)
    return json.loads((folder / "index.json").read_text())


def _load(folder: Path) -> dict:
    loaded = {"x": None, "step": None}
    dcp.load(loaded, checkpoint_id=folder)
    return loaded


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "its format is another"),
        (("version",), 2, "has version 2"),
        (("files", 0, "name"), "../x", "is not described"),
        (("files", 0, "bytes"), -1, "is not described"),
        (("tensors", "x", "dtype"), "F3", "unknown dtype"),
        (("tensors", "x", "shape"), [1 << 40, 1 << 40], "unknown dtype or an impossible shape"),
        (("tensors", "x", "shape"), [1 << 20, 3], "of the .* elements of 'x'|too short for 'x'"),
        (("tensors", "x", "shape"), [2], "another number of dimensions"),
        (("tensors", "x", "parts", 0, 0), 1, "is in no file"),
        (("tensors", "x", "parts", 0, 1), 1 << 30, "lies behind the end of"),
        (("tensors", "x", "parts", 0, 2), [1, 0], "lies outside of the tensor"),
        (("tensors", "x", "parts", 0, 3), [1, 3], "has 3 of the 6 elements of 'x'"),
        (("tensors", "x", "parts", 0, 3), ["a", 3], "impossible sizes|damaged"),
        (("objects", "step"), {"archive": "AAAA"}, "damaged"),
        (("objects", "step"), 7, "damaged: a value that is not described"),
    ],
)
def test_a_damaged_index_is_named(tmp_path, path, value, message):
    index = _saved(tmp_path)
    place = index
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(FileError, match=message) as error:
        _load(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_random_damage_gives_named_errors(tmp_path):
    _saved(tmp_path)
    path = tmp_path / "index.json"
    content = path.read_bytes()
    chosen = random.Random(23)
    errors = []
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(chosen.randint(1, 3)):
            changed[chosen.randrange(len(changed))] = chosen.randrange(256)
        path.write_bytes(bytes(changed[: chosen.choice([len(changed), chosen.randrange(len(changed))])]))
        try:
            _load(tmp_path)
        except (FileError, dcp.CheckpointException) as error:
            errors.append(str(error))
    assert len(errors) > 200
    assert all(str(tmp_path) in error or "Missing key" in error for error in errors)


def test_random_damage_of_pytorchs_metadata(tmp_path):
    content = (PYTORCH / ".metadata").read_bytes()
    for file in PYTORCH.glob("*.distcp"):
        (tmp_path / file.name).symlink_to(file)
    chosen = random.Random(23)
    errors = []
    for _ in range(300):
        changed = bytearray(content)
        changed[chosen.randrange(len(changed))] = chosen.randrange(256)
        (tmp_path / ".metadata").write_bytes(
            bytes(changed[: chosen.choice([len(changed), chosen.randrange(len(changed))])])
        )
        try:
            dcp.load({"model": {"weight": None}, "step": None}, checkpoint_id=tmp_path)
        except (FileError, dcp.CheckpointException) as error:
            errors.append(str(error))
    assert len(errors) > 100
    assert all(str(tmp_path) in error or "Missing key" in error for error in errors)


def test_metadata_that_would_run_code_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.write_text, (tmp_path / "ran", "x"))

    (tmp_path / ".metadata").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(FileError, match=r"\.metadata"):
        dcp.load({}, checkpoint_id=tmp_path)
    assert not (tmp_path / "ran").exists()
