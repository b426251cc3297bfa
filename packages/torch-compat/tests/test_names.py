"""Names that programs import from torch, and what mirrors say of themselves."""

from __future__ import annotations

import collections
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import os
import subprocess
import sys
import typing
import warnings

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
import candelabra.torch


@pytest.fixture(autouse=True)
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


def test_the_distribution(torch):
    assert importlib.metadata.version("torch") == torch.__version__
    assert importlib.metadata.metadata("torch")["Name"] == "torch"
    assert importlib.util.find_spec("torch") is not None
    assert "torch" in {found.metadata["Name"] for found in importlib.metadata.distributions()}
    candelabra.torch.uninstall()
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("torch")


def test_versions(torch):
    version = torch.torch_version.TorchVersion
    assert torch.__version__ >= (2, 13) and torch.__version__ > "2.9.1" and isinstance(torch.__version__, version)
    assert version("2.13.0a0") < "2.13" == version("2.13.0") < "2.13.0+cpu" < version("2.13.0.post1")
    assert version("2.13") != "2.14" and version("1.10") > "1.9" and version("2.0.dev3") < "2.0a1"
    assert version("strange") > "other" and hash(version("2.0")) == hash("2.0")
    with pytest.raises(TypeError):
        sorted([version("2.0"), 3])


MODULES = (
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.modules", "torch.nn.modules.activation", "torch.nn.utils", "torch.optim",
    "torch.utils", "torch.utils._pytree", "torch.utils.data", "torch.utils.data._utils", "torch.autograd", "torch.cuda", "torch.hub",
    "torch.multiprocessing", "torch.linalg", "torch.backends", "torch._C", "torch.storage", "torch.types",
)  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_dir_and_dict_agree_with_getattr(name):
    module = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [entry for entry in dir(module) if not hasattr(module, entry)] == []
        for entry, value in list(vars(module).items()):
            assert getattr(module, entry) is value
        assert {entry for entry, _ in inspect.getmembers(module)} >= {*vars(module)} - {"__dict__"}
    assert vars(module) is module.__dict__


def test_modules_have_their_names_in_dict(torch):
    assert torch.nn.functional.__dict__["relu"] is candelabra.nn.functional.relu
    assert (
        torch.nn.modules.activation.MultiheadAttention
        is vars(torch.nn)["MultiheadAttention"]
        is candelabra.nn.MultiheadAttention
    )
    assert torch.__file__ == candelabra.__file__ and "array_api" not in dir(torch)
    torch.set_default_dtype(torch.float64)
    assert torch.get_default_dtype() is torch.float64
    torch.set_default_dtype(torch.float32)
    assert torch.multiprocessing.reducer is sys.modules["multiprocessing.reduction"] or not hasattr(
        torch.multiprocessing, "reducer"
    )


def test_pytrees(torch):
    from torch.utils import _pytree as pytree
    from torch.utils._pytree import tree_map

    class Box:
        def __init__(self, item):
            self.item = item

    assert tree_map is candelabra.pytree.tree_map
    with pytest.warns(FutureWarning, match="register_pytree_node` instead"):
        pytree._register_pytree_node(Box, lambda box: ([box.item], None), lambda items, _: Box(*items))
    with pytest.warns(UserWarning, match="Overwriting the previous registration"):
        pytree._private_register_pytree_node(Box, lambda box: ([box.item], None), lambda items, _: Box(*items))
    assert tree_map(abs, {"a": Box(-1)})["a"].item == 1
    pytree._deregister_pytree_node(Box)
    assert pytree.tree_leaves(box := Box(1)) == [box]
    assert pytree._dict_flatten({"a": 1}) == ([1], ["a"]) and pytree._dict_unflatten([1], ["a"]) == {"a": 1}
    spec = pytree.tree_structure((0, [0, 0]))
    assert (
        pytree._broadcast_to_and_flatten((1, 2), spec) == [1, 2, 2]
        and pytree._broadcast_to_and_flatten((1,), spec) is None
    )
    with pytest.warns(FutureWarning, match="treespec_dumps"):
        text = pytree.pytree_to_str(spec)
    with pytest.warns(FutureWarning, match="treespec_loads"):
        assert pytree.str_to_pytree(text) == spec
    with pytest.warns(FutureWarning, match="tree_is_leaf"):
        assert pytree._is_leaf(1)
    assert pytree._get_node_type(collections.namedtuple("P", "x")(1)) is collections.namedtuple
    with pytest.raises(ImportError, match="torch.utils._pytree has the same functions"):
        importlib.import_module("torch.utils._cxx_pytree")


def test_hooks(torch):
    from torch.utils.hooks import BackwardHook, RemovableHandle, unserializable_hook

    x = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([x], 0.1)
    handles = [
        x.register_hook(unserializable_hook(lambda grad: grad)), torch.nn.Linear(1, 1).register_forward_hook(print),
        optimizer.register_step_post_hook(print), (x * 2).grad_fn.register_hook(print),
    ]  # fmt: skip
    assert all(isinstance(handle, RemovableHandle) for handle in handles)
    table: collections.OrderedDict = collections.OrderedDict()
    extra: collections.OrderedDict = collections.OrderedDict()
    with RemovableHandle(table, extra_dict=extra) as handle:
        table[handle.id] = extra[handle.id] = print
    assert not table and not extra
    seen: list = []
    hook = BackwardHook("module", [lambda *arguments: seen.append(arguments)], [lambda module, grads: (grads[0] * 2,)])
    (inner,) = hook.setup_input_hook((x,))
    hook.setup_output_hook(inner * 3).sum().backward()
    assert x.grad.tolist() == [6, 6] and seen[0][0] == "module" and seen[0][2][0].tolist() == [2, 2]


def test_modules_and_bindings(torch):
    from torch._C._nn import _parse_to
    from torch.nn.modules.module import _IncompatibleKeys
    from torch.nn.modules.utils import (
        _list_with_default,
        _reverse_repeat_tuple,
        consume_prefix_in_state_dict_if_present,
    )

    assert torch._C._log_api_usage_once("a library") is None
    assert isinstance(torch.Tensor, torch._C._TensorMeta)
    assert _parse_to("cpu", torch.float64)[:2] == (torch.device("cpu"), torch.float64)
    layer = torch.nn.Linear(1, 1)
    assert isinstance(layer.load_state_dict(layer.state_dict()), _IncompatibleKeys)
    assert layer.__getattr__("weight") is torch.nn.Module.__getattr__(layer, "weight") is layer.weight
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'absent'"):
        layer.__getattr__("absent")
    state = collections.OrderedDict({"module.weight": 1})
    state._metadata = {"": 0, "module": 1, "module.inner": 2}
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert dict(state) == {"weight": 1} and state._metadata == {"": 1, "inner": 2}
    assert _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1) and _list_with_default([None, 3], [7, 8, 9]) == [8, 3]
    assert torch.get_device_module("cpu") is importlib.import_module("torch.cpu")
    with pytest.raises(RuntimeError, match="Invalid value of device"):
        torch.get_device_module(3)
    with pytest.raises(RuntimeError, match="no symbolic numbers"):
        torch.SymInt(3)
    assert torch.autocast_increment_nesting() == 1 and torch.autocast_decrement_nesting() == 0
    assert torch.functional.einsum is torch.einsum and torch.return_types.max_out is torch.return_types.max


def test_type_hints(torch):
    class Model(torch.nn.Module):
        size: int

    hints = typing.get_type_hints(Model)
    assert hints["size"] is int and hints["training"] is bool
    assert typing.get_type_hints(torch.nn.functional.relu)["return"] is torch.Tensor
    with pytest.raises(NameError, match="no_such_type"):
        typing.get_type_hints(unresolved)
    candelabra.torch.uninstall()
    assert typing.get_type_hints is candelabra.type_hints.plain


def unresolved(x: no_such_type) -> None:  # noqa: F821
    """Has a hint that nothing resolves."""


def test_old_functions(torch, tmp_path):
    assert torch.amp.autocast_mode.autocast_decorator(torch.autocast("cpu"), lambda: torch.is_autocast_enabled("cpu"))()
    assert torch.cuda.amp.common.amp_definitely_not_available() is not torch.cuda.is_available()
    with pytest.warns(FutureWarning, match="assert_allclose"):
        torch.testing.assert_allclose(torch.ones(2), [1.0, 1.0 + 1e-5])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="^not so$"):
        torch.testing.assert_allclose(torch.ones(2), torch.zeros(2), msg="not so")
    torch.set_anomaly_enabled(True)
    assert torch.is_anomaly_enabled()
    torch.set_anomaly_enabled(False)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor) and torch.thread_safe_generator() is None
    torch.backends.mha.set_fastpath_enabled(False)
    assert not torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(True)


def test_loaders(torch):
    from torch.utils.data import DataLoader, dataloader
    from torch.utils.data._utils import collate, fetch, pin_memory, signal_handling, worker
    from torch.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

    loader = DataLoader(range(4), 2)
    assert isinstance(iter(loader), _SingleProcessDataLoaderIter) and loader._dataset_kind == _DatasetKind.Map
    assert issubclass(_MultiProcessingDataLoaderIter, dataloader._BaseDataLoaderIter) and loader._auto_collation
    assert collate.default_collate is torch.utils.data.default_collate is dataloader._utils.collate.default_collate
    fetcher = fetch._MapDatasetFetcher("abc", True, list, False)
    assert fetcher.fetch([0, 2]) == ["a", "c"] and pin_memory.pin_memory(["a", 1]) == ["a", 1]
    assert worker.ManagerWatchdog().is_alive() and worker._IterableDatasetStopIteration(1).worker_id == 1
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    signal_handling._set_worker_pids(1, [ended.pid])
    with pytest.raises(RuntimeError, match="exited unexpectedly with exit code 3"):
        signal_handling._error_if_any_worker_fails()
    signal_handling._error_if_any_worker_fails()
    signal_handling._remove_worker_pids(1)
    ended.wait()
    with pytest.raises(ValueError, match="Cannot find worker information"):
        signal_handling._remove_worker_pids(1)


def test_attention_implementations(torch):
    from torch.nn import attention

    class Handle:
        removed = 0

        def remove(self):
            Handle.removed += 1

    attention.register_flash_attention_impl("mine", register_fn=Handle)
    assert attention.list_flash_attention_impls() == ["mine"] and attention.current_flash_attention_impl() is None
    attention.activate_flash_attention_impl("mine")
    assert attention.current_flash_attention_impl() == "mine"
    attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None and Handle.removed == 1
    with pytest.raises(ValueError, match="Unknown flash attention impl 'other'"):
        attention.activate_flash_attention_impl("other")


def test_collectives_of_one_process(torch):
    from torch.cuda import nccl

    tensors = [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])]
    outputs = [torch.empty(4), torch.empty(4)]
    nccl.all_gather(tensors, outputs)
    assert outputs[1].tolist() == [1, 2, 3, 4]
    halves = [torch.empty(1), torch.empty(1)]
    nccl.reduce_scatter(tensors, halves)
    assert [half.item() for half in halves] == [4, 6]
    nccl.reduce(tensors, root=1, op=2)
    assert tensors[1].tolist() == [3, 4]
    nccl.all_reduce(tensors)
    assert tensors[0].tolist() == tensors[1].tolist() == [4, 6]
    nccl.broadcast([torch.ones(2), tensors[0]])
    assert tensors[0].tolist() == [1, 1]
    with pytest.raises(TypeError, match="collection of tensors"):
        nccl.all_reduce(torch.ones(2))


def test_functions_of_torch(torch):
    x, weight = torch.randn(1, 2, 5), torch.randn(3, 2, 3)
    found = torch.convolution(x, weight, None, [2], [1], [1], False, [0], 1)
    assert torch.equal(found, torch.nn.functional.conv1d(x, weight, None, 2, 1))
    found = torch.convolution(x, weight.transpose(0, 1), None, [2], [1], [1], True, [1], 1)
    assert torch.equal(found, torch.nn.functional.conv_transpose1d(x, weight.transpose(0, 1), None, 2, 1, 1))
    with pytest.raises(RuntimeError, match="a weight of 3 to 5 dimensions"):
        torch.convolution(x, weight[0], None, [1], [0], [1], False, [0], 1)
    assert torch.Tag.pointwise.name == "pointwise"
    storage = torch.ones(1)._typed_storage()
    assert isinstance(storage, torch.FloatStorage) and not isinstance(storage, torch.cuda.FloatStorage)


def test_helpers_of_checkpoints(torch):
    from torch.utils import checkpoint

    x = torch.ones(2, requires_grad=True)
    y, other = checkpoint.detach_variable((x * 2, 3))
    assert y.is_leaf and y.requires_grad and other == 3
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint.check_backward_validity([torch.ones(1)])
    assert checkpoint.get_device_states(x) == ([], []) and len(checkpoint.noop_context_fn()) == 2
    checkpoint.CheckpointFunction.apply(lambda value: value * 3, True, x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_archives(torch, tmp_path):
    from torch._C import PyTorchFileReader, PyTorchFileWriter

    path = str(tmp_path / "model.pt")
    writer = PyTorchFileWriter(path)
    values = torch.tensor([1.0, 2.0])
    writer.write_record("data.pkl", b"abc", 3)
    writer.write_record("data/0", values.untyped_storage(), 8)
    writer.write_record("text", "abc", 2)
    writer.write_record("memory", values.data_ptr(), 4)
    assert writer.archive_name() == "model" and writer.get_all_written_records() == {
        "data.pkl",
        "data/0",
        "text",
        "memory",
    }
    with pytest.raises(RuntimeError, match="has 3 bytes, not 4"):
        writer.write_record("short", b"abc", 4)
    with pytest.raises(RuntimeError, match="there is a record text already"):
        writer.write_record("text", b"", 0)
    number = writer.serialization_id()
    writer.write_end_of_file()
    with pytest.raises(RuntimeError, match="the archive is complete"):
        writer.write_record("late", b"", 0)
    reader = PyTorchFileReader(path)
    assert reader.get_all_records() == [
        "data.pkl", "data/0", "text", "memory", "version", "byteorder", ".data/serialization_id",
    ]  # fmt: skip
    assert (
        reader.get_record("data.pkl") == b"abc" and reader.get_record("text") == b"ab" and reader.has_record("version")
    )
    assert (reader.get_record_size("data/0"), reader.get_record_offset("data/0") % 64) == (8, 0)
    assert reader.serialization_id() == number and len(number) == 40
    storage = reader.get_storage_from_record("data/0", 2, torch.float32)._typed_storage()
    assert storage.tolist() == [1.0, 2.0] and reader.get_record("memory") == values.untyped_storage().tobytes()[:4]
    with pytest.raises(RuntimeError, match="failed locating file absent"):
        reader.get_record("absent")
    with pytest.raises(RuntimeError, match="does not match expected size"):
        reader.get_storage_from_record("data/0", 3, torch.float32)
    with pytest.raises(RuntimeError, match="errno 2 on fopen"):
        PyTorchFileReader(str(tmp_path / "absent"))
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        PyTorchFileReader(io.BytesIO(b"abc"))
    chunks: list = []
    writer = PyTorchFileWriter(chunks.append)
    writer.write_end_of_file()
    assert PyTorchFileReader(io.BytesIO(b"".join(chunks))).get_record("version") == b"3\n"
    torch.save(values, path)
    assert PyTorchFileReader(path).has_record("data.pkl")


def test_what_is_named_and_refused(torch):
    from torch.distributed._tensor import DTensor
    from torch.distributed.fsdp import FullyShardedDataParallel, StateDictType
    from torch.distributed.fsdp.fully_sharded_data_parallel import StateDictType as Same
    from torch.distributed.tensor import distribute_tensor
    from torch.nn.parallel.distributed import DistributedDataParallel

    assert not isinstance(torch.ones(1), DTensor) and StateDictType is Same and torch.distributed.group.WORLD is None
    for refuse in (FullyShardedDataParallel, distribute_tensor, DistributedDataParallel, torch.distributed.new_group):
        with pytest.raises(RuntimeError, match="candelabra.communication has the collectives"):
            refuse(torch.ones(1))
    assert torch.ones(1).layout != torch.sparse_coo and repr(torch.sparse_csr).endswith("sparse_csr")
    with pytest.raises(NotImplementedError, match="only layout="):
        torch.zeros(2, layout=torch.sparse_coo)
    assert torch.torch is torch


def test_names_of_annotations(torch):
    from torch._dynamo import OptimizedModule
    from torch.serialization import MAP_LOCATION

    assert torch.device in MAP_LOCATION.__args__ and torch.ScriptModule is torch.jit.ScriptModule
    assert not isinstance(torch.nn.Linear(1, 1), OptimizedModule)
    assert isinstance(torch.compile(torch.nn.Linear(1, 1)), OptimizedModule)
