"""Test candelabra.distributed on MPI: the suites of the package, killed ranks, mpiexec, and the
example.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import zlib
from importlib import import_module, metadata
from pathlib import Path

import pytest

MPI = "candelabra_collectives_mpi"
pytest.importorskip(MPI)

ROOT = Path(__file__).parents[2]
SUITES = ROOT / "packages" / "distributed" / "tests"
LAUNCHER = [sys.executable, "-W", "ignore", "-m", "candelabra.distributed.run"]


def run(*command: str, timeout: float = 100, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize(
    ("suite", "chosen"),
    [
        ("test_collectives", ""),
        ("test_data_parallel", ""),
        ("test_tensors", "redistribute or parallel-2"),
        ("test_fully_shard", "training"),
        ("test_shrinking", "ranks_of"),
    ],
)
def test_suites_of_the_package(suite: str, chosen: str) -> None:
    done = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, str(SUITES / f"{suite}.py"),
        CANDELABRA_TEST_ENGINE="mpi",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]


def test_names_of_sharding_under_torch() -> None:
    """What candelabra-torch-compat refuses alone is there with candelabra-distributed."""
    program = """
import candelabra.torch; candelabra.torch.install()
import torch, torch.distributed as dist
from torch.distributed._composable.fsdp import MixedPrecisionPolicy
from torch.distributed._tensor import DTensor, Shard
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.placement_types import Placement, _StridedShard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
import torch.distributed.rpc as rpc, torch.distributed.tensor
assert issubclass(Shard, Placement) and torch.distributed.tensor.DTensor is DTensor
for call in (lambda: FullyShardedDataParallel(torch.nn.Linear(1, 1)), lambda: rpc.init_rpc("a")):
    try: call()
    except NotImplementedError as error: assert "fully_shard" in str(error) or "isend" in str(error)
    else: raise AssertionError
dist.init_process_group("fake", rank=0, world_size=2)
mesh = dist.init_device_mesh("cpu", (2,))
assert isinstance(fully_shard(torch.nn.Linear(4, 4), mesh=mesh).weight, DTensor)
assert compute_local_shape_and_global_offset((3,), mesh, [Shard(0)]) == ((2,), (0,))
"""
    done = run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr


PROGRAM = """
import os, signal, sys, time
from datetime import timedelta
import candelabra
import candelabra.distributed as dist
"""


@pytest.mark.parametrize("count", [1, 262144])
def test_a_killed_rank_is_named(tmp_path: Path, count: int) -> None:
    """More ranks than processors, in a loop of collectives."""
    script = tmp_path / "program.py"
    script.write_text(
        PROGRAM
        + f"""
dist.init_process_group("mpi")
x = candelabra.ones({count})
start = time.monotonic()
try:
    while True:
        dist.all_reduce(x)
        if dist.get_rank() == 1 and time.monotonic() - start > 0.3:
            open(sys.argv[1], "w").write(f"{{time.time()!r}} {{os.getpid()}}")
            os.kill(os.getpid(), signal.SIGKILL)
except dist.DistBackendError as error:
    since, process = open(sys.argv[1]).read().split()
    sys.stdout.write(f"told {{time.time() - float(since)}} {{process}} {{error}}\\n")
"""
    )
    done = run(*LAUNCHER, "--nproc-per-node", "3", str(script), str(tmp_path / "mark"))
    told = re.findall(r"^told (\S+) (\d+) (.*)$", done.stdout, re.MULTILINE)
    assert len(told) == 2, done.stdout + done.stderr
    for seconds, process, text in told:
        assert float(seconds) < 10  # milliseconds, unless the machine stands still
        assert re.fullmatch(
            rf"all_reduce\(float32 {count}\) \(number \d+\) on rank [02]: rank 1 \(process {process}\) was killed by signal 9; "
            rf"its last collective was all_reduce\(float32 {count}\) \(number \d+\)",
            text,
        ), text
    assert done.returncode == 1 and "signal    : 9 (SIGKILL)" in done.stderr


@pytest.mark.parametrize(("sizes", "told"), [((262144, 131072), "different collectives"), ((262144, 5), "timed out")])
def test_a_call_of_another_shape_is_named(tmp_path: Path, sizes: tuple[int, int], told: str) -> None:
    """At once where ranks share memory and see it, and else at the time limit."""
    script = tmp_path / "program.py"
    script.write_text(
        PROGRAM
        + f"""
dist.init_process_group("mpi", timeout=timedelta(seconds=2))
x = candelabra.ones({sizes}[dist.get_rank()])
try: dist.all_reduce(x)
except dist.DistBackendError as error: sys.stdout.write(f"told {{dist.get_rank()}} {{error}}\\n")
store = dist.group.WORLD.get_group_store()
store.set(f"told {{dist.get_rank()}}", b"")
store.wait(["told 0", "told 1"], timedelta(seconds=60))  # who has left is in no collective
"""
    )
    done = run(*LAUNCHER, "--nproc-per-node", "2", str(script))
    texts = sorted(re.findall(r"^told (.*)$", done.stdout, re.MULTILINE))
    assert len(texts) == 2, done.stdout + done.stderr
    for rank, text in enumerate(texts):
        assert text.startswith(f"{rank} all_reduce(float32 {sizes[rank]}) (number 1) on rank {rank}: ") and told in text
        assert f"all_reduce(float32 {sizes[1 - rank]}" in text.partition(": ")[2]


def test_without_the_launcher(tmp_path: Path) -> None:
    """Processes that meet by a file, as torch's examples for one machine do."""
    script = tmp_path / "program.py"
    script.write_text(
        PROGRAM
        + """
dist.init_process_group("gloo", "file://" + sys.argv[1], rank=int(sys.argv[2]), world_size=2)
x = candelabra.ones(3) * (dist.get_rank() + 1)
dist.all_reduce(x)
print("done", dist.get_rank(), x.tolist())
dist.destroy_process_group()
"""
    )
    second = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "meeting"), "1"], stdout=subprocess.PIPE, text=True
    )
    first = run(sys.executable, str(script), str(tmp_path / "meeting"), "0")
    out, _ = second.communicate(timeout=60)
    assert first.stdout == "done 0 [3.0, 3.0, 3.0]\n" and out == "done 1 [3.0, 3.0, 3.0]\n"
    assert first.stderr.count("'gloo' is carried out by 'mpi'") == 1


def test_mpiexec(tmp_path: Path) -> None:
    mpiexec = Path(sys.prefix) / "bin" / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("mpiexec is not installed beside MPI")
    script = tmp_path / "program.py"
    script.write_text(
        PROGRAM
        + """
dist.init_process_group("mpi")
x = candelabra.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(x)
sys.stdout.write(f"done {dist.get_rank()} {dist.get_world_size()} {x.item()}\\n")
dist.destroy_process_group()
"""
    )
    done = run(str(mpiexec), "-n", "2", sys.executable, str(script))
    assert sorted(done.stdout.splitlines()) == ["done 0 2 3.0", "done 1 2 3.0"], done.stderr
    assert done.returncode == 0


def test_the_example_goes_on_after_a_kill(tmp_path: Path) -> None:
    checkpoint = tmp_path / "saved.pt"
    example = str(ROOT / "examples" / "train_distributed.py")
    options = ["--epochs", "4", "--checkpoint", str(checkpoint), "--kill-in-epoch", "2"]
    done = run(*LAUNCHER, "--nproc-per-node", "2", "--max-restarts", "1", example, *options)
    assert done.returncode == 0, done.stderr
    assert "was killed by signal 9" in done.stderr and "goes on with epoch 2" in done.stdout
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]
    assert len(losses) == 4 and losses[-1] < losses[0]


def test_the_example_goes_on_with_fewer_ranks(tmp_path: Path) -> None:
    """Two launchers, of which the second is killed."""
    example = str(ROOT / "examples" / "train_distributed.py")
    script = ["--epochs", "4", "--checkpoint", str(tmp_path / "saved.pt"), "--lose-machine-in-epoch", "2"]
    for _ in range(10):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        rendezvous = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-id", "rings", "--max-restarts", "1"]
        commands = [
            [*LAUNCHER, *rendezvous, "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-conf", f"is_host={n}", example]
            for n in (0, 1)
        ]
        with subprocess.Popen([*commands[0], *script]) as second:
            done = run(*commands[1], *script)
            if "which is in use" in done.stderr:
                second.kill()
                continue
            assert second.wait(60) == -9
        break
    assert done.returncode == 0, done.stderr
    assert "goes on with epoch 2 on 1 ranks" in done.stdout
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]
    assert len(losses) == 4 and losses[-1] < losses[0]


TRAINER = (
    PROGRAM
    + """
from candelabra import nn, optim
from candelabra.distributed.data_parallel import DistributedDataParallel
from candelabra.distributed.optim import ZeroRedundancyOptimizer
from candelabra.utils import Trainer
from candelabra.utils.data import DataLoader, DistributedSampler, TensorDataset
from candelabra.utils.trainer import Checkpoints

dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()
data = TensorDataset(candelabra.arange(48))
candelabra.manual_seed(rank)
model = DistributedDataParallel(nn.Linear(1, 1))
optimizer = ZeroRedundancyOptimizer(model.parameters(), optim.Adam, lr=0.01)
seen = []
def step(model, batch):
    seen.append(" ".join(map(str, batch[0].tolist())))
    if sys.argv[2] == "signal" and rank == 1 and len(seen) == 3: os.kill(os.getpid(), signal.SIGTERM)
    return model(batch[0][:, None] / 48).pow(2).mean()
trainer = Trainer(model, optimizer, step=step, checkpoints=Checkpoints(sys.argv[1], every_steps=1), progress_bar=False)
loader = DataLoader(data, 2, sampler=DistributedSampler(data))
trainer.fit(loader, epochs=2, resume=True)
draws = candelabra.rand(1).item()
sys.stdout.write("".join(f"seen {each}\\n" for each in seen) + f"rank {rank} {trainer.progress.step} {trainer.stopped} {draws}\\n")
dist.barrier()
"""
)


@pytest.mark.parametrize("after", [1, 4])
def test_a_trainer_goes_on_with_another_number_of_ranks(tmp_path: Path, after: int) -> None:
    """A signal on one rank stops all; each sample of the two epochs is seen once."""
    script = tmp_path / "program.py"
    script.write_text(TRAINER)
    folder = str(tmp_path / "checkpoints")
    first = run(*LAUNCHER, "--nproc-per-node", "2", str(script), folder, "signal")
    assert first.returncode == 0, first.stderr
    ends = sorted(re.findall(r"^rank (\d) (\d+) (\S+ ?\S*) \S+$", first.stdout, re.MULTILINE))
    assert ends == [("0", "3", "another rank"), ("1", "3", "SIGTERM")]
    second = run(*LAUNCHER, "--nproc-per-node", str(after), str(script), folder, "")
    assert second.returncode == 0, second.stderr
    seen = [int(number) for line in re.findall(r"^seen (.*)$", first.stdout + second.stdout, re.MULTILINE)
            for number in line.split()]  # fmt: skip
    assert sorted(seen) == sorted([*range(48), *range(48)])
    draws = re.findall(r"^rank \d \d+ None (\S+)$", second.stdout, re.MULTILINE)
    assert len(set(draws)) == after  # the generators of the ranks differ, as before


SHARDED_TRAINER = (
    PROGRAM
    + """
from candelabra import nn, optim
from candelabra.distributed.device_mesh import init_device_mesh
from candelabra.distributed.fsdp import fully_shard
from candelabra.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from candelabra.utils import Trainer
from candelabra.utils.data import DataLoader, DistributedSampler, TensorDataset
from candelabra.utils.trainer import Checkpoints

folder, kind, steps = sys.argv[1:]
if kind != "plain":
    dist.init_process_group("mpi")
rank, size = (0, 1) if kind == "plain" else (dist.get_rank(), dist.get_world_size())
replicas, number = size, rank
candelabra.manual_seed(3)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
if kind == "parallel":  # all ranks compute one loss together
    parallelize_module(model, init_device_mesh("cpu", (size,)), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    replicas, number = 1, 0
elif kind == "both":
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    replicas, number = size // 2, rank // 2
elif kind == "sharded":
    for layer in (model[0], model[2]): fully_shard(layer)
    fully_shard(model)
optimizer = optim.Adam(model.parameters(), lr=0.01)
data = TensorDataset(candelabra.arange(24))
seen = []
def step(model, batch):
    seen.append(" ".join(map(str, batch[0].tolist())))
    x = batch[0][:, None] / 24
    return (model(x) - x * x).pow(2).mean()
def whole():
    values = [each.full_tensor() if hasattr(each, "full_tensor") else each for each in model.state_dict().values()]
    values += [optimizer.state[each]["exp_avg"] for each in model.parameters()] if optimizer.state else []
    values = [each.full_tensor() if hasattr(each, "full_tensor") else each for each in values]
    return [[round(x, 6) for x in each.detach().reshape(-1).tolist()] for each in values]
class Tells:
    def on_fit_start(self, trainer): text = whole(); rank or sys.stdout.write(f"start {trainer.progress.step} {text}\\n")
    def on_fit_end(self, trainer): text = whole(); rank or sys.stdout.write(f"end {trainer.progress.step} {text}\\n")
trainer = Trainer(model, optimizer, step=step, checkpoints=Checkpoints(folder, every_steps=2, keep_last=2), clip_norm=0.5, callbacks=[Tells()], progress_bar=False)
loader = DataLoader(data, 2, sampler=DistributedSampler(data, replicas, number))
trainer.fit(loader, epochs=2, steps=int(steps) or None, resume=True)
if rank % (size // replicas) == 0:
    sys.stdout.write("".join(f"seen {each}\\n" for each in seen))
"""
)


def _values(text: str, word: str) -> tuple[int, str]:
    found = re.findall(rf"^{word} (\d+) (.*)$", text, re.MULTILINE)
    assert len(found) == 1, text
    return int(found[0][0]), found[0][1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("sharded", 2), ("sharded", 3)),
        (("sharded", 3), ("plain", 1)),
        (("parallel", 2), ("sharded", 1)),
        (("both", 4), ("parallel", 2)),
    ],
)
def test_a_trainer_of_a_sharded_model_goes_on(tmp_path: Path, first: tuple[str, int], second: tuple[str, int]) -> None:
    """On another number of ranks, with the model in other parts; each sample is seen once."""
    script = tmp_path / "program.py"
    script.write_text(SHARDED_TRAINER)
    folder = str(tmp_path / "checkpoints")
    texts = []
    for (kind, count), steps in ((first, "3"), (second, "0")):
        done = run(*LAUNCHER, "--nproc-per-node", str(count), str(script), folder, kind, steps)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert _values(texts[0], "start")[0] == 0 and _values(texts[0], "end")[0] == 3
    assert _values(texts[1], "start") == _values(texts[0], "end")
    seen = [int(number) for line in re.findall(r"^seen (.*)$", "".join(texts), re.MULTILINE) for number in line.split()]
    assert sorted(seen) == sorted([*range(24), *range(24)])
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert len(names) == 2
    for name in names:
        assert (tmp_path / "checkpoints" / name / "index.json").exists() == (second[0] != "plain")


def test_a_trainer_of_a_sharded_model_resumes_exactly(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(SHARDED_TRAINER)
    ends = []
    for folder, limits in (("whole", ["0"]), ("parts", ["7", "0"])):
        for steps in limits:
            done = run(*LAUNCHER, "--nproc-per-node", "2", str(script), str(tmp_path / folder), "sharded", steps)
            assert done.returncode == 0, done.stderr
        ends.append(_values(done.stdout, "end"))
    assert ends[0] == ends[1] and ends[0][0] == 12


def test_the_example_of_sharding() -> None:
    done = run(*LAUNCHER, "--nproc-per-node", "2", str(ROOT / "examples" / "train_sharded.py"))
    assert done.returncode == 0, done.stderr
    # Another rank's line may begin before the newline of this one.
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d{3})", done.stdout)]
    assert len(losses) == 3 and losses[-1] < losses[0]
    assert "rank 1 keeps 12768 of 25569 parameters" in done.stdout


def test_the_benchmarks_run(tmp_path: Path) -> None:
    """One short round of what is cheap to measure, and one killed rank."""
    written, results = tmp_path / "table.md", tmp_path / "results.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.distributed", "--only", "start,store", "--rounds", "1", "--kills", "1",
         "--phases", "collectives,checkpoint",
         "--write", str(written), "--json", str(results)],
        capture_output=True, text=True, timeout=200, cwd=ROOT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stdout.count("\n0 messages do not name it") == 2, done.stdout + done.stderr
    rows = json.loads(results.read_text())
    assert [row["found"]["candelabra"][0] > 0 for row in rows] == [True] * 4
    lines = written.read_text().splitlines()
    assert lines[0] == "|  | Candelabra | PyTorch, gloo | ratio | goal |" and len(lines) == 6


def test_what_is_installed_is_small() -> None:
    """At most 20 MB to download: both packages, and the MPI that comes with them."""
    try:
        runtime = [Path(str(each.locate())) for each in metadata.distribution("mpich").files or ()]
    except metadata.PackageNotFoundError:
        pytest.skip("the package mpich is not installed")
    folders = [Path(import_module(name).__file__ or "").parent for name in ("candelabra.distributed", MPI)]
    ours = [path for folder in folders for path in folder.rglob("*") if "__pycache__" not in path.parts]
    files = [path for path in [*runtime, *ours] if path.is_file() and not path.is_symlink()]
    assert sum(len(zlib.compress(path.read_bytes())) for path in files) < 20e6


def test_pytorch_programs_find_it() -> None:
    program = (
        "import candelabra.torch; candelabra.torch.install()\n"
        "import torch, torch.distributed as dist\n"
        "from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook\n"
        "from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState\n"
        "from torch.distributed.algorithms.join import Join, Joinable\n"
        "from torch.distributed.distributed_c10d import ProcessGroup\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "assert dist.is_available() and dist.group.WORLD is None\n"
        "dist.init_process_group('fake', rank=0, world_size=1)\n"
        "assert isinstance(dist.group.WORLD, ProcessGroup) and dist.get_rank() == 0\n"
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\n"
        "assert isinstance(model, DDP); model(torch.ones(1, 2)).sum().backward()\n"
        "assert model.module.weight.grad.tolist() == [[1.0, 1.0]]\n"
        "try: dist.fsdp.FullyShardedDataParallel(model)\n"
        "except NotImplementedError as error: assert 'fully_shard' in str(error)\n"
        "else: raise AssertionError\n"
    )
    done = run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
