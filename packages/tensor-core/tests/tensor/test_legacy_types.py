"""The old tensor types, Tensor(...) and Tensor.new."""

import copy
import pickle

import numpy
import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra

TYPES = {
    "FloatTensor": candelabra.float32, "DoubleTensor": candelabra.float64, "HalfTensor": candelabra.float16,
    "BFloat16Tensor": candelabra.bfloat16, "ByteTensor": candelabra.uint8, "CharTensor": candelabra.int8,
    "ShortTensor": candelabra.int16, "IntTensor": candelabra.int32, "LongTensor": candelabra.int64, "BoolTensor": candelabra.bool,
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_constructors(name):
    kind, dtype = getattr(candelabra, name), TYPES[name]
    assert kind.dtype is dtype and kind.layout is candelabra.strided and not kind.is_cuda and not kind.is_sparse
    assert kind.__name__ == name and kind.__module__ == "candelabra"
    assert kind().shape == (0,)
    for sized in (kind(2, 3), kind(candelabra.Size([2, 3])), kind(size=(2, 3)), kind(2, 3, device="cpu")):
        assert type(sized) is candelabra.Tensor and sized.shape == (2, 3) and sized.dtype is dtype
    for data in ([1, 0], (1, 0), numpy.array([1, 0]), range(1, -1, -1)):
        assert kind(data).dtype is dtype and kind(data).tolist() == [1, 0]
    assert kind([[1, 0], [0, 1]]).shape == (2, 2)


@pytest.mark.parametrize("name", TYPES)
def test_instances_are_told_by_dtype(name):
    kind, dtype = getattr(candelabra, name), TYPES[name]
    for other in TYPES.values():
        assert isinstance(candelabra.ones(1, dtype=other), kind) is (other is dtype)
    assert not isinstance([1], kind)
    assert not issubclass(kind, candelabra.Tensor)
    assert candelabra.ones(1, dtype=dtype).type() == f"candelabra.{name}"


def test_a_tensor_shares_its_memory():
    x = candelabra.zeros(3)
    candelabra.FloatTensor(x)[1] = 5
    assert x.tolist() == [0, 5, 0]
    with pytest.raises(
        TypeError, match="expected a tensor of dtype candelabra.int64 on cpu, but got one of dtype candelabra.float32"
    ):
        candelabra.LongTensor(x)


def test_a_storage_shares_its_memory():
    x = candelabra.tensor([1.0, 2.0, 3.0])[1:]
    made = candelabra.FloatTensor(x.untyped_storage())
    assert made.tolist() == [1, 2, 3]
    made[2] = 9
    assert x.tolist() == [2, 9]
    assert candelabra.Tensor(x.untyped_storage()).tolist() == [1, 2, 9]
    assert candelabra.LongTensor(x.untyped_storage()).shape == (1,)


@pytest.mark.parametrize("kind", [candelabra.FloatTensor, candelabra.Tensor, candelabra.ones(1).new])
def test_what_is_refused(kind):
    for wrong in (2.5, None, {}, {1}, True, numpy.float32(2), (i for i in range(3))):
        with pytest.raises(TypeError, match="data must be a sequence"):
            kind(wrong)
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        kind("abc")
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        kind(-1)
    with pytest.raises(TypeError):
        kind(2, 3.5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dtype'"):
        kind([1], dtype=candelabra.float32)
    with pytest.raises(ValueError, match="expected sequence of length 2"):
        kind([[1, 2], [3]])
    with pytest.raises((RuntimeError, candelabra.BackendError)):
        kind(2, device="nowhere")


def test_numbers_are_converted_as_the_type_says():
    assert candelabra.LongTensor([1.5, -2.5]).tolist() == [1, -2]
    assert candelabra.BoolTensor([0.5, 0]).tolist() == [True, False]
    with pytest.raises(TypeError, match="must be real number, not complex"):
        candelabra.FloatTensor([1j])
    with pytest.raises(RuntimeError, match="without overflow"):
        candelabra.ByteTensor([300])


def test_tensor_takes_the_default_dtype():
    assert candelabra.Tensor(2, 3, device="cpu").shape == (2, 3)
    assert candelabra.Tensor(size=(4,)).dtype is candelabra.float32
    assert candelabra.Tensor(numpy.array([1, 2])).tolist() == [1.0, 2.0]
    assert candelabra.Tensor(numpy.int64(2)).shape == (2,)
    assert candelabra.Tensor(candelabra.ones(2, dtype=candelabra.float64)).dtype is candelabra.float64


def test_subclasses_are_made_by_the_same_rules():
    class Named(candelabra.Tensor):
        pass

    for made in (Named(2), Named([1.0]), Named(candelabra.ones(1)), Named(2, device="cpu"), Named(range(2))):
        assert type(made) is Named


def test_new_takes_dtype_and_device_of_the_tensor():
    x = candelabra.ones(2, dtype=candelabra.int64)
    assert x.new().shape == (0,) and x.new(2, 3).shape == (2, 3)
    assert x.new([1.5, 2]).tolist() == [1, 2]
    assert x.new(size=(3,)).dtype is candelabra.int64
    assert x.new(other=x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="convert it with"):
        x.new(candelabra.ones(1))


@pytest.mark.parametrize(
    "wanted", [candelabra.LongTensor, "candelabra.LongTensor", "torch.LongTensor", candelabra.int64]
)
def test_type_converts(wanted):
    assert candelabra.tensor([1.5]).type(wanted).tolist() == [1]
    assert candelabra.tensor([1.5]).type(wanted).dtype is candelabra.int64


def test_every_dtype_has_a_type_name():
    for dtype in ("uint16", "uint32", "uint64", "complex64", "complex128"):
        assert candelabra.ones(1, dtype=getattr(candelabra, dtype)).type().endswith("Tensor")


def test_the_types_can_be_pickled_and_copied():
    assert pickle.loads(pickle.dumps(candelabra.LongTensor)) is candelabra.LongTensor
    assert copy.deepcopy(candelabra.LongTensor) is candelabra.LongTensor
