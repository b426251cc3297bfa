"""Private modules of PyTorch, from which programs import, do what PyTorch's do."""

import io
import os
import traceback
import warnings

import pytest

import candelabra
from candelabra.torch import install, uninstall


@pytest.fixture(autouse=True)
def torch():
    install()
    import torch

    yield torch
    uninstall()


def test_references_are_the_operators(torch):
    import torch._refs.nn.functional

    assert torch._refs.sum(torch.ones(3)).item() == 3.0
    assert torch._refs.fft.fft(torch.ones(2)).tolist() == [2.0, 0.0]
    assert torch._refs.linalg.vector_norm(torch.ones(4)).item() == 2.0
    assert torch._refs.special.erf(torch.zeros(1)).item() == 0.0
    assert torch._refs.nn.functional.relu(-torch.ones(1)).item() == 0.0


def test_questions_about_dtypes_and_shapes(torch):
    from torch import _prims_common as common

    assert common.dtype_to_type(torch.int8) is int
    assert [common.dtype_to_type(d) for d in (torch.bool, torch.float16, torch.complex64)] == [bool, float, complex]
    assert common.is_integer_dtype(torch.uint8) and not common.is_integer_dtype(torch.bool)
    assert common.is_low_precision_dtype(torch.bfloat16) and not common.is_low_precision_dtype(torch.float32)
    assert common.corresponding_complex_dtype(torch.float32) is torch.complex64
    assert common.corresponding_real_dtype(torch.complex32) is torch.float16
    assert common.make_contiguous_strides_for((2, 0, 4)) == (4, 4, 1)
    assert common.make_contiguous_strides_for((2, 3, 4), row_major=False) == (12, 1, 3)
    with pytest.raises(AssertionError, match="expected a torch.dtype"):
        common.is_float_dtype("float32")


def test_a_device_for_functions(torch):
    from torch.utils._device import set_device

    @set_device("meta")
    def several():
        yield torch.empty(2)
        yield torch.ones(1, device="cpu")

    assert [t.device.type for t in several()] == ["meta", "cpu"]
    assert torch.empty(1).device.type == "cpu"


def test_tracebacks(torch):
    from torch.utils import _traceback

    captured = _traceback.CapturedTraceback.extract()
    assert "test_tracebacks" in captured.format()[-1]
    captured.cleanup()
    assert _traceback.CapturedTraceback.format_all([captured])[0] == captured.format()
    with pytest.raises(ZeroDivisionError) as raised:
        1 / 0
    assert _traceback.format_traceback_short(raised.tb).endswith("in test_tracebacks")
    source = "def fails():\n    raise ValueError('no')  # the line\n"
    made = {"__compile_source__": source}
    exec(source, made)
    with pytest.raises(ValueError, match="no") as raised, _traceback.report_compile_source_on_error():
        made["fails"]()
    last = traceback.extract_tb(raised.tb)[-1]
    assert last.line == "raise ValueError('no')  # the line"
    os.unlink(last.filename)


def test_overrides_can_be_switched(torch):
    class Sub(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Sub)
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
        enabled = torch._C._EnableTorchFunction()
        assert type(x + 1) is Sub
        del enabled
        assert not torch._C._is_torch_function_all_disabled()
    with torch._C.DisableTorchFunction():
        assert torch._C._is_torch_function_all_disabled()


def test_dispatch_can_be_switched_off(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.ones(1)
        before = len(seen)
        assert before
        with torch._C._DisableTorchDispatch():
            torch.ones(1)
        assert len(seen) == before
        torch.ones(1)
        assert len(seen) > before


def test_records_of_archives(torch, tmp_path):
    serialization = torch.serialization
    for place in (io.BytesIO(), tmp_path / "archive"):
        with serialization._open_zipfile_writer(place) as writer:
            writer.write_record("a/b", b"12", 2)
            writer.write_record_metadata("c", 3)
        with serialization._open_file_like(place, "rb") as opened:
            opened.seek(0)
            with serialization._open_zipfile_reader(opened) as reader:
                assert (reader.get_record("a/b"), reader.get_record("c")) == (b"12", bytes(3))


def test_storages_in_files(torch):
    x, other = torch.arange(4.0), torch.ones(1)
    for new in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            file = io.BytesIO()
            torch.save([x, x.storage(), other.untyped_storage()], file, _use_new_zipfile_serialization=new)
            file.seek(0)
            tensor, typed, memory = torch.load(file, weights_only=True)
            tensor.add_(1)
            assert typed.tolist() == [1.0, 2.0, 3.0, 4.0]
            assert (memory.dtype, memory.nbytes()) == (torch.uint8, 4)


def test_paths_and_marks(torch, tmp_path):
    from torch import _utils_internal as internal
    from torch._export.wrappers import mark_subclass_constructor_exportable_experimental as mark

    assert internal.get_file_path_2("a", "b") == os.path.join("a", "b")
    assert os.path.samefile(internal.get_file_path("candelabra"), os.path.dirname(candelabra.__file__))
    assert internal.get_writable_path(str(tmp_path)) == str(tmp_path)
    assert internal.resolve_library_path(str(tmp_path)) == os.path.realpath(tmp_path)

    class Marked:
        @mark
        def __init__(self, value):
            self.value = value

    assert Marked(3).value == 3
    with pytest.raises(RuntimeError, match="can only be applied on"):
        mark(len)
    assert torch._C._is_alias_of(*torch.ones(2).split(1)) and not torch._C._is_alias_of(torch.ones(1), torch.ones(1))


def test_reductions_of_references(torch):
    x = torch.arange(1.0, 7.0).view(2, 3)
    assert torch._refs.prod(x).item() == torch._refs.prod(x, dim=[0, 1]).item() == 720.0
    assert torch._refs.prod(x, dim=(1,), keepdim=True).tolist() == [[6.0], [120.0]]
    with pytest.raises(RuntimeError, match="duplicate value"):
        torch._refs.prod(x, dim=[1, -1])
    assert torch._refs.amax(x, 0).tolist() == [4.0, 5.0, 6.0] and torch._refs.amin(x).item() == 1.0
    for function in (torch._refs.amax, torch._refs.amin):
        with pytest.raises(RuntimeError, match="without identity"):
            function(torch.ones(0, 3), dim=[0])


def test_lazy_clones(torch):
    x = torch.arange(4)
    address = torch._C._data_address(x)
    clone = x._lazy_clone()
    assert torch._C._is_cow_tensor(x) and torch._C._is_cow_tensor(clone) and torch._C._data_address(clone) == address
    assert torch._C._storage_address(x) == torch._C._storage_address(x[1:]) != torch._C._storage_address(clone)
    assert torch._C._data_address(x[1:]) == address + x.element_size()
    clone += 1
    assert not torch._C._is_cow_tensor(clone) and torch._C._data_address(clone) != address
    assert x.tolist() == [0, 1, 2, 3]


def test_checks_of_tensors(torch):
    torch._assert_async(torch.tensor(0.1))
    for value, message in ((0, "got zero"), ([], "no values"), ([0, 0], "more than one value")):
        with pytest.raises(RuntimeError, match=message):
            torch._assert_async(torch.tensor(value))
    row = torch.ones(1, 3)
    strides = (
        (row, row.t(), torch.ones(10).as_strided([2, 1, 5], [1, 0, 2])),
        (row.expand(4, 3),),
        (torch.ones(9)[::2],),
    )
    for number, tensors in enumerate(strides):
        assert [torch._debug_has_internal_overlap(tensor) for tensor in tensors] == [number] * len(tensors)


def test_the_arithmetic_of_grad_scalers(torch):
    found, grads = torch.zeros(1), [torch.full((2,), 4.0), torch.full((), 8.0, dtype=torch.float16)]
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.full((1,), 0.25))
    assert [grad.tolist() for grad in grads] == [[1.0, 1.0], 2.0] and not found
    torch._amp_foreach_non_finite_check_and_unscale_([torch.tensor([float("nan")])], found, torch.ones(1))
    assert found
    scale, tracker = torch.full((1,), 4.0), torch.zeros(1, dtype=torch.int32)
    for wanted, infinite in ((4.0, 0.0), (8.0, 0.0), (2.0, 1.0)):
        assert torch._amp_update_scale_(scale, tracker, torch.tensor([infinite]), 2.0, 0.25, 2).item() == wanted
    with pytest.warns(FutureWarning, match="torch.cpu.amp.GradScaler"):
        torch.cpu.amp.GradScaler()


def test_warnings_of_typed_storages(torch):
    torch.storage._reset_warn_typed_storage_removal()
    for always, count in ((False, 1), (True, 2)):
        torch.storage._set_always_warn_typed_storage_removal(always)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.ones(1).storage(), torch.ones(1).storage()
        assert len(caught) == count and torch.storage._get_always_warn_typed_storage_removal() is always
    torch.storage._set_always_warn_typed_storage_removal(False)
    with pytest.raises(RuntimeError, match="Not available for CUDA storage"):
        torch.cuda.FloatStorage.from_buffer()
    assert repr(torch.ones(2).max(0)).startswith("torch.return_types.max(")


def test_names_of_the_engine(torch):
    seen = []
    x = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True).sin()
    y = (x * 2).sin()

    def look(grad):
        engine = torch._C
        seen.append(
            (
                engine._current_graph_task_id(),
                engine._will_engine_execute_node(y.grad_fn),
                engine._will_engine_execute_node(other.grad_fn),
                engine._autograd._get_current_graph_task_keep_graph(),
            )
        )

    y.register_hook(look)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert seen[1][0] - seen[0][0] == 1
    assert [entry[1:] for entry in seen] == [(True, False, True), (True, False, False)]
    assert torch._C._current_graph_task_id() == -1
    with pytest.raises(RuntimeError, match="during the backward pass"):
        torch._C._will_engine_execute_node(y.grad_fn)


def test_functions_of_the_engine(torch):
    x = torch.ones(2, requires_grad=True)
    raising = torch._C._functions.DelayedError("not now", 2)
    first, _ = raising(x, x)
    assert first.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="not now"):
        first.sum().backward()
    with pytest.raises(RuntimeError, match="expected 2 tensors"):
        raising(x)
    assert type(x.clone().grad_fn.next_functions[0][0]) is torch._C._functions.AccumulateGrad


def test_weak_references(torch):
    x = torch.ones(2)
    reference = torch._C._WeakTensorRef(x)
    assert not reference.expired()
    del x
    assert reference.expired()
    with pytest.raises(TypeError):
        torch._C._WeakTensorRef(1)


def test_gathered_tracebacks(torch):
    profiler = torch._C._profiler
    gathered = [profiler.gather_traceback(True, True, False), profiler.gather_traceback(False, True, True)]
    python, nothing = profiler.symbolize_tracebacks(gathered)
    assert "test_gathered_tracebacks" in {frame["name"] for frame in python}
    assert nothing == []


def test_classes_that_compute_operators(torch):
    class Own(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs)

    assert torch._C._dispatch_isTensorSubclassLike(Own(1))
    assert not torch._C._dispatch_isTensorSubclassLike(torch.ones(1))


def test_batches_and_branches(torch):
    assert torch._vmap_internals._vmap(torch.sin)(torch.zeros(3)).tolist() == [0, 0, 0]
    with pytest.raises(NotImplementedError, match="allow_none_pass_through"):
        torch._vmap_internals._vmap(torch.sin, allow_none_pass_through=True)
    from torch._higher_order_ops.cond import cond_op

    assert cond_op(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),)).item() == 0


def test_weak_references_to_storages(torch):
    from torch.multiprocessing.reductions import StorageWeakRef

    x, y = torch.ones(4), torch.ones(4)
    first, part, other = (StorageWeakRef(t.untyped_storage()) for t in (x, x[2:], y))
    assert first == part != other
    assert hash(first) == hash(part) == first.cdata
    assert StorageWeakRef.from_weakref(first.cdata) == first
    view = x[1:]
    del x
    assert not first.expired()
    del view
    assert first.expired()
    assert not other.expired()


def test_short_names_of_dtypes(torch):
    from torch.utils._dtype_abbrs import dtype_abbrs

    expected = {"float32": "f32", "bfloat16": "bf16", "complex64": "c64", "int8": "i8", "uint16": "u16", "bool": "b8"}
    expected["float8_e4m3fn"] = "f8e4m3fn"
    assert {name: dtype_abbrs[getattr(torch, name)] for name in expected} == expected


def test_warnings_are_hidden(torch):
    from torch._logging import _internal, hide_warnings

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with hide_warnings(_internal.safe_grad_filter):
            warnings.warn("The .grad attribute of a Tensor that is no leaf", stacklevel=1)
            warnings.warn("another", stacklevel=1)
        with hide_warnings(_internal.user_warning_filter):
            warnings.warn("not this one", UserWarning, stacklevel=1)
            warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert [str(warning.message) for warning in shown] == ["another", "old"]
