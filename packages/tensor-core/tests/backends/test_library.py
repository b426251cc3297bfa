"""Custom operators: schemas, kernels by device, what is refused, libraries, descriptions of
results, opcheck.
"""

import copy
import gc
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

import candelabra
from candelabra import Tensor, library

Number = candelabra.types.Number


def define(name, function, mutates_args=(), **options):
    return library.custom_op(f"testlib::{name}", function, mutates_args=mutates_args, **options)


# ---- schemas


def plain(x: Tensor, n: int, *, rate: float = 0.5, flag: bool = False) -> Tensor: ...


def lists(xs: list[Tensor], ys: Sequence[Tensor | None], dims: list[int], ws: Sequence[float]) -> list[Tensor]: ...


def optional(x: Tensor | None, n: int | None = None, kind: str = "sum") -> tuple[Tensor, Tensor]: ...


def numbers(
    a: Number, dtype: candelabra.dtype = candelabra.float32, device: candelabra.device | None = None
) -> int: ...


def nothing(x: Tensor, y: Tensor) -> None: ...


@pytest.mark.parametrize(
    ("function", "mutated", "expected"),
    [
        (plain, (), "(Tensor x, SymInt n, *, float rate=0.5, bool flag=False) -> Tensor"),
        (lists, (), "(Tensor[] xs, Tensor?[] ys, SymInt[] dims, float[] ws) -> Tensor[]"),
        (optional, (), '(Tensor? x, SymInt? n=None, str kind="sum") -> (Tensor, Tensor)'),
        (numbers, (), "(Scalar a, ScalarType dtype=float32, Device? device=None) -> SymInt"),
        (nothing, {"y"}, "(Tensor x, Tensor(a1!) y) -> ()"),
        (nothing, "unknown", "(Tensor(a0!) x, Tensor(a1!) y) -> ()"),
    ],
)
def test_schemas_are_read_from_annotations(function, mutated, expected):
    assert library.infer_schema(function, mutates_args=mutated) == expected
    assert library.infer_schema(function, op_name="f", mutates_args=mutated) == f"f{expected}"


def without_annotation(x) -> Tensor: ...


def without_result(x: Tensor): ...


def of_tuple(x: tuple[Tensor, Tensor]) -> Tensor: ...


def of_dict(x: dict) -> Tensor: ...


def of_text(x: "Nowhere") -> Tensor: ...  # noqa: F821


def returns_text(x: Tensor) -> str: ...


def spread(*x: Tensor) -> Tensor: ...


@pytest.mark.parametrize(
    ("function", "mutated", "match"),
    [
        (without_annotation, (), "Parameter x must have a type annotation"),
        (without_result, (), "No return type annotation"),
        (of_tuple, (), "We do not support Tuple inputs"),
        (of_dict, (), "unsupported type <class 'dict'>"),
        (of_text, (), "It is not a type"),
        (returns_text, (), "Return has unsupported type"),
        (spread, (), "varargs"),
        (plain, {"n"}, "only Tensors or collections of Tensors can be mutated"),
        (plain, {"z"}, "were not found in the custom op's signature"),
        (plain, "some", "or the string 'unknown'"),
    ],
)
def test_what_is_no_schema_is_refused(function, mutated, match):
    with pytest.raises(ValueError, match=match):
        library.infer_schema(function, mutates_args=mutated)


# ---- calls


def numpy_scaled(x: Tensor, factor: float = 2.0, *, shift: int = 0) -> Tensor:
    """Scale and shift."""
    return candelabra.from_numpy(x.numpy() * np.float32(factor) + np.float32(shift))


def test_an_operator_is_called_by_its_schema():
    scaled = define("scaled", numpy_scaled)
    x = candelabra.tensor([1.0, 2.0])
    assert scaled(x).tolist() == [2.0, 4.0]
    assert candelabra.ops.testlib.scaled(x, 3, shift=1).tolist() == [4.0, 7.0]
    assert candelabra.ops.testlib.scaled.default(x=x, factor=1).tolist() == [1.0, 2.0]
    assert candelabra.ops.testlib.scaled.__doc__ == "Scale and shift."
    assert repr(scaled) == "<CustomOpDef(testlib::scaled)>"
    for bad, match in [
        ((1,), "argument 'x' .* must be Tensor, not int"),
        ((), "missing required argument 'x'"),
        ((x, "a"), "argument 'factor' .* must be float, not str"),
        ((x, 1, 2), "takes 2 positional arguments but 3"),
    ]:
        with pytest.raises(TypeError, match=match):
            scaled(*bad)
    with pytest.raises(TypeError, match="unexpected keyword argument 'scale'"):
        scaled(x, scale=2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        scaled(x, out=x)


def test_lists_options_and_several_results():
    def kernel(xs: list[Tensor], weight: Tensor | None = None, sizes: list[int] = None) -> tuple[Tensor, Tensor]: ...  # noqa: RUF013

    schema = "(Tensor[] xs, Tensor? weight=None, SymInt[] sizes=[1, 2], str how='sum', ScalarType dtype=float64) -> (Tensor, Tensor)"

    def run(xs, weight, sizes, how, dtype):
        total = xs[0] * 0
        for x in xs:
            total = total + (x if weight is None else x * weight)
        return total.to(dtype), candelabra.tensor([*sizes, how == "sum"])

    operator = library.custom_op("testlib::several", run, mutates_args=(), schema=schema)
    one, two = operator([candelabra.ones(2), candelabra.ones(2)])
    assert one.dtype is candelabra.float64
    assert one.tolist() == [2.0, 2.0]
    assert two.tolist() == [1, 2, 1]
    one, two = operator([candelabra.ones(2)], candelabra.tensor(3.0), [7], how="max", dtype=candelabra.float32)
    assert (one.tolist(), two.tolist()) == ([3.0, 3.0], [7, 0])


def test_results_that_are_no_tensors():
    def count(x: Tensor) -> int:
        return int(x.numpy().sum())

    def pieces(x: Tensor) -> list[Tensor]:
        return [x.clone(), x.clone()]

    assert define("count", count)(candelabra.ones(3)) == 3
    assert [piece.tolist() for piece in define("pieces", pieces)(candelabra.ones(1))] == [[1.0], [1.0]]


def test_results_are_held_against_the_schema():
    def wrong(x: Tensor) -> Tensor:
        return 3

    def too_few(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.clone()

    def none(x: Tensor) -> None:
        return x

    with pytest.raises(RuntimeError, match=r"testlib::wrong\(\): the kernel returned int, but its schema says Tensor"):
        define("wrong", wrong)(candelabra.ones(1))
    with pytest.raises(RuntimeError, match=r"returned Tensor, but its schema says \(Tensor, Tensor\)"):
        define("too_few", too_few)(candelabra.ones(1))
    with pytest.raises(RuntimeError, match="returned Tensor, but its schema says no result"):
        define("none", none)(candelabra.ones(1))


def test_names_defaults_and_redefinition():
    with pytest.raises(ValueError, match='look like "namespace::name"'):
        library.custom_op("f", numpy_scaled, mutates_args=())
    first = define("again", numpy_scaled)
    second = define("again", lambda x: x + 1, schema="(Tensor x) -> Tensor")
    x = candelabra.ones(1)
    assert candelabra.ops.testlib.again(x).tolist() == [2.0]
    assert second(x).tolist() == [2.0]
    assert first(x, 5.0).tolist() == [5.0]  # who holds the old one keeps it
    with pytest.raises(ValueError, match="The schema suggests that the op mutates"):
        define("inconsistent", lambda x: None, mutates_args={"x"}, schema="(Tensor x) -> ()")
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        define("keyword", lambda x, *, w: x * w, schema="(Tensor x, *, Tensor w) -> Tensor")
    with pytest.raises(ValueError, match="is the name of an operator"):
        library.custom_op("add::f", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")


def test_unknown_names_say_how_to_define_them():
    with pytest.raises(AttributeError, match='custom_op\\("testlib::nothing_there", ...\\) would define it'):
        candelabra.ops.testlib.nothing_there
    assert not hasattr(candelabra.ops.no_such_namespace, "f")
    with pytest.raises(RuntimeError, match="operator testlib::never does not exist"):
        library.register_kernel("testlib::never", "cpu")
    with pytest.raises(RuntimeError, match="add is no custom operator"):
        library.register_fake(candelabra.ops.add)


def test_pickling_and_copying():
    define("pickled", numpy_scaled)
    operator = candelabra.ops.testlib.pickled
    assert pickle.loads(pickle.dumps(operator)) is operator
    assert copy.deepcopy(operator) is operator


# ---- memory


def test_what_a_kernel_changes_has_to_be_named():
    def secretly(x: Tensor) -> Tensor:
        x.add_(1)
        return x.clone()

    with pytest.raises(RuntimeError, match="changed argument 'x' in place, which the operator's schema does not say"):
        define("secretly", secretly)(candelabra.zeros(2))

    def openly(x: Tensor, y: Tensor) -> None:
        x.numpy()[...] += y.numpy()

    add = define("openly", openly, mutates_args={"x"})
    x = candelabra.zeros(3)
    before = x._version
    assert add(x[1:], candelabra.ones(2)) is None
    assert x.tolist() == [0.0, 1.0, 1.0]
    assert x._version == before + 1


def same(x: Tensor) -> Tensor:
    return x


def part(x: Tensor) -> Tensor:
    return x[:1]


def by_numpy(x: Tensor) -> Tensor:
    return candelabra.from_numpy(x.numpy()[1:])


def twice(x: Tensor) -> tuple[Tensor, Tensor]:
    made = x.clone()
    return made, made[:1]


@pytest.mark.parametrize("function", [same, part, by_numpy, twice])
def test_results_must_not_share_memory(function):
    with pytest.raises(RuntimeError, match="may not alias any inputs to this custom operator or other returns"):
        define(function.__name__, function)(candelabra.ones(3))


# ---- devices


def test_kernels_by_device():
    operator = define("by_device", numpy_scaled, device_types="cuda")
    with pytest.raises(
        NotImplementedError,
        match=r"'testlib::by_device' .* from the 'cpu' device: it has kernels for cuda only; .*register_kernel",
    ):
        operator(candelabra.ones(1))

    @operator.register_kernel("cpu")
    def on_cpu(x, factor, *, shift):
        return x * factor

    assert operator(candelabra.ones(1)).tolist() == [2.0]
    operator.register_kernel(None, lambda x, factor, *, shift: x * 0)
    with operator.set_kernel_enabled("cpu", enabled=False):
        assert operator(candelabra.ones(1)).tolist() == [0.0]
    assert operator(candelabra.ones(1)).tolist() == [2.0]
    with pytest.raises(TypeError, match="a kernel must be callable"):
        operator.register_kernel("cpu", 3)


def test_operators_without_tensors_need_a_device():
    def make(n: int, device: candelabra.device) -> Tensor:
        return candelabra.zeros(n, device=device)

    assert define("make", make, device_types="cpu")(2, "cpu").tolist() == [0.0, 0.0]

    def bare(n: int) -> Tensor:
        return candelabra.zeros(n)

    with pytest.raises(ValueError, match="required to have a `device"):
        define("bare", bare, device_types="cpu")
    assert define("bare", bare)(1).tolist() == [0.0]


# ---- libraries


def test_libraries():
    own = library.Library("testlib_own", "DEF")
    with pytest.raises(RuntimeError, match="Only a single library of kind DEF"):
        library.Library("testlib_own", "DEF")
    assert own.define("f(Tensor x, int n=1) -> Tensor") == "f"
    with pytest.raises(RuntimeError, match="registered? .*multiple times|same name and overload name multiple times"):
        own.define("f(Tensor x) -> Tensor")
    f = candelabra.ops.testlib_own.f
    with pytest.raises(NotImplementedError, match="it has no kernel"):
        f(candelabra.ones(1))
    kernels = library.Library("testlib_own", "IMPL")
    with pytest.raises(RuntimeError, match="not for a library of kind IMPL"):
        kernels.define("g(Tensor x) -> Tensor")
    kernels.impl("f", lambda x, n: x + n, "CPU")
    assert f(candelabra.ones(1), 2).tolist() == [3.0]
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        kernels.impl("f", lambda x, n: x, "CPU")
    kernels.impl(f, lambda x, n: x - n, "CPU", allow_override=True)
    assert f(candelabra.ones(1), 2).tolist() == [-1.0]
    for key, match in [
        ("Autograd", "register_autograd"),
        ("SparseCPU", "there is no dispatch key"),
    ]:
        with pytest.raises(NotImplementedError, match=match):
            kernels.impl("f", lambda x, n: x, key)
    more = library.Library("testlib_own", "FRAGMENT")
    more.define("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")

    def into(x, *, out):
        return out.copy_(x)

    more.impl("f.out", into, "cpu")
    target = candelabra.zeros(1)
    assert f.out(candelabra.ones(1), out=target) is target
    del own, more
    gc.collect()
    assert not hasattr(candelabra.ops.testlib_own, "f")
    library.Library("testlib_own", "DEF")._destroy()


def test_library_kinds_and_namespaces():
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("testlib_kind", "NEW")
    with pytest.raises(ValueError, match="reserved namespace"):
        library.Library("aten", "DEF")
    with pytest.raises(NotImplementedError, match="come with the backends"):
        library.Library("aten", "IMPL").impl("add", lambda x, y: x, "CPU")
    with pytest.raises(ValueError, match="expected a schema"):
        library.Library("testlib_kind", "FRAGMENT").define("f")
    with pytest.raises(ValueError, match="expected a type at position"):
        library.Library("testlib_kind", "FRAGMENT").define("f(Array x) -> Tensor")


def test_define_and_impl_by_name():
    library.define("testlib_free::double", "(Tensor x) -> Tensor")

    @library.impl("testlib_free::double", ("cpu", "cuda"))
    def double(x):
        return x * 2

    assert candelabra.ops.testlib_free.double(candelabra.ones(1)).tolist() == [2.0]
    with pytest.raises(ValueError, match="without the name"):
        library.define("testlib_free::f", "f(Tensor x) -> Tensor")


def test_what_there_is_not_says_so():
    for function in (library.triton_op, library.wrap_triton):
        with pytest.raises(NotImplementedError, match="there is no Triton here"):
            function("x")
    with pytest.raises(NotImplementedError, match="register_kernel"):
        library.register_torch_dispatch("testlib::f", object)


# ---- descriptions, checks, autocasting


def test_opcheck_finds_what_is_wrong():
    def row_sums(x: Tensor) -> Tensor:
        return x.sum(-1)

    operator = define("row_sums", row_sums)
    x = candelabra.ones(2, 3)
    with pytest.raises(library.OpCheckError, match="there was no fake impl registered"):
        library.opcheck(operator, (x,))
    operator.register_fake(lambda x: x.new_empty(x.shape))
    with pytest.raises(
        library.OpCheckError, match=r"result 0 .* has the sizes \(2,\), but its description says \(2, 3\)"
    ):
        library.opcheck(operator, (x,))
    operator.register_fake(lambda x: x.new_empty(x.shape[:-1], dtype=candelabra.float64))
    with pytest.raises(library.OpCheckError, match="has the dtype"):
        library.opcheck(operator, (x,))
    operator.register_fake(lambda x: x.new_empty(x.shape[:-1]))
    assert set(library.opcheck(operator, (x,)).values()) == {"SUCCESS"}

    def changes(x: Tensor) -> Tensor:
        x.numpy()[...] = 0
        return x.clone()

    found = library.opcheck(define("changes", changes), (x,), test_utils="test_schema", raise_exception=False)
    assert "changed argument 'x'" in str(found["test_schema"])

    def blind(x: Tensor) -> Tensor:  # of the memory, not of the tensor
        return candelabra.from_numpy(np.lib.stride_tricks.as_strided(x.numpy(), (2, 3), (12, 4)).copy())

    operator = define("blind", blind)
    operator.register_fake(lambda x: candelabra.empty(2, 3))
    with pytest.raises(library.OpCheckError, match="other values for arguments of other strides"):
        library.opcheck(operator, (candelabra.arange(6.0).reshape(2, 3),))
    with pytest.raises(ValueError, match="there is no check 'test_all'"):
        library.opcheck(operator, (x,), test_utils="test_all")


def test_sizes_that_depend_on_values():
    def positive(x: Tensor) -> Tensor:
        return candelabra.from_numpy(np.flatnonzero(x.numpy() > 0))

    operator = define("positive", positive)

    @library.register_fake("testlib::positive")
    def _(x):
        return x.new_empty(library.get_ctx().new_dynamic_size(), dtype=candelabra.int64)

    assert library.opcheck(operator, (candelabra.tensor([1.0, -1.0, 2.0]),))["test_faketensor"] == "SUCCESS"
    with pytest.raises(RuntimeError, match="only a description of results asks this"):
        library.get_ctx().new_dynamic_size()


def test_autocasting():
    seen = []

    def kernel(x: Tensor, y: Tensor) -> Tensor:
        seen.append((x.dtype, y.dtype))
        return x.clone()

    operator = define("cast", kernel)
    x, y = candelabra.ones(2), candelabra.ones(2, dtype=candelabra.int64)
    with candelabra.autocast("cpu"):
        assert operator(x, y).dtype is candelabra.float32
    library.register_autocast(operator, "cpu", candelabra.bfloat16)
    with candelabra.autocast("cpu"):
        assert operator(x, y).dtype is candelabra.bfloat16
        assert operator(x.double(), y).dtype is candelabra.float64
    assert operator(x, y).dtype is candelabra.float32
    assert seen[1] == (candelabra.bfloat16, candelabra.int64)
    with pytest.raises(ValueError, match="Unknown device type"):
        library.register_autocast(operator, "abacus", candelabra.float16)


def test_dispatch_hooks_see_custom_operators():
    from candelabra import dispatch_hooks

    operator = define("seen", numpy_scaled)
    names = []

    def watch(op, arguments, out, generator, record):
        names.append((op.name, len(arguments)))
        return NotImplemented

    dispatch_hooks.set_inner(watch)
    try:
        operator(candelabra.ones(1))
    finally:
        dispatch_hooks.set_inner(None)
    assert ("testlib::seen", 3) in names


def test_errors_of_kernels_are_the_callers():
    def failing(x: Tensor) -> Tensor:
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        define("failing", failing)(candelabra.ones(1))
    assert candelabra.is_grad_enabled()


# ---- autocasting, and the libraries of other projects


def test_functions_that_autocast_calls_instead():
    calls = []
    own = library.Library("testlib_cast", "DEF")
    own.define("f(Tensor x, *, int n=1) -> Tensor")
    own.impl("f", lambda x, n: x + n, "CPU")

    def cast(x, *, n):
        calls.append(n)
        # Nothing is autocast within the function: the operator itself is called.
        return candelabra.ops.testlib_cast.f(x.float(), n=10 * n).to(x.dtype)

    library.Library("testlib_cast", "IMPL").impl("f", cast, "AutocastCPU")
    x = candelabra.ones(1, dtype=candelabra.float16)
    f = candelabra.ops.testlib_cast.f
    assert f(x, n=2).tolist() == [3.0]
    with candelabra.autocast("cpu"):
        result = f(x, n=2)
        assert result.tolist() == [21.0]
        assert result.dtype == candelabra.float16
        with candelabra.autocast("cpu", enabled=False):
            assert f(x).tolist() == [2.0]
    assert f(x, n=2).tolist() == [3.0]
    assert calls == [2]


def test_autocasting_of_devices_without_a_backend_is_accepted():
    own = library.Library("testlib_xpu", "DEF")
    own.define("f(Tensor x) -> Tensor")
    own.impl("f", lambda x: x + 1, "CPU")
    own.impl("f", lambda x: x, "AutocastXPU")
    with candelabra.autocast("cpu"):
        assert candelabra.ops.testlib_xpu.f(candelabra.ones(1)).tolist() == [2.0]
    with pytest.raises(ValueError, match="Unknown device type: xpu"):
        library.definitions.definition_of("testlib_xpu::f").register_autocast_kernel("xpu", lambda x: x)
    with pytest.raises(NotImplementedError, match="there is no dispatch key 'Nowhere'"):
        own.impl("f", lambda x: x, "AutocastNowhere")


def test_libraries_whose_operators_a_distribution_has(tmp_path, monkeypatch):
    """A distribution's module is imported in place of the libraries of a package."""
    for place in ("others", "torchvision"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "_C.so").write_bytes(b"no library")
    info = tmp_path / "of_others-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: of-others\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[candelabra.operator_libraries]\nothers = operators_of_others\n")
    (tmp_path / "operators_of_others.py").write_text(
        "import candelabra\ncandelabra.library.define('testlib_others::f', '(Tensor x) -> Tensor')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    candelabra.ops.load_library(tmp_path / "others" / "_C.so")
    assert candelabra.ops.testlib_others.f.name == "testlib_others::f"
    assert candelabra.ops.load_library(tmp_path / "others" / "_C.so") is None


def test_the_distribution_with_the_operators_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **named: ())
    path = tmp_path / "torchvision" / "_C.so"
    with pytest.raises(OSError, match="pip install candelabra-vision-ops"):
        candelabra.ops.load_library(path)
    with pytest.raises(AttributeError, match=r"import candelabra.vision_ops .*pip install candelabra-vision-ops"):
        candelabra.ops.image.no_such_operator
