"""The generated code. The expected texts are those of PyTorch 2.13, with the name of the
package.
"""

import collections
import enum
import math
import operator
import pickle
from typing import Optional

import candelabra
from candelabra import fx, nn
from candelabra.nn import functional as F

Pair = collections.namedtuple("Pair", "first second")


class Color(enum.Enum):
    RED = 1


@fx.wrap
def helper(a, b=2):
    return a


fx.wrap("len")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Dropout())])
        self.w = nn.Parameter(candelabra.ones(3))
        self.register_buffer("b", candelabra.zeros(3))
        self.c = candelabra.ones(3)

    def forward(self, x: candelabra.Tensor, y: Optional[int] = None, *, flag: bool = True, z=(1, 2)):  # noqa: UP045
        len(x)
        x = self.layers[1](self.layers[0](x))
        x = F.relu(x, inplace=True) + self.w * self.b - self.c
        x = x.view(x.size(0), -1, x.shape[1]).to(candelabra.float32).to(device=candelabra.device("cpu"))
        q = x[:, None, ..., 1:2]
        x = helper(x, b=x)
        x @= x
        x = 2**-(~x)
        x = abs(x) // 2 % 3
        x = (x < 2) & (x == 3)
        math.sqrt(x.size(0))
        x = candelabra.add(x, float("inf"), alpha=float("nan"))
        x = candelabra.cat([x.T, self.w.t()], dim=1)
        return {"out": x, "q": (q, None)}


MODEL_CODE = """
candelabra.fx.wrap("len")
candelabra.fx.wrap("NAME_helper")
candelabra.fx.wrap("math_sqrt")

def forward(self, x : candelabra.Tensor, y : typing_Union[int,NoneType] = None, flag : bool = True, z = (1, 2)):
    len_1 = len(x);  len_1 = None
    layers_0 = getattr(self.layers, "0")(x);  x = None
    layers_1_0 = getattr(getattr(self.layers, "1"), "0")(layers_0);  layers_0 = None
    layers_1_1 = getattr(getattr(self.layers, "1"), "1")(layers_1_0);  layers_1_0 = None
    relu = candelabra.nn.functional.relu(layers_1_1, inplace = True);  layers_1_1 = None
    w = self.w
    b = self.b
    mul = w * b;  b = None
    add = relu + mul;  relu = mul = None
    c = self.c
    sub = add - c;  add = c = None
    size = sub.size(0)
    getattr_1 = sub.shape
    getitem = getattr_1[1];  getattr_1 = None
    view = sub.view(size, -1, getitem);  sub = size = getitem = None
    to = view.to(candelabra.float32);  view = None
    to_1 = to.to(device = device(type='cpu'));  to = None
    getitem_1 = to_1[(slice(None, None, None), None, Ellipsis, slice(1, 2, None))]
    helper = NAME_helper(to_1, b = to_1);  to_1 = None
    matmul = helper @ helper;  helper = None
    invert = ~matmul;  matmul = None
    neg = -invert;  invert = None
    pow_1 = 2 ** neg;  neg = None
    abs_1 = _operator_abs(pow_1);  pow_1 = None
    floordiv = abs_1 // 2;  abs_1 = None
    mod = floordiv % 3;  floordiv = None
    lt = mod < 2
    eq = mod == 3;  mod = None
    and_ = lt & eq;  lt = eq = None
    size_1 = and_.size(0)
    sqrt = math_sqrt(size_1);  size_1 = sqrt = None
    add_1 = candelabra.add(and_, inf, alpha = nan);  and_ = None
    t = w.t();  w = None
    getattr_2 = add_1.T;  add_1 = None
    cat = candelabra.cat([getattr_2, t], dim = 1);  getattr_2 = t = None
    return {'out': cat, 'q': (getitem_1, None)}
    """


def test_code_of_a_module():
    traced = fx.symbolic_trace(Model())
    assert traced.code == MODEL_CODE.replace("NAME", __name__.replace(".", "_"))


def test_text_of_a_graph():
    lines = str(fx.symbolic_trace(Model()).graph).split("\n")
    assert lines[0] == "graph():"
    assert "    %x : candelabra.Tensor [num_users=2] = placeholder[target=x]" in lines
    assert "    %y : typing.Optional[int] [num_users=0] = placeholder[target=y](default=None)" in lines
    assert "    %layers_0 : [num_users=1] = call_module[target=layers.0](args = (%x,), kwargs = {})" in lines
    assert "    %w : [num_users=2] = get_attr[target=w]" in lines
    assert "    %mul : [num_users=1] = call_function[target=operator.mul](args = (%w, %b), kwargs = {})" in lines
    assert "    %to_1 : [num_users=2] = call_method[target=to](args = (%to,), kwargs = {device: cpu})" in lines
    assert (
        f"    %helper : [num_users=1] = call_function[target={__name__}.helper](args = (%to_1,), kwargs = {{b: %to_1}})"
        in lines
    )
    assert lines[-1] == "    return {'out': cat, 'q': (getitem_1, None)}"


def test_variadic_parameters():
    def f(x, *args, k=1, **kw):
        return x + k + args[0] + kw["a"]

    assert (
        fx.symbolic_trace(f).code
        == """


def forward(self, x, k = 1, *args, **kw):
    _args = args
    _kw = kw
    add = x + k;  x = k = None
    getitem = _args[0];  _args = None
    add_1 = add + getitem;  add = getitem = None
    getitem_1 = _kw['a'];  _kw = None
    add_2 = add_1 + getitem_1;  add_1 = getitem_1 = None
    return add_2
    """
    )


def test_specialized_arguments():
    class Optional_(nn.Module):
        def forward(self, a, b=None, flag=False):
            if b is None and flag:
                return a * 2
            return a + b

    code = fx.symbolic_trace(Optional_(), concrete_args={"b": None, "flag": True}).code
    assert (
        code
        == """


def forward(self, a, b_1 = None, flag_1 = False):
    _assert_is_none = candelabra.fx.tracing._assert_is_none(b_1, 'b has been specialized to have value None but got another value');  b_1 = _assert_is_none = None
    eq = flag_1 == True;  flag_1 = None
    _assert = candelabra._assert(eq, 'flag has been specialized to have value True but got another value');  eq = _assert = None
    mul = a * 2;  a = None
    return mul
    """
    )


def test_containers_of_placeholders():
    def f(a, b):
        return {"r": a + b["x"][0] * b["y"]}

    traced = fx.symbolic_trace(f, concrete_args={"b": {"x": [fx.PH], "y": fx.PH}})
    assert (
        traced.code
        == """


def forward(self, a, b):
    a, b_1, b_2, = fx_pytree.tree_flatten_spec([a, b], self._in_spec)
    mul = b_1 * b_2;  b_1 = b_2 = None
    add = a + mul;  a = mul = None
    return pytree.tree_unflatten([add], self._out_spec)
    """
    )
    # The keys may be in another order.
    assert traced(1, {"y": 3, "x": [2]}) == {"r": 7}
    assert fx.Interpreter(traced).run(1, {"x": [2], "y": 3}) == {"r": 7}


def test_arguments_of_other_types():
    def f(x):
        return helper(Pair(x, 1), b=Color.RED), [slice(None, x), range(3)], -(1**x), (x,)

    traced = fx.symbolic_trace(f)
    module = __name__.replace(".", "_")
    assert f"{module}_helper({module}_Pair(x, 1), b = {module}_Color.RED)" in traced.code
    assert "[slice(None, x, None), range(0, 3)]" in traced.code
    assert traced(2)[0] == Pair(2, 1)
    traced.graph.find_nodes(op="call_function", target=operator.neg)[0].args = (3,)
    traced.recompile()
    assert traced(2)[2] == -3


def test_negative_bases_are_in_parentheses():
    graph = fx.Graph()
    graph.output(graph.call_function(operator.pow, (-2, graph.placeholder("x"))))
    traced = fx.GraphModule(nn.Module(), graph)
    assert "pow_1 = (-2) ** x" in traced.code
    assert traced(2) == 4


def test_operators_in_place():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.iadd, (x, 1)))
    traced = fx.GraphModule(nn.Module(), graph)
    assert "x += 1;  iadd = x" in traced.code
    tensor = candelabra.ones(2)
    assert traced(tensor) is tensor
    assert tensor.tolist() == [2, 2]


def test_names_of_nodes():
    graph = fx.Graph()
    names = [
        graph.placeholder(name).name for name in ("x", "x", "x_5", "x_5", "input", "lambda", "device", "2d", "a.b-c")
    ]
    assert names == ["x", "x_1", "x_5", "x_6", "input_1", "lambda_1", "device_1", "_2d", "a_b_c"]


def test_names_of_functions():
    graph = fx.Graph()
    functions = {
        candelabra.conv2d: "candelabra.conv2d",
        F.relu: "candelabra.nn.functional.relu",
        F.linear: "candelabra.nn.functional.linear",
        candelabra.linalg.norm: "candelabra.linalg.norm",
        candelabra.fft.fft: "candelabra.fft.fft",
        candelabra.Tensor.add_: "candelabra.Tensor.add_",
        candelabra.ops.aten.add.Tensor: "candelabra.ops.aten.add.Tensor",
        math.sqrt: "math.sqrt",
        len: "builtins.len",
    }
    for function, name in functions.items():
        assert f"target={name}]" in graph.call_function(function).format_node()


def test_custom_operators():
    @candelabra.library.custom_op("fx_tests::twice", mutates_args=())
    def twice(x: candelabra.Tensor) -> candelabra.Tensor:
        return x * 2

    traced = fx.symbolic_trace(lambda x: twice(x))
    assert "twice = candelabra.ops.fx_tests.twice(x)" in traced.code
    assert pickle.loads(pickle.dumps(traced))(candelabra.ones(1)).item() == 2


def test_a_name_that_is_the_modules():
    graph = fx.Graph()
    graph.output(graph.call_method("relu", (graph.placeholder("self"),)))
    assert "self_1 = self" in fx.GraphModule(nn.Module(), graph).code


def test_table(capsys):
    fx.symbolic_trace(lambda x: x + 1).graph.print_tabular()
    assert capsys.readouterr().out == (
        "opcode         name    target                   args    kwargs\n"
        "-------------  ------  -----------------------  ------  --------\n"
        "placeholder    x       x                        ()      {}\n"
        "call_function  add     <built-in function add>  (x, 1)  {}\n"
        "output         output  output                   (add,)  {}\n"
    )


def test_readable():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = fx.symbolic_trace(lambda x: x + 1)

        def forward(self, x):
            return self.inner(x)

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    root = Outer()
    text = fx.GraphModule(root, Leaves().trace(root), "Outer").print_readable(print_output=False)
    assert text.startswith(
        "class Outer(candelabra.nn.Module):\n    def forward(self, x):\n        inner = self.inner(x)"
    )
    assert "    class inner(candelabra.nn.Module):\n        def forward(self, x):" in text


def test_transformed_code():
    graph = fx.symbolic_trace(lambda x: x + 1).graph

    def make(before):
        assert before is None
        return lambda lines: [line.replace("x + 1", "x + 10") for line in lines]

    with graph.on_generate_code(make):
        assert fx.GraphModule(nn.Module(), graph)(1) == 11
    assert fx.GraphModule(nn.Module(), graph)(1) == 2
