"""Test C and C++ operators: kernels of all kinds, derivative formulas, result shapes, errors."""

import sys
from pathlib import Path

import numpy as np
import pytest

import candelabra
from candelabra.utils import cpp_extension
from candelabra.utils.cpp_extension import shape_rules

sys.path.insert(0, str(Path(__file__).parent))

from extensions import quick

pytestmark = [
    pytest.mark.host_only("the extensions are compiled for the CPU"),
    pytest.mark.usefixtures("extension_folder"),
]

KERNELS = r"""
void scale(Tensor out, const Tensor& x, double factor) {
  check(factor >= 0, "factor must not be negative, but got ", factor);
  dispatch<float, double>(x.dtype(), [&]<typename T>() {
    T* to = out.data<T>();
    int64_t i = 0;
    each_offset(x.descriptor(), [&](int64_t offset) { to[i++] = x.data<const T>()[offset] * T(factor); });
  });
}

template <typename T>
void product(Array<T, 2> out, Array<const T, 2> a, Array<const T, 2> b) {
  for (int64_t i = 0; i < out.size(0); ++i) {
    for (int64_t j = 0; j < out.size(1); ++j) {
      T total = 0;
      for (int64_t k = 0; k < a.size(1); ++k) total += a(i, k) * b(k, j);
      out(i, j) = total;
    }
  }
}

// A function of the source's own.
static double of(const std::optional<double>& value) { return value.value_or(-1); }

void everything(std::span<double> out, const double* x, int64_t n, bool flag, std::optional<double> maybe, const std::string& text,
                std::span<const int64_t> sizes, std::span<const double> weights, const std::vector<Tensor>& parts,
                std::optional<Tensor> missing, const cb_scalar& number, std::complex<double> z) {
  if (text == "value") throw std::invalid_argument("of the value");
  if (text == "index") throw std::out_of_range("of the index");
  if (text == "memory") throw std::bad_alloc();
  if (text == "type") fail(CB_TYPE_ERROR, "of the type");
  if (text == "runtime") throw std::runtime_error("of the run");
  if (text == "other") throw 3;
  const double values[] = {x[0], x[1], double(n), double(flag), of(maybe), double(text.size()), double(sizes.size()), weights[0],
                           double(parts.size()), double(missing.has_value()), number.re, z.imag()};
  std::copy(std::begin(values), std::end(values), out.begin());
}

void positive(cb_call* call, Tensor, std::span<const float> x) {
  const int64_t count = std::count_if(x.begin(), x.end(), [](float value) { return value > 0; });
  int64_t* to = allocate(call, 0, {count}).data<int64_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] > 0) *to++ = static_cast<int64_t>(i);
  }
}

void halve(float* x_begin, const float* by) { *x_begin *= *by; }

int32_t status(cb_call* call) { return static_cast<int32_t>(call->arguments[1].as.i); }

void sum_and_max(double* sum, double* max, std::span<const double> x) {
  *sum = std::accumulate(x.begin(), x.end(), 0.0);
  *max = *std::max_element(x.begin(), x.end());
}

void fill(cb_call* call, float* out, int64_t n) {
  parallel(call, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (n == 7 && i == 5) throw std::out_of_range("on a thread");
      out[i] = static_cast<float>(i);
    }
  });
}
"""
EVERYTHING = (
    "everything(Tensor x, int n, bool flag, float? maybe, str text, int[] sizes, float[] weights, Tensor[] parts, Tensor? missing, "
    "Scalar number, *, Scalar z=0) -> Tensor"
)
FUNCTIONS = {
    "scale(Tensor x, float factor=2.0) -> Tensor": "Scale a tensor.",
    "product(Tensor a, Tensor b) -> Tensor": {
        "shape": "(n, m), (m, k) -> (n, k)",
        "dtypes": ["float32", candelabra.int64],
    },
    EVERYTHING: {"shape": "like x"},
    "positive(Tensor x) -> Tensor": {"shape": "data: int64"},
    "halve(Tensor(a!) x, Tensor by) -> ()": "",
    "status(Tensor x, int number) -> Tensor": "",
    "sum_and_max(Tensor x) -> (Tensor sum, Tensor max)": {"shape": "(n) -> (), ()"},
    "fill(int n) -> Tensor": {"shape": lambda n: (n,)},
}
FORMULAS = {
    "damped(Tensor x, Tensor y, float rate=1.0, *, int shift=0)": "x * exp(-rate * abs(y)) + shift if x > 0 and y != 2 else 0",
    "python_division(Tensor x, Tensor y)": "x // y + x % y - x**2 + min(x, y)",
    "guarded(Tensor x, Tensor y)": "x // y if y != 0 else -1",
    "constants(Tensor x)": "where(x < 0, pi, e) + 1e-3 * clamp(x, -1, 1)",
}


@pytest.fixture(scope="module")
def kernels(extension_folder):
    return cpp_extension.load_inline(
        "testcpp", KERNELS, functions=FUNCTIONS, elementwise=FORMULAS, dtypes={"python_division": ["int64", "int32", "float64"], "guarded": ["int64"]},
        extra_cflags=["-Wall", "-Wextra", "-Werror", "-O1"],
    )  # fmt: skip


# ---- kernels in C++


def test_a_function_is_an_operator(kernels):
    x = candelabra.arange(6.0).reshape(2, 3)
    assert candelabra.ops.testcpp.scale is kernels.scale
    assert kernels.scale.__doc__ == "Scale a tensor."
    np.testing.assert_array_equal(kernels.scale(x.t()), 2 * x.t().numpy())
    np.testing.assert_array_equal(kernels.scale(x.double(), factor=3).numpy(), 3 * x.double().numpy())
    assert kernels.scale(candelabra.empty(0, 3)).shape == (0, 3)
    with pytest.raises(TypeError, match="argument 'factor' .* must be float"):
        kernels.scale(x, "2")
    with pytest.raises(RuntimeError, match=r"testcpp::scale\(\): factor must not be negative, but got -2"):
        kernels.scale(x, -2.0)
    with pytest.raises(NotImplementedError, match="\"testcpp::scale\" not implemented for 'Long' on device cpu"):
        kernels.scale(x.long())


def test_templates_and_shapes(kernels):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 4)).astype("f4"), rng.normal(size=(5, 4)).astype("f4")
    np.testing.assert_allclose(
        kernels.product(candelabra.from_numpy(a), candelabra.from_numpy(b).t()).numpy(), a @ b.T, rtol=1e-5, atol=1e-6
    )
    whole = candelabra.arange(4).reshape(2, 2)
    assert kernels.product(whole, whole).tolist() == [[2, 3], [6, 11]]
    with pytest.raises(NotImplementedError, match="not implemented for 'Double'"):
        kernels.product(whole.double(), whole.double())
    with pytest.raises(
        RuntimeError,
        match=r"expected argument 'b' to have size m = 2, as in 'a' in dimension 0, but got sizes \[3, 2\]",
    ):
        kernels.product(whole, candelabra.ones(3, 2))
    with pytest.raises(RuntimeError, match=r"expected argument 'b' to have 2 dimension\(s\), but got sizes \[2\]"):
        kernels.product(whole, candelabra.ones(2))
    with pytest.raises(TypeError, match="expected argument 'b' to have dtype int64, but got float32"):
        kernels.product(whole, whole.float())


def everything(kernels, text="abc", **changed):
    given = {
        "n": 3,
        "flag": True,
        "maybe": None,
        "sizes": [1, 2],
        "weights": (0.5,),
        "parts": [],
        "missing": None,
        "number": 2.5,
    } | changed
    x = given.pop("x", candelabra.arange(24.0, dtype=candelabra.float64)[::2])
    return kernels.everything(x, text=text, **given)


def test_parameters_of_every_kind(kernels):
    assert everything(kernels).tolist() == [0, 2, 3, 1, -1, 3, 2, 0.5, 0, 0, 2.5, 0]
    x = candelabra.ones(12, dtype=candelabra.float64)
    assert everything(kernels, x=x, maybe=4, missing=x, parts=[x, x], z=2j).tolist() == [
        1,
        1,
        3,
        1,
        4,
        3,
        2,
        0.5,
        2,
        1,
        2.5,
        2,
    ]
    with pytest.raises(TypeError, match="expected the result to have dtype float64, but got float32"):
        everything(kernels, x=x.float())


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("value", ValueError, "of the value"), ("index", IndexError, "of the index"), ("memory", candelabra.OutOfMemoryError, "out of memory"),
        ("type", TypeError, "of the type"), ("runtime", RuntimeError, "of the run"), ("other", RuntimeError, "no std::exception"),
    ],
)  # fmt: skip
def test_exceptions_become_pythons(kernels, text, kind, message):
    with pytest.raises(kind, match=rf"testcpp::everything\(\): .*{message}"):
        everything(kernels, text)


@pytest.mark.parametrize(
    ("number", "kind"),
    [(1, RuntimeError), (3, ValueError), (4, IndexError), (5, TypeError), (6, NotImplementedError), (99, RuntimeError)],
)
def test_bad_return_codes_become_exceptions(kernels, number, kind):
    with pytest.raises(kind, match="testcpp::status"):
        kernels.status(candelabra.ones(1), number)
    assert kernels.status(candelabra.ones(1), 0).shape == (1,)


def test_results_whose_size_the_kernel_finds_out(kernels):
    found = kernels.positive(candelabra.tensor([1.0, -1.0, 2.0, 3.0, 0.0]))
    assert (found.dtype, found.tolist()) == (candelabra.int64, [0, 2, 3])
    assert kernels.positive(candelabra.empty(0)).tolist() == []


def test_arguments_that_are_changed(kernels):
    x = candelabra.ones(1)
    before = x._version
    assert kernels.halve(x, candelabra.tensor(0.5)) is None
    assert (x.item(), x._version) == (0.5, before + 1)
    with pytest.raises(RuntimeError, match="argument 'x' is not contiguous, and the function writes to it"):
        kernels.halve(candelabra.ones(4)[::2], candelabra.tensor(0.5))


def test_several_results_and_shapes_from_functions(kernels):
    x = candelabra.tensor([1.0, 4.0, 2.0], dtype=candelabra.float64)
    sum_and_max = kernels.sum_and_max(x)
    assert (sum_and_max.sum.item(), sum_and_max.max.item()) == (7.0, 4.0)
    with pytest.raises(RuntimeError, match="expected argument 'x' to have 1 dimension"):
        kernels.sum_and_max(x.reshape(1, 3))
    assert kernels.fill(10).tolist() == list(range(10))
    with pytest.raises(IndexError, match="on a thread"):
        kernels.fill(7)
    with pytest.raises(TypeError, match="must return a tuple of sizes"):
        kernels.fill(-1)


# ---- formulas


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_formulas_of_every_dtype(kernels, dtype):
    dtype = getattr(candelabra, dtype)
    x, y = candelabra.linspace(-2, 2, 41).to(dtype), candelabra.linspace(0, 3, 7).to(dtype)
    got = kernels.damped(x[:, None], y, rate=0.5, shift=1)
    assert got.dtype is dtype
    a, b = x.double().numpy()[:, None], y.double().numpy()
    expected = np.where((a > 0) & (b != 2), a * np.exp(-0.5 * np.abs(b)) + 1, 0)
    np.testing.assert_allclose(got.double().numpy(), expected, rtol=2 * candelabra.finfo(dtype).eps, atol=1e-7)


def test_formulas_of_any_strides(kernels):
    rng = np.random.default_rng(1)
    whole = candelabra.from_numpy(rng.normal(size=(6, 700, 8)).astype("f4"))
    row = candelabra.from_numpy(rng.normal(size=(8,)).astype("f4"))
    for x in (whole, whole[::2, ::3], whole.transpose(0, 1), whole[:1].expand(6, 700, 8), whole[:0], whole[0, 0, 0]):
        a, b = x.numpy(), row.numpy()
        np.testing.assert_allclose(
            kernels.damped(x, row).numpy(), np.where(a > 0, a * np.exp(-np.abs(b)), 0), rtol=1e-5
        )
    out = candelabra.empty(6, 700, 8).transpose(0, 1).contiguous().transpose(0, 1)
    assert kernels.damped(whole, row, out=out) is out
    np.testing.assert_array_equal(out.numpy(), kernels.damped(whole, row).numpy())
    again = whole.clone()
    kernels.damped(again, row, out=again)
    np.testing.assert_array_equal(again.numpy(), out.numpy())


def test_formulas_do_not_depend_on_threads(kernels):
    x = candelabra.linspace(-3, 3, 300_001)
    before = candelabra.get_num_threads()
    try:
        candelabra.set_num_threads(1)
        one = kernels.damped(x, x)
        candelabra.set_num_threads(3)
        three = kernels.damped(x, x)
    finally:
        candelabra.set_num_threads(before)
    assert candelabra.equal(one, three)


def test_formulas_promote(kernels):
    x = candelabra.tensor([1, 2])
    assert kernels.damped(x, x).dtype is candelabra.float32
    assert kernels.damped(x, 1.0).dtype is candelabra.float32
    assert kernels.damped(x.half(), x.double()).dtype is candelabra.float64
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        kernels.damped(candelabra.tensor([1j]), 1)
    with pytest.raises(RuntimeError, match="can't be cast"):
        kernels.damped(x.float(), x, out=candelabra.empty(2, dtype=candelabra.int64))


def test_formulas_of_whole_numbers(kernels):
    a, b = np.arange(-10, 10)[:, None], np.array([-3, -1, 2, 5])
    expected = a // b + a % b - a**2 + np.minimum(a, b)
    for dtype in (candelabra.int64, candelabra.int32, candelabra.float64):
        got = kernels.python_division(candelabra.from_numpy(a).to(dtype), candelabra.from_numpy(b).to(dtype))
        assert got.dtype is dtype
        np.testing.assert_array_equal(got.numpy(), expected)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        kernels.python_division(candelabra.tensor([1]), 0)
    # The branch that is not taken is not evaluated.
    assert kernels.guarded(candelabra.tensor([7, 7]), candelabra.tensor([0, 2])).tolist() == [-1, 3]


def test_constants_and_functions(kernels):
    x = np.array([-3.0, -0.5, 0.5, np.nan])
    expected = np.where(x < 0, np.pi, np.e) + 1e-3 * np.clip(x, -1, 1)
    np.testing.assert_allclose(kernels.constants(candelabra.from_numpy(x)).numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("formula", "match"),
    [
        ("x +", "it is no expression"), ("y", "neither an argument nor a constant named 'y'"), ("gamma(x)", "there is no function gamma of 1"),
        ("exp(x, x)", "there is no function exp of 2"), ("x.real", "is none of the numbers"), ("x in (1, 2)", "is no comparison"),
        ("'a'", "is none of the numbers"), ("__import__('os')", "there is no function __import__"), ("exp(-x) or (lambda: x)()", "is none"),
    ],
)  # fmt: skip
def test_what_is_no_formula(formula, match):
    with pytest.raises(ValueError, match=match):
        cpp_extension.load_inline("testcpp_bad", elementwise={"f(Tensor x)": formula})


@pytest.mark.parametrize(
    "schema", ["f(float x)", "f(Tensor[] x)", "f(Tensor x, str how)", "f(Tensor x) -> (Tensor, Tensor)"]
)
def test_schemas_that_have_no_formula(schema):
    with pytest.raises(ValueError, match="an operator with a formula takes tensors and numbers"):
        cpp_extension.load_inline("testcpp_bad", elementwise={schema: "x"})


# ---- kernels in C


C_SOURCE = r"""
int twice(cb_tensor* out, const cb_tensor* x, double by, const int64_t* sizes, int32_t count) {
  if (x->dtype != CB_FLOAT32) return CB_NOT_IMPLEMENTED;
  const float* from = x->data;
  float* to = out->data;
  for (int64_t i = 0; i < x->numel; ++i) to[i] = (float)by * from[i * x->strides[0]] + (float)(count ? sizes[0] : 0);
  return CB_OK;
}

int32_t fail_with_words(cb_call* call) {
  snprintf(call->error, call->error_capacity, "no luck with \"%s\"", call->operator_name);
  return CB_VALUE_ERROR;
}
"""


def test_functions_in_c():
    made = quick(
        "testc",
        C_SOURCE,
        ["twice(Tensor x, float by=2.0, int[] sizes=[]) -> Tensor", "fail_with_words(Tensor x) -> Tensor"],
    )
    assert made.twice(candelabra.arange(6.0)[::2], sizes=[1]).tolist() == [1.0, 5.0, 9.0]
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        made.twice(candelabra.arange(3))
    with pytest.raises(ValueError, match='no luck with "testc::fail_with_words"'):
        made.fail_with_words(candelabra.ones(1))
    with pytest.raises(ValueError, match="a function in C takes no float\\? "):
        quick("testc_bad", "int f(void);", ["f(Tensor x, float? by) -> Tensor"])


# ---- errors


def test_compile_errors_have_the_compilers_words():
    with pytest.raises(
        cpp_extension.CompilationError, match=r"(?s)Error building extension 'testbad: main.cpp'.*main.cpp:2:.*nonsense"
    ) as caught:
        cpp_extension.load_inline(
            "testbad", "void f(Tensor out, Tensor x) {\n  nonsense\n}", functions=["f(Tensor x) -> Tensor"]
        )
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(cpp_extension.CompilationError, match="no_such_function"):
        quick(
            "testlink", "int no_such_function(void);\nint f(cb_tensor* o, const cb_tensor* x) { return no_such_function(); }",
            ["f(Tensor x) -> Tensor"], extra_ldflags=["-Wl,-z,defs"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "kind", "match"),
    [
        ({"functions": ["f"]}, ValueError, "expected a schema such as"),
        ({"functions": ["g(Tensor x) -> Tensor"]}, ValueError, "no source has a function g"),
        ({"functions": []}, ValueError, "neither is given"),
        ({"functions": ["f(Tensor x) -> Tensor"] * 2}, ValueError, "f is there twice"),
        ({"functions": ["f(Tensor x) -> Tensor"], "shapes": {"g": "like x"}}, ValueError, "names 'g'"),
        ({"functions": {"f(Tensor x) -> Tensor": {"size": 3}}}, ValueError, "'size' is no option"),
        ({"functions": ["f(Tensor x) -> Tensor"], "extra_cflags": "-O3"}, TypeError, "is a list of flags"),
        ({"functions": ["f(Tensor x) -> Tensor"], "cuda_sources": "x"}, NotImplementedError, "C and C\\+\\+ only"),
        ({"functions": ["f(Tensor x) -> Tensor"], "with_cuda": True}, NotImplementedError, "C and C\\+\\+ only"),
        ({"functions": ["f(Tensor x) -> Tensor"], "build_directory": "/nowhere/at/all"}, ValueError, "does not exist"),
    ],
)
def test_what_load_inline_refuses(options, kind, match):
    with pytest.raises(kind, match=match):
        cpp_extension.load_inline("testbad", "void f(Tensor out, Tensor x) {}", **options)


def test_more_that_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected a name for the extension"):
        cpp_extension.load_inline("a-b", "", functions=["f() -> ()"])
    with pytest.raises(RuntimeError, match="includes torch/extension.h, which is not here"):
        cpp_extension.load_inline("testbad", "#include <torch/extension.h>\n", functions=["f(Tensor x) -> Tensor"])
    with pytest.raises(ValueError, match="nothing says which shape the result has"):
        quick("testshape", "int f(cb_tensor* o, int64_t n) { return 0; }", ["f(int n) -> Tensor"])
    with pytest.raises(NotImplementedError, match="CUDAExtension.*docs/backends.md"):
        cpp_extension.CUDAExtension("x", ["x.cu"])
    (tmp_path / "x.cu").write_text("")
    (tmp_path / "x.f90").write_text("")
    for ending, kind in (("cu", NotImplementedError), ("f90", ValueError)):
        with pytest.raises(kind, match="only, for the CPU|says its language"):
            cpp_extension.load("testbad", tmp_path / f"x.{ending}", functions=["f(Tensor x) -> Tensor"])
    with pytest.raises(ValueError, match="functions= has the schemas"):
        cpp_extension.load("testbad", [])
    with pytest.raises(NotImplementedError, match="programs are not built"):
        cpp_extension.load("testbad", [], is_standalone=True, functions=["f() -> ()"])


def test_a_function_that_does_not_fit_its_schema_says_so():
    made = cpp_extension.load_inline(
        "testfit", "void f(Tensor out, Tensor x) {}\nvoid g(Tensor out, double x) {}", extra_cflags=["-O0"],
        functions=["f(Tensor x, int n) -> Tensor", "g(Tensor x) -> Tensor"],
    )  # fmt: skip
    with pytest.raises(TypeError, match=r"takes 2 parameters, but the schema gives 1 result\(s\) and 2 argument"):
        made.f(candelabra.ones(1), 2)
    with pytest.raises(TypeError, match="argument 'x': the function takes a number, which is not what the schema says"):
        made.g(candelabra.ones(1))


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(cpp_extension.CompilationError, match="there is no compiler 'no-such-compiler': install one"):
        quick("testnone", "int f(cb_tensor* o, const cb_tensor* x) { return 0; }", ["f(Tensor x) -> Tensor"])
    assert not cpp_extension.check_compiler_ok_for_platform("no-such-compiler")
    assert cpp_extension.get_compiler_abi_compatibility_and_version("no-such-compiler") == (False, "0.0.0")


# ---- shape rules


def describe(text, schema, *arguments):
    from candelabra.catalogue.schemas import parse

    return shape_rules.ShapeRule("rule", parse(schema), text)(*arguments)


@pytest.mark.parametrize(
    ("rule", "schema", "arguments", "expected"),
    [
        ("(n), (m) -> (n + m - 1)", "f(Tensor x, Tensor y) -> Tensor", ((3,), (4,)), (6,)),
        ("(n), (m) -> (max(n, m) - min(n, m) + 1)", "f(Tensor x, Tensor y) -> Tensor", ((3,), (5,)), (3,)),
        ("(..., n) -> (..., n // 2, 2)", "f(Tensor x) -> Tensor", ((5, 6, 4),), (5, 6, 2, 2)),
        ("(..., n), (..., n) -> (...)", "f(Tensor x, Tensor y) -> Tensor", ((5, 1, 4), (6, 4)), (5, 6)),
        ("(n, 3) -> (n * times)", "f(Tensor x, int times) -> Tensor", ((2, 3), 4), (8,)),
        ("like y", "f(Tensor x, Tensor y) -> Tensor", ((2,), (3, 4)), (3, 4)),
        ("(n), (m) -> (m)", "f(Tensor? x, Tensor y) -> Tensor", (None, (3,)), (3,)),
    ],
)  # fmt: skip
def test_rules_for_shapes(rule, schema, arguments, expected):
    given = [candelabra.empty(one) if isinstance(one, tuple) else one for one in arguments]
    assert tuple(describe(rule, schema, *given).shape) == expected


def test_dtypes_and_errors_of_rules():
    x = candelabra.empty(2, dtype=candelabra.float16)
    made = describe("(n) -> (n): int64, ()", "f(Tensor x) -> (Tensor, Tensor)", x)
    assert [one.dtype for one in made] == [candelabra.int64, candelabra.float16]
    assert describe("data", "f(Tensor x) -> Tensor", x) is candelabra.float16
    with pytest.raises(RuntimeError, match="expected argument 'x' to have size 3 in dimension 0"):
        describe("(3) -> ()", "f(Tensor x) -> Tensor", x)
    with pytest.raises(RuntimeError, match="the size n - 5 of a result would be -3"):
        describe("(n) -> (n - 5)", "f(Tensor x) -> Tensor", x)
    with pytest.raises(RuntimeError, match="leading sizes of argument 'y' do not broadcast"):
        describe("(...), (...) -> (...)", "f(Tensor x, Tensor y) -> Tensor", x, candelabra.empty(3))
    for text, match in [
        ("(n) -> (m)", "names 'm', which is neither"), ("(n), (m) -> (n)", "2 group.s. of sizes for arguments"), ("(n) -> (n), (n)", "describes 2"),
        ("(n + 1) -> (n)", "is a name or a number"), ("(n) -> (n / 2)", "is no sum"), ("(n) -> (open(n))", "is no sum"), ("(n) -> n", "in parentheses"),
        ("like z", "no tensor argument 'z'"), ("(n) -> (n): float8", "no dtype 'float8'"), ("(n) -> (n.real)", "is no sum"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=match):
            describe(text, "f(Tensor x) -> Tensor", x)
