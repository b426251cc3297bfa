"""Names that libraries import from PyTorch's private modules do what PyTorch's do."""

import io

import pytest

import candelabra
from candelabra.torch import install, uninstall


@pytest.fixture(autouse=True)
def torch():
    install()
    import torch

    yield torch
    uninstall()


def test_foreach(torch):
    tensors = [torch.tensor([1.0, 4.0]), torch.tensor([9.0])]
    assert [t.tolist() for t in torch._foreach_sqrt(tensors)] == [[1.0, 2.0], [3.0]]
    assert [t.tolist() for t in torch._foreach_mul(tensors, [2.0, 3.0])] == [[2.0, 8.0], [27.0]]
    assert [t.tolist() for t in torch._foreach_pow(2.0, tensors)] == [[2.0, 16.0], [512.0]]
    assert torch._foreach_addcdiv_(tensors, tensors, tensors, 2.0) is tensors
    assert [t.tolist() for t in tensors] == [[3.0, 6.0], [11.0]]
    torch._foreach_lerp_(tensors, torch._foreach_zero_(torch._foreach_clone(tensors)), 0.5)
    assert [t.tolist() for t in tensors] == [[1.5, 3.0], [5.5]]
    assert [t.item() for t in torch._foreach_norm(tensors, float("inf"))] == [3.0, 5.5]


def test_foreach_refuses(torch):
    tensors = [torch.ones(1), torch.ones(2)]
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_add([], 1)
    with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
        torch._foreach_add(tensors, [torch.ones(1)])
    with pytest.raises(TypeError, match="must be tuple of Tensors, not Tensor"):
        torch._foreach_abs(torch.ones(2))
    with pytest.raises(TypeError, match="must be tuple of Tensors"):
        torch._foreach_copy_(tensors, 1.0)


@pytest.mark.parametrize("name", ["qint8", "quint4x2"])
def test_dtypes_that_no_tensor_has(torch, name):
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    assert dtype != torch.float32
    assert {dtype: 1}[getattr(torch, name)] == 1
    with pytest.raises(TypeError, match=name):
        torch.ones(2).to(dtype)
    with pytest.raises(TypeError, match=name):
        torch.zeros(2, dtype=dtype)


def test_float8_ranges(torch):
    assert torch.finfo(torch.float8_e4m3fn).max == 448.0
    assert torch.finfo(torch.float8_e5m2).smallest_normal == 2.0**-14


def test_flat_tensors(torch):
    from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    tensors = [torch.ones(2, 2), torch.zeros(3)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [1.0] * 4 + [0.0] * 3
    assert [t.shape for t in _unflatten_dense_tensors(flat, tensors)] == [t.shape for t in tensors]
    with pytest.raises(RuntimeError, match="7 elements"):
        _unflatten_dense_tensors(flat[:5], tensors)


def test_decorating_contexts(torch):
    from torch.utils._contextlib import _DecoratorContextManager

    entered = []

    class Noting(_DecoratorContextManager):
        def __enter__(self):
            entered.append(True)

        def __exit__(self, *error):
            entered.append(False)

    assert Noting()(lambda x: x + 1)(1) == 2
    assert entered == [True, False]
    with pytest.raises(TypeError, match="class"):
        Noting()(int)


def test_fake_modes(torch):
    from torch._guards import active_fake_mode, detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensorMode, is_fake

    assert active_fake_mode() is None
    with FakeTensorMode() as mode:
        made = torch.ones(2)
        assert active_fake_mode() is mode
    assert is_fake(made)
    assert not is_fake(torch.ones(2))
    assert detect_fake_mode([1, made]) is mode


def test_levels_of_vmap(torch):
    from torch._C._functorch import _add_batch_dim, _remove_batch_dim, get_unwrapped, is_batchedtensor, maybe_get_level

    def inside(x):
        assert torch._C._are_functorch_transforms_active()
        assert is_batchedtensor(x) and maybe_get_level(x) == 1 and get_unwrapped(x).shape == (3, 2)
        other = _add_batch_dim(torch.arange(6.0).reshape(2, 3), 1, 1)
        assert _remove_batch_dim(other, 1, 3, 0).shape == (3, 2)
        return x + other

    found = torch.vmap(inside)(torch.zeros(3, 2))
    assert found.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert not torch._C._are_functorch_transforms_active()
    with pytest.raises(RuntimeError, match="no vmap of the level 1"):
        _add_batch_dim(torch.ones(2), 0, 1)


def test_vmap_of_containers_that_a_library_maps(torch, monkeypatch):
    import torch._functorch.vmap as source

    class Box:
        def __init__(self, value):
            self.value = value

    plain = source._process_batched_inputs, source._create_batched_inputs

    def process(in_dims, args, func):
        return plain[0](in_dims, tuple(arg.value for arg in args), func)

    def create(dims, leaves, level, spec):
        return tuple(Box(value) for value in plain[1](dims, leaves, level, spec))

    monkeypatch.setattr(source, "_process_batched_inputs", process)
    monkeypatch.setattr(source, "_create_batched_inputs", create)
    found = torch.vmap(lambda box: box.value.sum())(Box(torch.ones(3, 2)))
    assert found.tolist() == [2.0, 2.0, 2.0]


class Labelled(candelabra.Tensor):
    """A subclass that pickles as tensors do."""

    def __reduce_ex__(self, protocol):
        return super().__reduce_ex__(protocol)


def test_subclasses_that_pickle_as_tensors(torch):
    made = torch.arange(3.0).as_subclass(Labelled)
    made.label = "some"
    file = io.BytesIO()
    torch.save(made, file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    assert type(found) is Labelled and found.label == "some" and found.tolist() == [0.0, 1.0, 2.0]


def test_placements(torch):
    from torch.distributed.tensor import DTensor, Replicate, Shard

    assert Shard(0) == Shard(0) != Shard(1)
    assert Shard(1).is_shard(1) and not Replicate().is_shard() and Replicate().is_replicate()
    with pytest.raises(RuntimeError, match="DTensor"):
        DTensor()


def test_small_names(torch):
    from torch.hub import _get_torch_home
    from torch.onnx.symbolic_helper import parse_args
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
    from torch.utils.data._utils.worker import _generate_state

    assert _get_torch_home().endswith("torch")
    assert torch.TensorType.get() is torch.TensorType.get()
    assert not torch.cuda._initialized
    assert torch._C._get_tracing_state() is None
    assert len(_generate_state(5, 0)) == 4 and _generate_state(5, 0) != _generate_state(5, 1)
    with pytest.raises(ValueError, match="unknown kinds"):
        parse_args("v", "other")
    groups = _group_tensors_by_device_and_dtype(
        [[torch.ones(1), torch.ones(1).int(), torch.zeros(1)]], with_indices=True
    )
    assert [places for _, places in groups.values()] == [[0, 2], [1]]
    with torch._dynamo.config.patch(verbose=True):
        assert torch._dynamo.config.verbose
    assert not torch._dynamo.config.verbose


def test_texts(torch):
    from torch._tensor_str import _add_suffixes, _str_intern, _tensor_str, printoptions

    tensor = torch.tensor([1.23456])
    assert _tensor_str(tensor, 0) == "[1.2346]"
    assert _str_intern(tensor, tensor_contents="here") == "tensor(here)"
    assert _add_suffixes("Index([1]", ["sparse"], 6, False) == "Index([1], sparse)"
    with printoptions(precision=2):
        assert _tensor_str(tensor, 0) == "[1.23]"
    assert _tensor_str(tensor, 0) == "[1.2346]"


def test_names_of_optimizers(torch):
    from torch.optim.optimizer import ParamsT, _use_grad_for_differentiable

    class Halving(torch.optim.Optimizer):
        def __init__(self, params: ParamsT, differentiable: bool) -> None:
            super().__init__(params, {"differentiable": differentiable})

        @_use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    parameters = [torch.nn.Parameter(torch.ones(2))]
    assert [Halving(parameters, each).step() for each in (False, True)] == [False, True]
    assert torch.is_grad_enabled()


def test_names_of_modules(torch):
    weight = torch.nn.functional.grad.conv1d_weight(torch.ones(1, 1, 4), (1, 1, 2), torch.ones(1, 1, 3))
    assert weight.tolist() == [[[3.0, 3.0]]]
    assert issubclass(torch.nn.MaxPool2d, torch.nn.modules.pooling._MaxPoolNd)
