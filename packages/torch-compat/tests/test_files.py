"""torch.save and torch.load: any object that can be pickled, with PyTorch's names in the file."""

from __future__ import annotations

import argparse
import base64
import importlib
import io
import pickle
import pickletools
import zipfile
import zlib
from types import SimpleNamespace

import pytest

pytest.importorskip("candelabra_backend_cpu", reason="tensors need a backend: pip install candelabra-backend-cpu")

import candelabra
import candelabra.torch

#: What PyTorch 2.13 saved of a Sequential of one Linear, with the weights 2 and 3 and the bias 1.
SAVED_BY_PYTORCH = """
eNqlVs1vG0UUX9uJYzat89E2oWkJHwXqQOP4206/EtxiCltS12lhVQmt1rtrzzabXb/d2VhFslSE0qYXDj1xQqrEsUcQB/4KDty4cUJC4l9gZs
exd9dJCu3I9mjf/H7vvdn3ezOuC7ExjkskuJExzc1ysq0gfUdbUWUspztbRq2a5O4FxsOogi2CSptmettSXUNz0oplYlk3NZvf1MDVTKzLBg/c
0jcQ6UE0JdJg2CYI3WxDbE+cJM9SR7blbQ1rtgNjPRj3QFLTbbWoJd6DCfEMtZiWKXWISXcwcbwPkBwNQ0KRyLNuYN2UJJ5YeHjtK+B3YbIBx8
QTnj9Z2erKtip1bE1ClrXlwHFFsQxDU7BumQ5/y1Y1W1Ov6wphJ5caMCVOBYiMNI3o2ow4R9d0R2q5hhHEwOyGmKSrLcv2EU94xJPiwsiS1NUx
kqiDtgOnPNiceHYUJhtd+YEjKTJJWoV5D/i6OOsHDjd32lteEBcPXA6EPONBz4ozFOpgGWuSSt5C39Eb3uqieCq0Ogz1pod4i+3MsGT1YNjbHu
wdVswRmOXsBzzn4d5lMugLC97rwftihFgycH5UdgaRnGzzN9kEKaK3pR58kEKxPUQk9WFKjBNqV9PbCMOFPl9ysW44vGRrVDrqUIY8LB8CIcJz
LFvayfGQTqXECeLUIUi5rcEKo/A1sjO8yYw8ZPo5Z8UYmZWOCzkhiiF/W+CEiBB9BAUhKkQeQfGJt+kShnIDKnvew+pjuNiASyJpUq6pyw5cRs
uIhEUriLnNwhWUEyIYrnrudmGN/qwzVx9hqDbgGnN1/TF83ICai0g3fYISiDTHjV34tAGfoeMeQEBM1zfR7AZiSv0cMSluIKa0W4hJqo6YXm4j
powGYvXfRKzAdxAr4F1EavaF1+GkK1uajF2bFPJLISoeIzbLxUOjKETcpuM203VhIvHd879v3CGbpt/6oWfUPHd+cEalib63ZSzt0NPBMmvVc6
Gj6sCRpcF++eePb+m7pN/Dgy1w5WGwfsVJO+ptc5scRbVq/r/EC49SgSaw1oW/oiRE9MgEZri1QQLNB1iz6GFVq156mbj7w9AxNjSaw+6VP0/T
BokfmUOSuxq4FVYyterFV0iAuFwnn3Wawc9P8K80ZOIFGVwOZpCtVSvcy8d/uEZj37//7DntsbEjY0/5KjDQ2Su9/zxPo//2Q/vui+u/yOWGAv
S27mg2uVv1r2V6e0m6Wqum/2cymWIpm81Uirl8KbtaKmeKudVCppAplTJlYsyWy7liJlsp5GmWz376/V6K5JHysozQZAd5+vt1eiTz8P+IMNvf
gPMB5o9j3GEdHnbib6KFYOOMc0d0btiPvxFmAn6e+vwMGjBM96s4GaDPxblQ74S5fhUGud+Hudkw16+hqQD35AQXVm2Y7C/tYnDPPvLBoqsL8f
iFfYnGlgfMRGiejLK50jcQHr07uWs8e2an73iccRIenmH/Bf6VtDI=
"""


@pytest.fixture(autouse=True)
def torch():
    candelabra.torch.install()
    yield importlib.import_module("torch")
    candelabra.torch.uninstall()


class Model(candelabra.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = candelabra.nn.Linear(2, 3)
        self.second = candelabra.nn.Sequential(candelabra.nn.LSTM(3, 2))
        self.register_buffer("count", candelabra.zeros(1))
        self.register_forward_hook(double)

    def forward(self, x):
        return self.second(self.first(x))[0]


def double(module, args, output):
    return 2 * output


class Tagged(candelabra.Tensor):
    pass


def through(torch, value, load=None, **options):
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return torch.load(file, weights_only=False, **(load or {}))


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=str)
@pytest.mark.parametrize("protocol", [1, 2, 3, 4, 5])
def test_whole_modules(torch, options, protocol):
    if protocol == 1 and not options:
        pytest.skip("one protocol is enough of those without operations of their own for modules")
    model, x = Model(), torch.randn(4, 2)
    loaded = through(torch, model, pickle_protocol=protocol, **options)
    assert type(loaded) is Model and torch.equal(loaded(x), model(x))
    loaded.double()(x.double()).sum().backward()
    assert loaded.first.weight.grad is not None and loaded.count.dtype is torch.float64


def names(file):
    with zipfile.ZipFile(file) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
    return {argument for code, argument, _ in pickletools.genops(text) if code.name == "GLOBAL"}


@pytest.mark.parametrize("protocol", [2, 4])
def test_the_names_are_those_of_pytorch(torch, tmp_path, protocol):
    value = [
        torch.nn.Conv2d(1, 1, 1),
        torch.float16,
        torch.strided,
        torch.Generator(),
        torch.ones(1, dtype=torch.uint16),
        torch.relu,
    ]
    text = "candelabra.nn.modules.linear"  # a text that is no name
    torch.save([*value, text], tmp_path / "x.pt", pickle_protocol=protocol)
    found = names(tmp_path / "x.pt")
    assert not any("candelabra" in name for name in found), found
    assert {"torch.nn.modules.conv Conv2d", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3", "torch float16",
            "torch.serialization _get_layout", "torch._C Generator", "torch.storage UntypedStorage"} <= found  # fmt: skip
    assert torch.load(tmp_path / "x.pt", weights_only=False)[-1] == text


def test_a_module_of_pytorch(torch):
    model = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(SAVED_BY_PYTORCH))), weights_only=False)
    assert type(model) is candelabra.nn.Sequential and model(torch.tensor([[1.0, 10.0]])).tolist() == [[33.0]]
    with torch.serialization.safe_globals([torch.nn.Sequential, torch.nn.Linear]):
        again = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(SAVED_BY_PYTORCH))))
    assert again(torch.tensor([[1.0, 10.0]])).tolist() == [[33.0]]


def test_optimizers_and_schedulers(torch):
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([parameter], lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    parameter.sum().backward()
    optimizer.step()
    loaded, again, steps = through(torch, [parameter, optimizer, scheduler])
    assert again.param_groups[0]["params"][0] is loaded and steps.optimizer is again
    for p, o, s in ((parameter, optimizer, scheduler), (loaded, again, steps)):
        p.grad = torch.ones(2)
        o.step()
        s.step()
    assert torch.equal(parameter, loaded) and again.param_groups[0]["lr"] == 0.05


def test_tensors_of_every_kind(torch):
    tagged = torch.ones(2).as_subclass(Tagged)
    tagged.tag = "x"
    parameter = torch.nn.Parameter(torch.ones(1), requires_grad=False)
    parameter.note = 3
    base = torch.arange(4.0)
    value = {"tagged": tagged, "parameter": parameter, "buffer": torch.nn.Buffer(torch.ones(1)), "base": base, "view": base[::2],
             "complex": torch.tensor([1 + 2j]), "unsigned": torch.tensor([1], dtype=torch.uint32), "leaf": torch.ones(1, requires_grad=True)}  # fmt: skip
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        loaded = through(torch, value, **options)
        assert type(loaded["tagged"]) is Tagged and loaded["tagged"].tag == "x"
        assert type(loaded["parameter"]) is torch.nn.Parameter and loaded["parameter"].note == 3
        assert not loaded["parameter"].requires_grad and loaded["leaf"].requires_grad
        assert isinstance(loaded["buffer"], torch.nn.Buffer)
        loaded["base"][0] = 9
        assert loaded["view"].tolist() == [9, 2]
        assert loaded["complex"].dtype is torch.complex64 and loaded["unsigned"].dtype is torch.uint32


def test_storages(torch):
    base = torch.arange(3.0)
    tensor, storage = through(torch, [base, base.storage()])
    storage[0] = 5
    assert tensor.tolist() == [5, 1, 2] and storage.dtype is torch.float32
    assert through(torch, base.untyped_storage()).nbytes() == 12
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"
    ):
        through(torch, [base, base.view(torch.int32)])


def test_storages_within_pickles(torch):
    inner = io.BytesIO()
    torch.save(torch.ones(2).storage(), inner, _use_new_zipfile_serialization=False)
    text = b"\x80\x02ctorch.storage\n_load_from_bytes\n" + pickle.dumps(inner.getvalue(), 3)[2:-1] + b"\x85R."
    assert torch.load(io.BytesIO(archive_of(text)), weights_only=False).tolist() == [1, 1]


def test_generators(torch):
    generator = torch.Generator().manual_seed(7)
    torch.randn(3, generator=generator)
    loaded = through(torch, generator)
    assert loaded.initial_seed() == 7 and torch.equal(
        torch.randn(3, generator=loaded), torch.randn(3, generator=generator)
    )


def test_only_weights_by_default(torch, tmp_path):
    path = tmp_path / "model.pt"
    torch.save(Model(), path)
    with pytest.raises(pickle.UnpicklingError, match=r"^Weights only load failed") as caught:
        torch.load(path)
    assert f"Unsupported global: GLOBAL {__name__}.Model was not an allowed global by default" in str(caught.value)
    assert "damaged" not in str(caught.value)
    unsafe = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    assert f"{__name__}.Model" in unsafe and "torch.nn.modules.linear.Linear" in unsafe
    with pytest.raises(candelabra.serialization.UnsafeFileError):
        candelabra.load(path)
    allowed = [Model, torch.nn.Linear, torch.nn.Sequential, torch.nn.LSTM, double]
    with torch.serialization.safe_globals(allowed):
        assert torch.serialization.get_safe_globals() == allowed
        assert isinstance(torch.load(path), Model)
    torch.serialization.add_safe_globals(allowed)
    assert isinstance(torch.load(path, weights_only=True), Model)
    torch.serialization.clear_safe_globals()
    assert torch.serialization.get_safe_globals() == []


def test_plain_objects_need_no_permission(torch):
    file = io.BytesIO()
    torch.save({"args": argparse.Namespace(lr=0.1), "epoch": 3}, file)
    file.seek(0)
    assert torch.load(file)["args"].lr == 0.1


def test_the_environment_decides(torch, tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    torch.save(Model(), path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert isinstance(torch.load(path), Model)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="but both were set"):
        torch.load(path)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=False)


def test_pickle_modules(torch):
    cloudpickle = pytest.importorskip("cloudpickle")
    loaded = through(torch, [torch.ones(2), lambda x: x + 1], {"pickle_module": pickle}, pickle_module=cloudpickle)
    assert loaded[1](loaded[0]).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(io.BytesIO(), pickle_module=pickle, weights_only=True)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save(lambda: 0, io.BytesIO())


def test_locations_and_maps(torch, tmp_path):
    path = tmp_path / "model.pt"
    torch.save([torch.ones(3), range(2)], path)
    assert torch.load(path, weights_only=False, mmap=True)[0].tolist() == [1, 1, 1]
    seen = []
    found = torch.load(path, lambda storage, location: seen.append(location) or storage, weights_only=False)
    assert seen == ["cpu"] and found[0].tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="must be a file path"):
        torch.load(io.BytesIO(), mmap=True, weights_only=False)


def test_what_is_no_file_of_torch(torch, tmp_path):
    with pytest.raises(RuntimeError, match="Invalid magic number"):
        torch.load(io.BytesIO(pickle.dumps([1])), weights_only=False)
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(), weights_only=False)
    with pytest.raises(AttributeError, match="a 'write' attribute"):
        torch.save(1, 3)
    with pytest.raises(AttributeError, match="NoSuchLayer"):
        torch.load(io.BytesIO(archive_of(b"\x80\x02ctorch.nn\nNoSuchLayer\n.")), weights_only=False)
    candelabra.save({"own": torch.ones(1)}, tmp_path / "own.cb")
    assert torch.load(tmp_path / "own.cb", weights_only=False)["own"].tolist() == [1]


def archive_of(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", text)
    return file.getvalue()


def test_files_whose_bytes_come_later(torch, tmp_path):
    path = tmp_path / "model.pt"
    with torch.serialization.skip_data():
        torch.save(torch.ones(4), path)
        with pytest.raises(RuntimeError, match="skip_data=True with _use_new"):
            torch.save(1, path, _use_new_zipfile_serialization=False)
    assert torch.load(path).tolist() == [0, 0, 0, 0]
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("model/data/0")
        begin = (
            entry.header_offset
            + 30
            + len(entry.filename)
            + int.from_bytes(data[entry.header_offset + 28 :][:2], "little")
        )
    data[begin : begin + 16] = torch.arange(4.0).numpy().tobytes()
    path.write_bytes(data)
    assert torch.load(path).tolist() == [0, 1, 2, 3]
    with torch.serialization.skip_data():
        assert torch.load(path, weights_only=False).tolist() == [0, 0, 0, 0]


def test_other_names_of_the_module(torch):
    serialization = torch.serialization
    assert serialization.DEFAULT_PROTOCOL == 2 and serialization.location_tag(torch.ones(1).untyped_storage()) == "cpu"
    storage = torch.ones(2).untyped_storage()
    assert serialization.default_restore_location(storage, "cpu") is storage
    assert serialization.StorageType("LongStorage").dtype is torch.int64
    with serialization.mkdtemp() as folder:
        assert folder
    with pytest.raises(RuntimeError, match="malformed"):
        serialization.check_module_version_greater_or_equal(SimpleNamespace(__name__="m", __version__="x.y"), (1, 2))
    with pytest.raises(NotImplementedError, match="map_location"):
        serialization.register_package(0, str, str)


class Held(candelabra.Tensor):
    """A tensor that holds another, in a slot."""

    __slots__ = ("inner",)
    __torch_function__ = candelabra._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        made = candelabra.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_a_tensor_that_wraps_others(torch):
    given = Held(torch.arange(3.0))
    given.title = "given"
    file = io.BytesIO()
    torch.save(given, file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="Held"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Held]):
        made = torch.load(file)
    file.seek(0)
    for found in (made, torch.load(file, weights_only=False)):
        assert type(found) is Held
        assert (found.inner.tolist(), found.title, str(found.device)) == ([0, 1, 2], "given", "cpu")
