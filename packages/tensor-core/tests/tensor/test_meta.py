"""The device meta, whose tensors have shapes and no memory; devices that are named without a
backend.
"""

from __future__ import annotations

import copy
import io
import pickle
import threading

import numpy as np
import pytest

import candelabra
from candelabra.catalogue import OPERATORS
from candelabra.catalogue.declaration import DATA_DEPENDENT
from candelabra.testing import conformance
from candelabra.testing.reference import references
from candelabra.testing.sampling import Input

REFERENCES = references()
NO_DATA = "Cannot copy out of meta tensor; no data!"


def argument_on(value, device):
    if isinstance(value, Input):
        return value.tensor(device)
    return [argument_on(entry, device) for entry in value] if isinstance(value, list) else value


def geometry(operator, sample, device):
    """The shape, dtype, strides and device type of the results, or the type of the exception."""
    arguments = [argument_on(value, device) for value in sample.arguments]
    names = {"device": device} if "device" in operator.parameters else {}
    try:
        results = operator(*arguments, **sample.keywords, **names)
    except Exception as error:
        return type(error)
    if results is None:
        results = [argument for argument in arguments if isinstance(argument, list)]
    tensors = list(conformance._flatten(results))
    assert {t.device.type for t in tensors} <= {device}
    return [(tuple(t.shape), t.dtype, t.stride()) for t in tensors]


@pytest.mark.parametrize("name", [n for n in conformance.applicable() if not OPERATORS[n].tags & DATA_DEPENDENT])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_operator_describes_its_results(name):
    operator, reference = OPERATORS[name], REFERENCES[name]
    for dtype in reference.dtypes:
        for sample in reference.samples(np.random.default_rng(0), dtype):
            expected = geometry(operator, sample, "cpu")
            found = geometry(operator, sample, "meta")
            # What refuses values, and what has no kernel for a dtype, is not seen without data.
            if isinstance(expected, list):
                assert found == expected, (dtype, sample)


@pytest.mark.parametrize("name", [n for n in conformance.applicable() if OPERATORS[n].tags & DATA_DEPENDENT])
def test_shapes_that_depend_on_data(name):
    t = candelabra.ones(3, device="meta")
    with pytest.raises(NotImplementedError, match="depends on the data"):
        OPERATORS[name](*([t, t > 0] if name == "masked_select" else [t]))


def test_factories():
    for made in (
        candelabra.empty(2, 3, device="meta"),
        candelabra.zeros(2, 3, device="meta"),
        candelabra.rand(2, 3, device="meta"),
        candelabra.tensor([[1.0, 2, 3]] * 2, device="meta"),
        candelabra.as_tensor(np.ones((2, 3), "float32"), device="meta"),
        candelabra.ones(2, 3).to("meta"),
        candelabra.full((2, 3), 4.0, device="meta"),
        candelabra.ones_like(candelabra.empty(2, 3), device="meta"),
    ):
        assert made.shape == (2, 3)
        assert made.is_meta
        assert made.device == candelabra.device("meta")
    assert not candelabra.ones(2).is_meta
    assert candelabra.device("meta").index is None
    assert candelabra.empty(1, device="meta:3").device == candelabra.device("meta")


def test_text():
    t = candelabra.empty(2, 3, device="meta")
    assert repr(t) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(t.requires_grad_()) == "tensor(..., device='meta', size=(2, 3), requires_grad=True)"
    whole = candelabra.empty((), device="meta", dtype=candelabra.int32)
    assert repr(whole) == "tensor(..., device='meta', size=(), dtype=candelabra.int32)"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.cpu(), NotImplementedError, NO_DATA),
        (lambda t: t[:0].to("cpu"), NotImplementedError, NO_DATA),
        (lambda t: candelabra.empty(3).copy_(t), NotImplementedError, NO_DATA),
        (lambda t: t.tolist(), NotImplementedError, NO_DATA),
        (lambda t: t[0].item(), RuntimeError, "Tensor.item\\(\\) cannot be called on meta tensors"),
        (lambda t: bool(t[0]), RuntimeError, "Tensor.item\\(\\) cannot be called on meta tensors"),
        (lambda t: int(t[0]), RuntimeError, "Tensor.item\\(\\) cannot be called on meta tensors"),
        (lambda t: t.item(), RuntimeError, "a Tensor with 3 elements cannot be converted to Scalar"),
        (lambda t: t.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda t: t + candelabra.ones(3), RuntimeError, "meta and cpu"),
        (lambda t: t.share_memory_(), RuntimeError, "no memory"),
        (lambda t: t.set_(candelabra.ones(4).untyped_storage()), RuntimeError, "devices must match"),
        (lambda t: t.nonzero(), NotImplementedError, "depends on the data"),
        (lambda t: t[t > 0], NotImplementedError, "depends on the data"),
        (lambda t: t.unique(), NotImplementedError, "depends on the data"),
    ],
)
def test_no_data(call, error, message):
    with pytest.raises(error, match=message):
        call(candelabra.ones(3, device="meta"))


def test_storage():
    t = candelabra.empty(2, 3, device="meta")
    assert t.untyped_storage().nbytes() == 24
    assert t.data_ptr() == t.untyped_storage().data_ptr() == 0
    # Larger than any memory.
    assert candelabra.empty(1 << 50, device="meta").untyped_storage().nbytes() == 1 << 52


def test_views_and_in_place_calls():
    t = candelabra.empty(2, 3, device="meta")
    row = t[0]
    row.add_(1)
    assert (row._base is t, t._version) == (True, 1)
    t[1] = 2
    t[t > 0] = 0
    t.copy_(candelabra.ones(2, 3))
    assert t._version == 4
    assert t.t().contiguous().stride() == (2, 1)
    with pytest.raises(RuntimeError, match="single memory location"):
        t.expand(2, 2, 3).add_(1)
    out = candelabra.empty(0, device="meta")
    assert candelabra.add(t, 1, out=out) is out
    assert out.shape == (2, 3)


def test_numbers_on_the_host_are_taken():
    assert (candelabra.ones(2, device="meta") + candelabra.tensor(1.0)).is_meta
    assert candelabra.ones(2, device="meta")[candelabra.tensor([0, 1, 1])].shape == (3,)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: candelabra.linalg.inv(t),
        lambda t: candelabra.linalg.svd(t)[1],
        lambda t: candelabra.linalg.solve(t, t),
        lambda t: candelabra.linalg.eigvals(t).real,
        lambda t: candelabra.matrix_exp(t),
        lambda t: candelabra.quantile(t, 0.5, 0),
        lambda t: candelabra.histc(t, 3),
        lambda t: candelabra.multinomial(t, 2),
        lambda t: candelabra.normal(t, t),
        lambda t: candelabra.take_along_dim(t, t.long(), 0),
        lambda t: candelabra.linspace(t[0, 0], t[0, 1], 4, device=t.device),
        lambda t: candelabra.nonzero_static(t, size=2),
        lambda t: candelabra.histogram(t, 4)[0],
        lambda t: candelabra.cov(t, aweights=t[0]),
        lambda t: t.repeat_interleave(t[0].long(), dim=0, output_size=4),
    ],
)
def test_functions_that_check_values(call):
    t = candelabra.eye(3) + 1
    expected = call(t)
    found = call(t.to("meta"))
    assert (found.shape, found.dtype, found.is_meta) == (expected.shape, expected.dtype, True)


def test_copies_and_files():
    t = candelabra.empty(4, 2, device="meta").t()
    t.note = "x"
    for made in (copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert (made.shape, made.stride(), made.is_meta, made.note) == (t.shape, t.stride(), True, "x")
    stream = io.BytesIO()
    candelabra.save({"w": t}, stream, format="pytorch")
    stream.seek(0)
    found = candelabra.load(stream)["w"]
    assert (found.shape, found.stride(), found.is_meta) == ((2, 4), (1, 2), True)


def test_a_file_is_loaded_without_memory():
    stream = io.BytesIO()
    candelabra.save({"w": candelabra.ones(2, 3)}, stream)
    stream.seek(0)
    assert candelabra.load(stream, map_location="meta")["w"].is_meta


def test_with_device():
    seen = []
    with candelabra.device("meta") as entered:
        assert entered == candelabra.device("meta")
        assert candelabra.ones(2).is_meta
        assert candelabra.as_tensor(np.ones(2)).is_meta
        assert candelabra.tensor([1]).is_meta
        with candelabra.device("cpu"):
            assert not candelabra.ones(2).is_meta
        thread = threading.Thread(target=lambda: seen.append(candelabra.ones(2).device.type))
        thread.start()
        thread.join()
        assert candelabra.get_default_device() == candelabra.device("meta")
        assert candelabra.from_numpy(np.ones(2)).device.type == "cpu"
    assert not candelabra.ones(2).is_meta
    assert seen == ["cpu"]  # the block is one thread's


def test_with_device_and_an_exception():
    with pytest.raises(ValueError, match="inside"), candelabra.device("meta"):
        raise ValueError("inside")
    assert not candelabra.ones(2).is_meta


def test_custom_operators_use_their_fake_function():
    @candelabra.library.custom_op("meta_tests::doubled", mutates_args=())
    def doubled(x: candelabra.Tensor) -> candelabra.Tensor:
        return candelabra.from_numpy(x.numpy() * 2)

    t = candelabra.ones(2, 3, device="meta")
    with pytest.raises((NotImplementedError, TypeError)):
        doubled(t)

    @doubled.register_fake
    def _(x):
        return candelabra.empty_like(x)

    made = doubled(t)
    assert (made.shape, made.is_meta) == ((2, 3), True)


# ---- devices without a backend


@pytest.mark.parametrize("name", ["xpu", "mps", "privateuseone"])
def test_a_device_is_named_without_a_backend(name):
    device = candelabra.device(name)
    assert (device.type, device.index, str(device), repr(device)) == (name, None, name, f"device(type='{name}')")
    assert device == candelabra.device(name)
    assert hash(device) == hash(candelabra.device(name))
    numbered = candelabra.device(f"{name}:3")
    assert (numbered.index, str(numbered), repr(numbered)) == (3, f"{name}:3", f"device(type='{name}', index=3)")
    assert numbered == candelabra.device(name, 3) != device
    assert pickle.loads(pickle.dumps(numbered)) == numbered
    assert device != candelabra.device("cpu")


@pytest.mark.parametrize(
    "use",
    [
        lambda device: candelabra.ones(2, device=device),
        lambda device: candelabra.ones(2).to(device),
        lambda device: candelabra.tensor([1], device=device),
        lambda device: candelabra.set_default_device(device),
        lambda device: candelabra.Generator(device),
    ],
)
def test_the_first_use_says_what_is_missing(use):
    with pytest.raises(candelabra.BackendError, match="no backend for device 'xpu' is installed"):
        use(candelabra.device("xpu"))


def test_a_block_of_a_device_without_a_backend():
    with candelabra.device("xpu"):
        with pytest.raises(candelabra.BackendError, match="no backend for device 'xpu' is installed"):
            candelabra.ones(2)
        assert candelabra.ones(2, device="cpu").device.type == "cpu"


def test_names_of_no_device():
    with pytest.raises(candelabra.BackendError, match="nowhere"):
        candelabra.device("nowhere")
    with pytest.raises(RuntimeError, match="Invalid device string"):
        candelabra.device("xpu:x")
    with pytest.raises(RuntimeError, match="must not be negative"):
        candelabra.device("xpu", -1)
