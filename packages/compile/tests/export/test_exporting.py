"""What can be exported, and what the errors say."""

import collections
import copy

import pytest

import candelabra
from candelabra import fx, nn
from candelabra.export import Dim, ExportError, dims, export
from candelabra.export.signature import InputKind, OutputKind


class Of(nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def exported(function, *args, **options):
    return export(Of(function), args, **options).module()


def test_a_program_has_the_names_of_the_original():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model.register_buffer("unused", candelabra.ones(1), persistent=False)
    program = export(model, (candelabra.randn(5, 3),))
    assert list(program.state_dict) == list(model.state_dict())
    assert program.state_dict["0.weight"] is model[0].weight
    assert list(program.constants) == ["unused"]
    signature = program.graph_signature
    assert signature.inputs_to_parameters["p_0_weight"] == "0.weight"
    assert signature.buffers_to_mutate == {
        "b_1_running_mean": "1.running_mean", "b_1_running_var": "1.running_var", "b_1_num_batches_tracked": "1.num_batches_tracked"
    }  # fmt: skip
    assert signature.user_inputs == ("input",) and len(signature.user_outputs) == 1
    assert {one.kind for one in signature.input_specs} == {InputKind.PARAMETER, InputKind.BUFFER, InputKind.USER_INPUT}
    assert signature.output_specs[-1].kind is OutputKind.USER_OUTPUT
    assert isinstance(program.graph_module, fx.GraphModule) and isinstance(program.graph, fx.Graph)
    assert dict(program.module().state_dict()).keys() == model.state_dict().keys()
    assert "linear" in str(program) and program.run_decompositions() is program
    with pytest.raises(NotImplementedError, match="table"):
        program.run_decompositions({candelabra.tanh: None})


def test_the_graph_module_takes_the_state_first():
    model = nn.Linear(3, 2)
    program = export(model, (candelabra.ones(4, 3),), dynamic_shapes=({0: Dim("n")},))
    x = candelabra.randn(6, 3)
    (found,) = program.graph_module(model.weight, model.bias, x)
    assert found.equal(model(x))


def test_a_program_is_called_through_its_module():
    program = export(nn.ReLU(), (candelabra.ones(2),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(candelabra.ones(2))
    module = program.module()
    for mode in (module.train, module.eval):
        with pytest.raises(NotImplementedError, match="not supported yet"):
            mode()


def test_exporting_changes_nothing():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout())
    before = copy.deepcopy(model.state_dict())
    state = candelabra.get_rng_state()
    x = candelabra.randn(4, 3)
    candelabra.set_rng_state(state)
    export(model, (x,), dynamic_shapes=({0: Dim("n", min=2)},))
    assert candelabra.get_rng_state().equal(state)
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())
    y = x.clone()
    program = export(Of(lambda x: x.add_(1)), (x,))
    assert x.equal(y)
    assert program.graph_signature.user_inputs_to_mutate
    program.module()(x)
    assert x.equal(y + 1)


def test_buffers_are_written_at_each_call():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", candelabra.zeros(1))

        def forward(self, x):
            self.count += x.sum()
            return self.count * 2

    module = export(Counting(), (candelabra.ones(3),)).module()
    assert [module(candelabra.ones(3)).item() for _ in range(3)] == [6.0, 12.0, 18.0]
    assert module.count.item() == 9.0


def test_gradients_are_those_of_the_operators():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4))
    x = candelabra.randn(2, 3)
    module = export(model, (x,)).module()
    expected = candelabra.autograd.grad(model(x).square().sum(), list(model.parameters()))
    found = candelabra.autograd.grad(module(x).square().sum(), list(module.parameters()))
    assert all(a.equal(b) for a, b in zip(expected, found, strict=True))


def test_random_numbers_are_drawn_anew():
    module = exported(lambda x: candelabra.rand(3) + x, candelabra.zeros(3))
    a, b = module(candelabra.zeros(3)), module(candelabra.zeros(3))
    assert not a.equal(b)
    candelabra.manual_seed(3)
    expected = candelabra.rand(3)
    candelabra.manual_seed(3)
    assert module(candelabra.zeros(3)).equal(expected)


Pair = collections.namedtuple("Pair", ["first", "second"])


def test_forms_of_arguments_and_results():
    def function(x, pair, *, scale=1.0, **more):
        return {"a": [x * scale, pair.first], "n": x.shape[0], "more": Pair(more["z"] + 1, None)}

    x, y, z = candelabra.ones(2), candelabra.zeros(3), candelabra.ones(1)
    module = export(Of(function), (x, Pair(y, 5)), {"scale": 2.0, "z": z}).module()
    result = module(x, Pair(y, 5), z=z, scale=2.0)
    assert result["a"][0].tolist() == [2, 2] and result["n"] == 2 and isinstance(result["more"], Pair)
    with pytest.raises(RuntimeError, match=r"scale is 3.0, and the program was exported with 2.0"):
        module(x, Pair(y, 5), z=z, scale=3.0)
    with pytest.raises(TypeError, match="another form"):
        module(x, (y, 5), z=z, scale=2.0)

    class Named(nn.Module):
        def forward(self, x, y):
            return x - y

    module = export(Named(), (candelabra.ones(1),), {"y": candelabra.zeros(1)}).module()
    assert module(candelabra.ones(1), candelabra.zeros(1)).tolist() == [1]
    assert module(y=candelabra.ones(1), x=candelabra.zeros(1)).tolist() == [-1]


def test_arguments_are_checked():
    n = Dim("n", min=2, max=8)
    module = exported(lambda x, y: x + y, candelabra.ones(4, 3), candelabra.ones(4, 3))
    for wrong, message in (
        (candelabra.ones(5, 3), "dimension 0 of argument args_0 is 5, but must be 4"),
        (candelabra.ones(4, 3, dtype=candelabra.float64), "must be of candelabra.float32"),
        (candelabra.ones(4), "have 2 dimensions"),
        (candelabra.ones(4, 3, device="meta"), "is on meta"),
    ):
        with pytest.raises(RuntimeError, match=message):
            module(wrong, candelabra.ones(4, 3))
    with pytest.raises(TypeError, match="must be a tensor"):
        module(3, candelabra.ones(4, 3))

    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    x = candelabra.ones(4, 3)
    module = export(Sum(), (x, x), dynamic_shapes={"x": {0: n}, "y": {0: n}}).module()
    assert module(candelabra.ones(8, 3), candelabra.ones(8, 3)).shape == (8, 3)
    with pytest.raises(RuntimeError, match="dimension 0 of argument y is 3, but must be n, with n = 2 elsewhere"):
        module(candelabra.ones(2, 3), candelabra.ones(3, 3))
    with pytest.raises(RuntimeError, match="from 2 to 8"):
        module(candelabra.ones(9, 3), candelabra.ones(9, 3))


def test_errors_name_the_line_of_the_operator():
    module = exported(lambda x, i: x.index_select(0, i), candelabra.ones(3), candelabra.tensor([0]))
    with pytest.raises(IndexError) as caught:
        module(candelabra.ones(3), candelabra.tensor([7]))
    assert any("index_select (" in note and "test_exporting.py" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, r"__bool__\(\) asks for the value of a tensor \(.*test_exporting.py"),
        (lambda x: x * x.sum().item(), r"item\(\) asks"),
        (lambda x: candelabra.tensor(x.tolist()), r"tolist\(\) asks"),
        (lambda x: x if candelabra.allclose(x, CONSTANT) else -x, "reads the value of a tensor .*test_exporting.py"),
        (lambda x: x if 1.0 in x else -x, "reads the value of a tensor"),
        (lambda x: candelabra.ones(5)[: x[0].long()], "reads the value of a tensor"),
        (lambda x: x * len(f"{x}"), r"tolist\(\) reads"),
        (
            lambda x: nn.functional.multilabel_margin_loss(x, candelabra.tensor([0, -1, 1])),
            "reads the value of a tensor",
        ),
        (lambda x: nn.functional.one_hot(x.long()), "reads the value of a tensor"),
        (lambda x: candelabra.tensor([x[0], x[1]]), r"tensor\(\) makes a tensor from the values of others"),
        (lambda x: candelabra.from_dlpack(x) * 2, "gives out the memory"),
        (lambda x: x.nonzero(), "the shape of the result of nonzero depends on the values"),
        (lambda x: x[x > 0], "the shape of the result of index depends on the values"),
        (lambda x: x.masked_select(x > 0), "masked_select depends"),
        (lambda x: x + candelabra.rand(1, generator=candelabra.Generator()), "a generator of its own"),
        (lambda x: CONSTANT.add_(x.sum()), r"add_ \(.*writes to a tensor that is neither an argument"),
        (lambda x: object(), "the result.* is a object"),
    ],
)
def test_what_cannot_be_exported(function, message):
    with pytest.raises(ExportError, match=message):
        export(Of(function), (candelabra.ones(3),))


CONSTANT = candelabra.zeros(1)


def test_other_objects_for_the_same_memory():
    def function(x):
        y = x.clone()
        y.data = x.data * 3
        return x.data * 2 + y.detach() + x.view(3, 1).mT

    x = candelabra.randn(3)
    assert exported(function, candelabra.ones(3))(x).equal(function(x))


def test_checks_of_values_are_no_part_of_a_program():
    loss = nn.BCELoss()
    x, y = candelabra.rand(3), candelabra.rand(3)
    program = export(loss, (x, y))
    assert [node.target.__name__ for node in program.graph.find_nodes(op="call_function")] == [
        "probability_cross_entropy",
        "mean",
    ]
    x, y = candelabra.rand(3), candelabra.rand(3)
    assert program.module()(x, y).equal(loss(x, y))


def test_values_of_buffers_are_refused_and_constants_are_kept():
    model = nn.Module()
    model.register_buffer("scale", candelabra.tensor(2.0))
    model.forward = lambda x: x * model.scale.item()
    with pytest.raises(ExportError, match="item"):
        export(model, (candelabra.ones(1),))
    module = exported(
        lambda x: x * candelabra.tensor([1.0, 2.0]) + candelabra.full((2,), 3).sum().item(), candelabra.ones(2)
    )
    assert module(candelabra.ones(2)).tolist() == [7.0, 8.0]


def test_wrong_calls_of_export():
    with pytest.raises(ValueError, match="Expected `mod` to be an instance"):
        export(lambda x: x, (candelabra.ones(1),))
    with pytest.raises(TypeError, match="args must be a tuple"):
        export(nn.ReLU(), candelabra.ones(1))
    with pytest.raises(ValueError, match="identifier"):
        Dim("a b")
    with pytest.raises(ValueError, match="inconsistent"):
        Dim("n", min=3, max=2)
    assert [one.__name__ for one in dims("a", "b")] == ["a", "b"]
    x = candelabra.ones(4, 3)
    for shapes, message in (
        ({"y": {0: Dim("n")}}, "names .'y'."),
        ({"input": {2: Dim("n")}}, "dimension 2"),
        ({"input": (Dim("n"),)}, "1 sizes for input, which has 2"),
        ({"input": {0: Dim("n", max=3)}}, "outside of 0 to 3"),
        ({"input": {0: Dim("n"), 1: Dim("n")}}, "n is 4 and 3"),
        ({"input": {0: 3 * Dim("n")}}, "which is not 3"),
        ({"input": {0: 5}}, "says 5"),
        ({"input": {0: "n"}}, "it takes Dim, int or None"),
        ((None, None), "2 entries for the 1 arguments"),
    ):
        with pytest.raises(ExportError, match=message):
            export(nn.ReLU(), (x,), dynamic_shapes=shapes)


def test_programs_see_that_they_are_exported():
    seen = []

    def function(x):
        seen.append((candelabra.compiler.is_compiling(), candelabra.compiler.is_exporting()))
        return x + 1

    compiled = candelabra.compile(function)
    exported(compiled, candelabra.ones(1))
    assert seen == [(True, True)]
    compiled(candelabra.ones(1))
    assert seen[-1] == (False, False)
