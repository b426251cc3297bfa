"""candelabra.jit: tracing, scripting, freezing, and their files."""

import copy
import io
import pickle
import warnings
import zipfile

import pytest

import candelabra
from candelabra import jit, nn
from candelabra.serialization import FileError


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.ReLU(), nn.Linear(4, 2))


def through_file(program):
    file = io.BytesIO()
    jit.save(program, file)
    file.seek(0)
    return jit.load(file)


def test_traced_modules():
    model = network().eval()
    traced = jit.trace(model, candelabra.randn(2, 3))
    assert isinstance(traced, jit.ScriptModule) and isinstance(traced, jit.TopLevelTracedModule)
    assert list(traced.state_dict()) == list(model.state_dict())
    for size in (2, 5, 1):
        x = candelabra.randn(size, 3)
        assert traced(x).equal(model(x))
    loaded = through_file(traced)
    assert isinstance(loaded, jit.ScriptModule)
    for size in (2, 9, 1):
        x = candelabra.randn(size, 3)
        assert loaded(x).equal(model(x))
    assert "linear" in traced.code and "linear" in loaded.code and len(list(traced.graph.nodes)) > 3


def test_traced_modules_are_trained():
    model = network()
    traced = jit.trace(model, candelabra.randn(4, 3))
    twin = copy.deepcopy(model)
    x = candelabra.randn(4, 3)
    for module in (traced, twin):
        candelabra.manual_seed(1)
        module(x).square().sum().backward()
    assert all(a.grad.equal(b.grad) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert model[1].num_batches_tracked.item() == twin[1].num_batches_tracked.item()
    traced.eval()
    assert not model.training
    assert traced(x).equal(model(x))


def test_a_trace_keeps_the_branches_of_the_call():
    calls = []

    def function(x, flag=True):
        calls.append(1)
        return x * 2 if flag else x

    traced = jit.trace(function, (candelabra.ones(2),))
    count = len(calls)
    assert traced(candelabra.ones(2)).tolist() == [2, 2]
    assert len(calls) == count
    with pytest.warns(jit.TracerWarning, match=r"__bool__\(\) asks for the value of a tensor \(.*test_jit.py"):
        traced = jit.trace(lambda x: x * 2 if x.sum() > 0 else x, candelabra.ones(2))
    assert traced(-candelabra.ones(2)).tolist() == [-2, -2]


def test_traces_are_checked():
    counter = iter(range(100))
    with pytest.raises(jit.TracingCheckError, match="mul .*has other arguments"):
        jit.trace(lambda x: x * next(counter), candelabra.ones(2))
    jit.trace(lambda x: x * next(counter), candelabra.ones(2), check_trace=False)
    with pytest.raises(jit.TracingCheckError, match="became"):
        jit.trace(lambda x: x.relu() if next(counter) % 2 else x.tanh(), candelabra.ones(2))
    with pytest.raises(RuntimeError, match="example_inputs"):
        jit.trace(lambda x: x)


def test_traces_see_that_they_are_traced():
    seen = []

    def function(x):
        seen.append(jit.is_tracing())
        return x + 1

    jit.trace(function, candelabra.ones(1), check_trace=False)
    assert seen == [True]
    assert not jit.is_tracing() and not jit.is_scripting()


def test_keywords_and_containers():
    traced = jit.trace(
        lambda x, pair, scale: {"a": x * scale, "b": pair[0]},
        (candelabra.ones(2), (candelabra.zeros(1), 3)),
        example_kwarg_inputs={"scale": candelabra.ones(1)},
    )
    found = traced(candelabra.ones(5), (candelabra.ones(1), 3), scale=2 * candelabra.ones(1))
    assert found["a"].tolist() == [2] * 5 and found["b"].tolist() == [1]
    module = jit.trace_module(nn.ReLU(), {"forward": candelabra.ones(1)})
    assert module(-candelabra.ones(1)).tolist() == [0]
    with pytest.raises(NotImplementedError, match="only forward"):
        jit.trace_module(nn.ReLU(), {"forward": candelabra.ones(1), "other": candelabra.ones(1)})


@jit.script
def sign(x, scale: float = 1.0):
    """Depends on data."""
    if x.sum() > 0:
        return x * scale
    return -x


@jit.script
def double(x):
    return x * 2


def test_scripted_functions_run_as_python():
    assert sign(candelabra.ones(2), 3.0).tolist() == [3, 3]
    assert sign(-candelabra.ones(2)).tolist() == [1, 1]
    assert isinstance(sign, jit.ScriptFunction) and sign.name == "sign" and sign.__doc__ == "Depends on data."
    assert pickle.loads(pickle.dumps(sign)) is sign and copy.deepcopy(double)(candelabra.ones(1)).tolist() == [2]
    assert jit.script(sign) is sign
    assert jit.script(int) is int
    with pytest.raises(TypeError, match="expected a function"):
        jit.script(3)
    with pytest.raises(jit.Error, match=r"sign cannot be recorded: __bool__\(\) asks"):
        sign.save(io.BytesIO())


def test_scripted_functions_are_saved_with_the_arguments_of_a_call():
    function = jit.script(lambda x, y: (x @ y).relu())
    with pytest.raises(jit.Error, match="call it once"):
        jit.save(function, io.BytesIO())
    function(candelabra.randn(2, 3), candelabra.randn(3, 4))
    loaded = through_file(function)
    x, y = candelabra.randn(5, 3), candelabra.randn(3, 6)
    assert loaded(x, y).equal((x @ y).relu())


def test_large_arguments_are_not_kept():
    function = jit.script(lambda x: x + 1)
    x = candelabra.randn(400, 300)
    function(x)
    (kept,) = function._recordable._example[0]
    assert kept.values.numel() <= 1 << 14 and kept.sizes == (400, 300)
    assert through_file(function)(x).equal(x + 1)


def test_scripted_modules_share_the_original():
    model = network()
    scripted = jit.script(model)
    assert isinstance(scripted, jit.RecursiveScriptModule) and scripted.original_name == "Sequential"
    assert bool(scripted) and len(scripted) == 5 and scripted[0] is model[0] and list(scripted)[1] is model[1]
    assert list(scripted.parameters()) == list(model.parameters())
    scripted.eval()
    x = candelabra.randn(4, 3)
    assert not model.training and scripted(x).equal(model(x))
    scripted.double()
    assert model[0].weight.dtype is candelabra.float64
    scripted.load_state_dict(network().state_dict())
    assert scripted(x.double()).equal(model(x.double()))
    for other in (copy.deepcopy(scripted), pickle.loads(pickle.dumps(scripted))):
        assert other(x.double()).equal(model(x.double()))
        assert other[0] is not model[0]
    assert through_file(scripted)(x.double()).equal(model(x.double()))


def test_attributes_of_scripted_modules():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            return x * self.scale

        @jit.export
        def other(self, x):
            return x + self.scale

        @jit.ignore
        def ignored(self):
            return 1

        @jit.unused
        def unused(self):
            return 2

    scripted = jit.script(Scaled())
    assert scripted.other(candelabra.ones(1)).tolist() == [3] and scripted.ignored() + scripted.unused() == 3
    scripted.scale = 5.0
    assert scripted(candelabra.ones(1)).tolist() == [5]
    with pytest.raises(AttributeError, match="nothing"):
        scripted.nothing
    assert jit.ignore(drop=True)(len) is len and jit.script_if_tracing(len) is len


def test_frozen_modules():
    model = network()
    scripted = jit.script(model)
    scripted(candelabra.randn(2, 3))
    with pytest.raises(RuntimeError, match="eval mode"):
        jit.freeze(scripted)
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        jit.freeze(model)
    x = candelabra.randn(2, 3)
    for program in (scripted.eval(), jit.trace(model.eval(), x), through_file(scripted).eval()):
        expected = model(x)
        frozen = jit.freeze(program)
        assert not list(frozen.parameters())
        kept = model[0].weight.detach().clone()
        with candelabra.no_grad():
            next(iter(program.parameters())).zero_()
        assert frozen(x).equal(expected)
        assert through_file(frozen)(x).equal(expected)
        assert jit.freeze(frozen) is frozen
        with candelabra.no_grad():
            model[0].weight.copy_(kept)
    assert jit.optimize_for_inference(jit.script(model))(x).equal(model(x))


def test_files(tmp_path):
    model = network().eval()
    traced = jit.trace(model, candelabra.randn(2, 3))
    path = tmp_path / "model.pt"
    traced.save(path, {"notes": b"bytes"})
    extra = {"notes": ""}
    loaded = jit.load(path, map_location="cpu", _extra_files=extra)
    assert extra == {"notes": b"bytes"}
    x = candelabra.randn(3, 3)
    assert loaded(x).equal(model(x))
    assert copy.deepcopy(loaded)(x).equal(model(x)) and through_file(loaded)(x).equal(model(x))
    with pytest.raises(TypeError, match="is no program"):
        jit.save(model, path)
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "constants.pkl", "version", "code/__torch__.py"):
            archive.writestr(f"model/{name}", b"\x80\x02}.")
    with pytest.raises(FileError, match="program of PyTorch's TorchScript, which is not read"):
        jit.load(path)


def test_a_module_that_derives_from_script_module():
    class Old(jit.ScriptModule):
        def forward(self, x):
            return x + 1

    assert Old()(candelabra.ones(1)).tolist() == [2]
    with pytest.raises(jit.Error, match="derive it from nn.Module"):
        Old().save(io.BytesIO())


def test_scripted_functions_within_transformations():
    function = jit.script(lambda x: x * 2)
    assert candelabra.vmap(function)(candelabra.ones(3)).tolist() == [2, 2, 2]
    assert function._recordable._example is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = jit.trace(lambda x: function(x) + 1, candelabra.ones(2))
    assert traced(candelabra.ones(4)).tolist() == [3] * 4
