"""The hook: what it finds, what it says of what is missing, how it comes and goes, and in which
processes it is.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
import candelabra.torch


@pytest.fixture(autouse=True)
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


def test_names_are_those_of_candelabra(torch):
    assert torch.Tensor is candelabra.Tensor
    assert torch.nn.Module is candelabra.nn.Module
    assert torch.float32 is candelabra.float32
    assert torch.ones(2).tolist() == [1, 1]
    functional = importlib.import_module("torch.nn.functional")
    assert functional.relu is candelabra.nn.functional.relu
    assert importlib.import_module("torch.optim.lr_scheduler").StepLR is candelabra.optim.lr_scheduler.StepLR
    assert importlib.import_module("torch.nn.utils.rnn").pad_sequence is candelabra.nn.utils.rnn.pad_sequence
    assert candelabra.nn.__spec__.name == "candelabra.nn"
    assert {"nn", "optim", "ones"} <= set(dir(torch))


def test_types_have_pytorch_s_names(torch):
    assert torch.ones(1).type() == "torch.FloatTensor"
    assert torch.ones(1).type("torch.LongTensor").type() == "torch.LongTensor"


def test_star_import():
    names: dict = {}
    exec("from torch.nn import *\nfrom torch import *", names)
    assert names["Linear"] is candelabra.nn.Linear
    assert names["zeros"] is candelabra.zeros


def test_version_and_switches(torch):
    assert torch.__version__.startswith("2.")
    assert tuple(map(int, torch.__version__.split("+")[0].split("."))) >= (2, 0)
    assert torch.version.cuda is None
    assert torch.cuda.is_available() == (
        "cuda" in candelabra.backends.installed() and candelabra.backends.is_available("cuda")
    )
    assert torch.cuda.device_count() >= 0
    torch.cuda.manual_seed_all(3)
    torch.backends.cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark and candelabra.backends.cudnn.benchmark
    candelabra.backends.cudnn.benchmark = False
    assert not torch.backends.cudnn.benchmark
    torch.backends.cuda.matmul.allow_tf32 = True
    assert candelabra.get_float32_matmul_precision() == torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.mkldnn.is_available()
    assert not torch.backends.mps.is_available()
    assert not torch.xpu.is_available()
    assert torch.distributed.is_available() == (importlib.util.find_spec("candelabra.distributed") is not None)
    assert not torch.distributed.is_initialized()
    if not torch.cuda.is_available():
        assert torch.cuda.memory_allocated() == 0
        with pytest.raises(RuntimeError, match="candelabra-backend-cuda|no NVIDIA"):
            torch.cuda.synchronize()


def test_devices_are_those_of_the_backends(torch):
    assert torch.accelerator.is_available() == candelabra.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == candelabra.accelerator.current_accelerator()
    assert torch.cuda.Stream is candelabra.cuda.Stream and torch.cuda.CUDAGraph is candelabra.cuda.CUDAGraph
    amp = importlib.import_module("torch.cuda.amp")
    assert amp.GradScaler is candelabra.cuda.amp.GradScaler and issubclass(amp.autocast, candelabra.amp.autocast)
    importlib.import_module("torch.cuda.nvtx").range_push("nothing happens")


def test_compilers_leave_programs_as_they_are(torch):
    def double(x):
        return 2 * x

    assert torch.jit.script(double)(3) == 6
    assert torch.jit.ignore(double) is double
    assert torch.jit.ignore(drop=True)(double) is double
    assert torch.jit.trace(double, torch.ones(1))(torch.ones(1)).tolist() == [2]
    assert not torch.jit.is_scripting()


def test_onnx_is_that_of_candelabra_compile(torch):
    onnx = importlib.import_module("torch.onnx")
    assert onnx.export is candelabra.onnx.export and onnx.ONNXProgram is candelabra.onnx.ONNXProgram
    assert not onnx.is_in_onnx_export()
    assert issubclass(onnx.errors.UnsupportedOperatorError, onnx.OnnxExporterError)
    assert onnx.TrainingMode.EVAL == 0 and onnx.OperatorExportTypes.ONNX == 0
    if importlib.util.find_spec("onnx") is None:
        with pytest.raises(ModuleNotFoundError, match="pip install 'candelabra-compile.onnx.'"):
            onnx.export(torch.nn.ReLU(), (torch.ones(2),))


def test_files_are_those_of_pytorch(torch, tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"weight": torch.ones(2), "set": {1}}, path)
    with zipfile.ZipFile(path) as archive:
        assert {"model/data.pkl", "model/data/0", "model/version"} <= set(archive.namelist())
    assert torch.load(path, weights_only=True)["weight"].tolist() == [1, 1]
    torch.serialization.save([1], path, _use_new_zipfile_serialization=False)
    assert not zipfile.is_zipfile(path) and torch.load(path) == [1]


def test_what_is_missing_says_so(torch):
    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'no_such_thing' on Candelabra"):
        torch.no_such_thing
    with pytest.raises(AttributeError, match="no sparse tensors"):
        torch.sparse
    with pytest.raises(ModuleNotFoundError, match="'torch.nothing'.*there is no candelabra.nothing"):
        importlib.import_module("torch.nothing")
    with pytest.raises(ImportError, match="no_such_layer"):
        exec("from torch.nn import no_such_layer")
    assert not hasattr(torch.nn, "no_such_layer")


def test_replacing_a_function_is_seen(torch, monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "relu", abs)
    assert candelabra.nn.functional.relu is abs
    torch.my_own_name = 3
    assert torch.my_own_name == 3
    assert not hasattr(candelabra, "my_own_name")


def test_install_is_undone():
    assert candelabra.torch.is_installed()
    candelabra.torch.install()
    assert sum(type(finder).__name__ == "TorchFinder" for finder in sys.meta_path) == 1
    candelabra.torch.uninstall()
    assert not candelabra.torch.is_installed()
    assert "torch" not in sys.modules
    candelabra.torch.uninstall()


def test_pytorch_itself_must_not_be_there_already(monkeypatch):
    candelabra.torch.uninstall()
    monkeypatch.setitem(sys.modules, "torch", importlib.import_module("json"))
    with pytest.raises(RuntimeError, match="PyTorch itself is imported already"):
        candelabra.torch.install()
    assert not candelabra.torch.is_installed()


CHILDREN = """
import multiprocessing
import sys
import torch

def work(queue):
    queue.put((type(torch).__name__, torch.ones(3).sum().item()))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    child = context.Process(target=work, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    print(*queue.get())
"""


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children(tmp_path: Path, method: str) -> None:
    script = tmp_path / "children.py"
    script.write_text(CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "candelabra.torch", str(script), method], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.split() == ["Mirror", "3.0"], done.stderr


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    (tmp_path / "program.py").write_text(
        "import sys, torch, beside\nprint(__name__, sys.argv[1:], torch.tensor(beside.VALUE).item())\nsys.exit(3)\n"
    )

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "candelabra.torch", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
        )

    done = run("program.py", "--lr", "0.1")
    assert (done.stdout.strip(), done.returncode) == ("__main__ ['--lr', '0.1'] 7", 3)
    done = run("-m", "program", "x")
    assert done.stdout.strip() == "__main__ ['x'] 7"
    (tmp_path / "last.py").write_text(
        "import atexit, inspect, sys\n"
        "atexit.register(lambda: print(sys.modules['__main__'].__file__, __spec__, __loader__ is not None))\n"
        "print(inspect.getmodule(inspect.stack(0)[-1].frame, '<frozen runpy>').__name__)\n"
    )
    done = run("last.py")
    assert done.stdout.splitlines() == ["runpy", "last.py None True"], done.stderr
    with zipfile.ZipFile(tmp_path / "program.pyz", "w") as archive:
        archive.writestr("__main__.py", "import torch\nprint(torch.ones(2).sum().item())\n")
    assert run("program.pyz").stdout == "2.0\n"
    assert run().returncode == 2
    assert "usage" in run("--help").stdout
    done = run("absent.py")
    assert done.returncode == 2
    assert "no file" in done.stderr


def test_what_programs_for_several_machines_and_compilers_import(torch):
    from torch.distributed import destroy_process_group, init_process_group
    from torch.nn.modules.utils import _pair, _triple
    from torch.nn.parallel import DistributedDataParallel

    assert (_pair(3), _triple([1, 2, 3])) == ((3, 3), (1, 2, 3))
    for refuse in (init_process_group, destroy_process_group, DistributedDataParallel):
        with pytest.raises(RuntimeError, match="torch.distributed is not available"):
            refuse(None)
    dynamo = importlib.import_module("torch._dynamo")
    dynamo.config.suppress_errors = True
    assert not torch.compiler.is_compiling()
    assert torch.compiler.disable(len)([1]) == 1
    assert torch.compiler.disable(recursive=False)(len)([1]) == 1
    assert "cpu" in torch.__config__.show()
    assert str(torch.get_num_threads()) in torch.__config__.parallel_info()
    with torch.backends.cudnn.flags(enabled=True, deterministic=True):
        pass
    assert "net" not in dir(torch.hub)
    with pytest.raises(RuntimeError, match="would be downloaded"):
        torch.hub.load("pytorch/vision", "resnet18")


def test_autocast_of_a_device_that_is_not_there(torch):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with torch.autocast("cuda", enabled=False), torch.cuda.amp.autocast(enabled=False):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with (
        pytest.warns(UserWarning, match="CUDA is not available. Disabling"),
        torch.autocast("cuda", dtype=torch.float16),
    ):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("quantize_per_tensor", "no quantized tensors"),
        ("quantization", "no quantized tensors"),
        ("sparse", "no sparse"),
    ],
)
def test_reasons(torch, name, reason):
    with pytest.raises(AttributeError, match=reason):
        getattr(torch, name)


def test_nested_tensors_are_refused(torch):
    with pytest.raises(NotImplementedError, match="no nested tensors"):
        torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])


def test_a_function_hides_the_module_of_its_name(torch):
    module = importlib.import_module("torch.autograd.gradcheck")
    assert module.gradcheck is torch.autograd.gradcheck is candelabra.autograd.gradcheck


def test_a_replaced_function_can_be_put_back(torch, tmp_path):
    original, calls = torch.save, []
    torch.save = lambda *arguments: calls.append(arguments)
    torch.save(1, "file")
    torch.save = original
    torch.save({"a": torch.ones(2)}, tmp_path / "file")
    assert calls == [(1, "file")]
    assert torch.load(tmp_path / "file")["a"].tolist() == [1, 1]
