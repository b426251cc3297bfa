"""``torch.compile``, ``torch.compiler`` and ``torch._dynamo``, as programs use them."""

import importlib
import subprocess
import sys
import textwrap
import warnings

import pytest

import candelabra


@pytest.fixture
def torch():
    candelabra.torch.install()
    module = importlib.import_module("torch")
    yield module
    module.compiler.reset()
    candelabra.torch.uninstall()


def test_compile_as_a_function_and_a_decorator(torch):
    @torch.compile
    def double(x):
        return 2 * x

    @torch.compile(mode="reduce-overhead", fullgraph=True, dynamic=False)
    def triple(x):
        return 3 * x

    for number in range(6):
        x = torch.full((2,), float(number))
        assert double(x).tolist() == [2.0 * number] * 2
        assert triple(x).tolist() == [3.0 * number] * 2
    assert double.__name__ == "double"
    assert len(double.programs) == len(triple.programs) == 1


def test_a_training_step(torch):
    def run(compiled):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        function = torch.compile(step) if compiled else step
        return [function(torch.randn(4, 3)).item() for _ in range(8)]

    assert run(True) == run(False)


def test_compiled_modules(torch):
    model = torch.nn.Linear(3, 2)
    compiled = torch.compile(model)
    assert isinstance(compiled, importlib.import_module("torch._dynamo").OptimizedModule)
    assert compiled._orig_mod is model
    assert compiled.in_features == 3
    assert list(compiled.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
    x = torch.randn(2, 3)
    with torch.no_grad():
        assert all(torch.equal(compiled(x), model(x)) for _ in range(6))


def test_names_of_dynamo(torch):
    dynamo = importlib.import_module("torch._dynamo")
    explanation = dynamo.explain(lambda x: (x * 2).relu())(torch.ones(2))
    assert (explanation.graph_count, explanation.op_count) == (1, 2)
    assert dynamo.explain(lambda x: x * x.sum().item(), torch.ones(2)).graph_break_count == 1
    assert dynamo.optimize("inductor", nopython=True)(lambda x: x + 1)(torch.ones(1)).item() == 2.0
    dynamo.config.cache_size_limit = 64
    dynamo.mark_dynamic(torch.ones(2), 0)
    dynamo.reset()

    @dynamo.disable
    def shown(x):
        return x.tolist()

    assert shown(torch.ones(1)) == [1.0]


def test_names_of_compiler(torch):
    assert not torch.compiler.is_compiling()
    assert not torch.compiler.is_exporting()
    assert "inductor" in torch.compiler.list_backends()
    torch.compiler.cudagraph_mark_step_begin()
    assert torch.compiler.allow_in_graph(len) is len
    with torch.compiler.set_stance("force_eager"):
        compiled = torch.compile(lambda x: x + 1)
        for _ in range(5):
            compiled(torch.ones(1))
        assert not compiled.programs


def test_without_the_package_programs_run_as_written():
    script = """
        import sys, warnings
        class Hide:
            def find_spec(self, name, path=None, target=None):
                if name == "candelabra.compiler":
                    raise ModuleNotFoundError("hidden")
        sys.meta_path.insert(0, Hide())
        import candelabra.torch
        candelabra.torch.install()
        import torch
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f = torch.compile(lambda x: x + 1)
        print(f(torch.ones(1)).item(), len(caught), "candelabra-compile" in str(caught[0].message))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert run.stdout.split() == ["2.0", "1", "True"], run.stderr


def test_warnings_name_the_line(torch):
    compiled = torch.compile(lambda x: x * x.sum().item())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(5):
            compiled(torch.ones(2))
    assert [("test_compile.py:" in str(one.message)) for one in caught] == [True]
