"""Checkpoints: what is saved and loaded, by how many ranks, and in how much memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import environment
from shards import Shard, state

import candelabra
import candelabra.distributed.checkpoint as dcp
from candelabra.serialization import FileError

PYTORCH = Path(__file__).parent / "files" / "pytorch_checkpoint"


def test_tensors_and_values_come_back(tmp_path):
    dtypes = (candelabra.float64, candelabra.float16, candelabra.bfloat16, candelabra.bool, candelabra.uint16, candelabra.complex64, candelabra.complex128)  # fmt: skip
    saved = {
        "dtypes": {dtype.name: candelabra.arange(5).to(dtype) for dtype in dtypes},
        "transposed": candelabra.arange(6).reshape(2, 3).t(),
        "slice": candelabra.arange(10)[2:5],
        "scalar": candelabra.tensor(2.5),
        "none": candelabra.empty(0, 3),
        "plain": {"step": 7, "rate": 0.1, "words": ["a", "b"], "limits": (1, float("inf")), "nothing": None, "bytes": b"x"},
        "mixed": [1, {"x": candelabra.ones(2)}, (candelabra.zeros(1), "y")],
    }  # fmt: skip
    metadata = dcp.save(saved, checkpoint_id=tmp_path)
    loaded = {
        "dtypes": {dtype.name: candelabra.zeros(5, dtype=dtype) for dtype in dtypes},
        "transposed": candelabra.zeros(3, 2, dtype=candelabra.int64),
        "slice": candelabra.zeros(3),
        "scalar": candelabra.tensor(0.0),
        "none": None,
        "plain": dict.fromkeys(saved["plain"]),
        "mixed": [0, {"x": candelabra.zeros(2)}, (candelabra.ones(1), "")],
    }
    part = loaded["mixed"][1]["x"]
    dcp.load(loaded, checkpoint_id=tmp_path)
    for dtype in dtypes:
        assert candelabra.equal(loaded["dtypes"][dtype.name], saved["dtypes"][dtype.name])
    assert candelabra.equal(loaded["transposed"], saved["transposed"])
    assert loaded["slice"].tolist() == [2.0, 3.0, 4.0] and loaded["slice"].dtype == candelabra.float32
    assert loaded["scalar"].item() == 2.5 and loaded["none"].shape == (0, 3)
    assert loaded["plain"] == saved["plain"] and type(loaded["plain"]["limits"]) is tuple
    assert loaded["mixed"][1]["x"] is part and part.tolist() == [1.0, 1.0]
    assert loaded["mixed"][0] == 1 and loaded["mixed"][2][1] == "y" and loaded["mixed"][2][0].item() == 0.0
    entry = metadata.state_dict_metadata["dtypes.complex128"]
    assert entry.size == (5,) and entry.properties.dtype == candelabra.complex128
    assert isinstance(metadata.state_dict_metadata["plain.step"], dcp.BytesStorageMetadata)


def test_files_are_safetensors(tmp_path):
    dcp.save({"weight": candelabra.arange(4), "step": 3}, checkpoint_id=tmp_path)
    index = json.loads((tmp_path / "index.json").read_text())
    found = candelabra.safetensors.load_file(tmp_path / index["files"][0]["name"])
    assert found["weight"].tolist() == [0, 1, 2, 3]


def test_objects_with_a_state(tmp_path):
    class Counter:
        def __init__(self, count):
            self.count = count

        def state_dict(self):
            return {"count": self.count, "tensor": candelabra.full((2,), float(self.count))}

        def load_state_dict(self, state):
            self.count = state["count"] + int(state["tensor"].sum())

    dcp.save({"counter": Counter(3)}, checkpoint_id=tmp_path)
    counter = Counter(0)
    dcp.load({"counter": counter}, checkpoint_id=tmp_path)
    assert counter.count == 3 + 6


SAVE = """
from shards import state
import candelabra.distributed.checkpoint as dcp
dist.init_process_group("cpu:reference")
rank, size = dist.get_rank(), dist.get_world_size()
saved = {**state(rank, size), "bias": candelabra.arange(5), "step": 7 + rank}
"""


def test_any_number_of_ranks_loads(job, tmp_path):
    """Ranks that load do not meet, so that this process can be each of them."""
    folder = tmp_path / "checkpoint"
    program = SAVE + f"dcp.save(saved, checkpoint_id={str(folder)!r})"
    assert job(program, 4).status == 0
    assert sorted(path.suffix for path in folder.iterdir()) == [".json"] + [".safetensors"] * 4
    for count in (1, 2, 3, 4, 8):
        for rank in range(count):
            loaded = {**state(rank, count, empty=True), "bias": candelabra.zeros(5), "step": 0}
            dcp.load(loaded, checkpoint_id=folder)
            assert all(shard.is_right() for shard in loaded["model"].values())
            assert loaded["bias"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0] and loaded["step"] == 7
    whole = {"model": {"columns": None}}
    dcp.load(whole, checkpoint_id=folder)
    assert whole["model"]["columns"].shape == (7, 11)


def test_ranks_with_other_names_and_replicas(job, tmp_path):
    """Stages of a pipeline have names of their own. Of equal parts, one rank saves each."""
    folder = tmp_path / "checkpoint"
    program = SAVE + (
        "from shards import Shard\n"
        "stage = {f'stage{rank}': candelabra.full((3,), float(rank)), 'shared': candelabra.ones(2)}\n"
        "replica = Shard(candelabra.arange(8), 0, rank % 1, 1, is_saved_here=rank == 1)\n"
        f"dcp.save({{**stage, 'replica': replica}}, checkpoint_id={str(folder)!r})"
    )
    assert job(program, 2).status == 0
    loaded = dict.fromkeys(("stage0", "stage1", "shared", "replica"))
    dcp.load(loaded, checkpoint_id=folder)
    assert loaded["stage0"].tolist() == [0.0] * 3 and loaded["stage1"].tolist() == [1.0] * 3
    assert loaded["shared"].tolist() == [1.0, 1.0] and loaded["replica"].tolist() == list(range(8))
    index = json.loads((folder / "index.json").read_text())
    assert [len(index["tensors"][name]["parts"]) for name in ("shared", "replica")] == [1, 1]


def test_ranks_share_the_writing_of_equal_tensors(job, tmp_path):
    folder = tmp_path / "checkpoint"
    program = SAVE + f"dcp.save({{str(n): candelabra.ones(1000) for n in range(4)}}, checkpoint_id={str(folder)!r})"
    assert job(program, 2).status == 0
    sizes = [path.stat().st_size for path in folder.glob("*.safetensors")]
    assert len(sizes) == 2 and all(8000 < size < 9000 for size in sizes)


def test_saving_in_a_thread(job, tmp_path):
    """Once async_save has returned, the state may change, and ranks may call collectives."""
    folder = tmp_path / "checkpoint"
    program = SAVE + (
        f"first = dcp.async_save(saved, checkpoint_id={str(folder)!r})\n"
        "for shard in saved['model'].values(): shard.local.zero_()\n"
        "x = candelabra.ones(1); dist.all_reduce(x)\n"
        f"second = dcp.async_save({{'x': x}}, checkpoint_id={str(folder / 'second')!r})\n"
        "dist.barrier(); first.result(); line('saved', sorted(second.result().state_dict_metadata))"
    )
    assert job(program, 2).lines("saved") == ["['x']", "['x']"]
    loaded = {**state(0, 1, empty=True), "bias": None, "step": 0}
    dcp.load(loaded, checkpoint_id=folder)
    assert all(shard.is_right() for shard in loaded["model"].values()) and loaded["step"] == 7


def test_a_rank_that_cannot_write_is_named(job, tmp_path):
    folder = tmp_path / "checkpoint"
    dcp.save({"x": candelabra.ones(1)}, checkpoint_id=folder)
    program = SAVE + (
        "import candelabra.distributed.checkpoint.saving as saving\n"
        "def full(*arguments): raise OSError(28, 'No space left on device')\n"
        "if rank == 1: saving.write_rank_file = full\n"
        f"line('error', repr(raised(dcp.CheckpointException, dcp.save, saved, checkpoint_id={str(folder)!r})))\n"
        f"line('error', repr(raised(dcp.CheckpointException, dcp.save, {{'x': object() if rank else 1}}, checkpoint_id={str(folder)!r})))"
    )
    errors = job(program, 2).lines("error")
    assert len(errors) == 4 and all("no checkpoint was saved" in error for error in errors)
    assert sum("rank 1: OSError: [Errno 28] No space left on device" in error for error in errors) == 2
    assert sum("rank 1: TypeError: save(): 'x' is no plain data" in error for error in errors) == 2
    loaded = {"x": candelabra.zeros(1)}
    dcp.load(loaded, checkpoint_id=folder)
    assert loaded["x"].item() == 1.0 and len(list(folder.iterdir())) == 2


def test_parts_that_are_missing_or_contradict_are_refused(job, tmp_path):
    program = SAVE + (
        "from shards import Shard\n"
        "full = candelabra.arange(8)\n"
        f"save = lambda value: raised(dcp.CheckpointException, dcp.save, {{'x': value}}, checkpoint_id={str(tmp_path / 'c')!r})\n"
        "line('missing', repr(save(Shard(full, 0, 0, 2, is_saved_here=rank == 0))))\n"
        "line('differ', repr(save(candelabra.ones(2 + rank))))\n"
    )
    result = job(program, 2)
    assert all("the ranks have 4 of the 8 elements of 'x'" in line for line in result.lines("missing"))
    assert all("[3]" in line and "[2]" in line for line in result.lines("differ")) and len(result.lines("differ")) == 2
    assert not list((tmp_path / "c").glob("index.json"))


def test_errors_of_calls(tmp_path):
    dcp.save({"x": candelabra.ones(2), "step": 1, "a": {"b": 1}}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: y"):
        dcp.load({"y": candelabra.ones(2)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Size mismatch between saved .*2.* and current: .*3.* for x"):
        dcp.load({"x": candelabra.ones(3)}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="'step' is a tensor, and in the checkpoint it is none"):
        dcp.load({"step": candelabra.ones(3)}, checkpoint_id=tmp_path)
    partial = {"y": 5, "step": 0}
    dcp.load(partial, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert partial == {"y": 5, "step": 1}
    with pytest.raises(ValueError, match="duplicate key a.b"):
        dcp.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    with pytest.raises(TypeError, match="'f' is no plain data"):
        dcp.save({"f": object()}, checkpoint_id=tmp_path)
    with pytest.raises(dcp.CheckpointException, match="overwrite is False"):
        dcp.save({}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        dcp.load({}, checkpoint_id=tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="holds no complete checkpoint"):
        dcp.load({}, checkpoint_id=PYTORCH.parent)
    with pytest.raises(ValueError, match="pass checkpoint_id"):
        dcp.save({})
    with pytest.raises(TypeError, match="expected a FileSystemReader"):
        dcp.load({}, storage_reader=dcp.FileSystemWriter(tmp_path))
    with pytest.raises(TypeError, match="planner must be a DefaultLoadPlanner"):
        dcp.load({}, checkpoint_id=tmp_path, planner=dcp.DefaultSavePlanner())


def test_regions_far_apart_and_large(tmp_path):
    """Rows longer than the buffer, and columns whose rows are not read in between."""
    wide = candelabra.arange(3 * (1 << 21)).reshape(3, 1 << 21)
    tall = candelabra.arange(1 << 21).reshape(1 << 10, 1 << 11)
    dcp.save({"wide": wide, "tall": tall}, checkpoint_id=tmp_path)
    for rank in range(3):
        loaded = {"wide": Shard(wide, 1, rank, 3, empty=True), "tall": Shard(tall, 1, rank, 500, empty=True)}
        dcp.load(loaded, checkpoint_id=tmp_path)
        assert all(shard.is_right() for shard in loaded.values())


MEMORY = """
import sys
import candelabra, candelabra.distributed.checkpoint as dcp
from shards import Shard
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
def growth(call):
    open("/proc/self/clear_refs", "w").write("5")
    before = peak()
    call()
    return peak() - before
small = {"x": candelabra.ones(300, 300), "y": Shard(candelabra.ones(300, 300), 0, 0, 1)}
dcp.save(small, checkpoint_id=sys.argv[1])
dcp.load(small, checkpoint_id=sys.argv[1])
x = candelabra.arange(1 << 24, dtype=candelabra.float32).reshape(1 << 12, 1 << 12)
out = {"x": x.t(), "y": Shard(x, 0, 0, 1)}
print(growth(lambda: dcp.save(out, checkpoint_id=sys.argv[1])))
new = {"x": candelabra.zeros(1 << 12, 1 << 12), "y": Shard(x, 1, 0, 1, empty=True)}
print(growth(lambda: dcp.load(new, checkpoint_id=sys.argv[1])))
assert new["y"].is_right() and candelabra.equal(new["x"], x.t())
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory cannot be reset here")
def test_memory(tmp_path):
    """128 MB are saved and loaded with less than a tenth more."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "checkpoint")],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        env=environment(),
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(int(growth) < 12 << 20 for growth in done.stdout.split()), done.stdout


def test_checkpoints_of_pytorch():
    """Saved by PyTorch on 2 ranks: rows and columns that are sharded, other tensors, values."""
    full = candelabra.arange(15).reshape(5, 3)
    for count in (1, 2, 3):
        for rank in range(count):
            loaded = {
                "model": {
                    "weight": Shard(full.float(), 1, rank, count, empty=True),
                    "columns": Shard(full.to(candelabra.bfloat16), 0, rank, count, empty=True),
                    "bias": candelabra.zeros(3, dtype=candelabra.int64),
                    "scalar": candelabra.tensor(0.0),
                },
                "step": 0,
                "names": None,
                "mixed": [candelabra.zeros(2), 0.0],
                "complex": None,
            }
            dcp.load(loaded, checkpoint_id=PYTORCH)
            assert loaded["model"]["weight"].is_right() and loaded["model"]["columns"].is_right()
            assert loaded["model"]["bias"].tolist() == [0, 2, 4] and loaded["model"]["scalar"].item() == 2.5
            assert (loaded["step"], loaded["names"], loaded["mixed"][1]) == (7, ["a", "b"], 3.5)
            assert loaded["mixed"][0].tolist() == [1.0, 1.0] and loaded["complex"].tolist() == [1 + 2j]
    entries = dcp.FileSystemReader(PYTORCH).read_metadata().state_dict_metadata
    assert [tuple(chunk.sizes) for chunk in entries["model.columns"].chunks] == [(5, 2), (5, 1)]


def test_a_file_that_vanished_is_named(tmp_path):
    dcp.save({"x": candelabra.ones(2)}, checkpoint_id=tmp_path)
    (file,) = tmp_path.glob("*.safetensors")
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(FileError, match=f"{file.name} is damaged: it has {len(content) - 1} bytes instead"):
        dcp.load({"x": candelabra.zeros(2)}, checkpoint_id=tmp_path)
    file.unlink()
    with pytest.raises(FileError, match=f"{file.name} is missing"):
        dcp.load({"x": candelabra.zeros(2)}, checkpoint_id=tmp_path)
