"""The headers for kernels: programs that belong to no backend compile and run with nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import candelabra

PROGRAM = r"""
#define CANDELABRA_KERNEL_DEFINITIONS
#include <complex>
#include <cstring>

#include "candelabra/arguments/creation.hpp"
#include "candelabra/dtypes.hpp"
#include "candelabra/formulas/activation.hpp"
#include "candelabra/formulas/arithmetic.hpp"
#include "candelabra/formulas/compare.hpp"
#include "candelabra/formulas/loss.hpp"
#include "candelabra/formulas/optimizer.hpp"
#include "candelabra/formulas/parts.hpp"
#include "candelabra/formulas/recurrent.hpp"
#include "candelabra/formulas/unary.hpp"
#include "candelabra/geometry.hpp"
#include "candelabra/kernel.hpp"
#include "candelabra/random.hpp"

using namespace candelabra;
using namespace candelabra::kernel;

namespace candelabra::kernel {
inline namespace CANDELABRA_ISA_NAMESPACE {
template <typename T>
struct is_complex_type<std::complex<T>> : std::true_type {};
template <typename T>
struct real_type<std::complex<T>> {
  using type = T;
};
template <>
struct dtype_of<std::complex<float>> : dtype_constant<CB_COMPLEX64> {};
template <>
struct dtype_of<std::complex<double>> : dtype_constant<CB_COMPLEX128> {};
}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::kernel

using Lists = TypeLists<std::complex<float>, std::complex<double>>;

#define EXPECT(condition) if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1

void fill(Call& call) {
  const arguments::Fill args(call);
  dispatch<Lists::AllTypes>(call.output().dtype, [&]<typename T>() {
    const T value = scalar_to<T>(*args.value);
    T* to = data<T>(call.output());
    for (int64_t i = 0; i < call.output().numel; ++i) to[i] = value;
  });
}
void broken(Call&) {
  throw failure(CB_VALUE_ERROR, "a %s of %d", "value", 7);
}

int main() {
  // Half precisions: all finite values survive the round trip; ties go to even.
  for (uint32_t word = 0; word < 0x10000u; ++word) {
    Half half{};
    half.bits = static_cast<uint16_t>(word);
    BFloat16 brain{};
    brain.bits = static_cast<uint16_t>(word);
    if (const float value = half; value == value) EXPECT(Half(value).bits == word);
    if (const float value = brain; value == value) EXPECT(BFloat16(value).bits == word);
  }
  EXPECT(Half(1.0f + 0x1p-11f).bits == 0x3c00 && Half(1.0f + 0x1.8p-10f).bits == 0x3c02 && Half(65520.0f).bits == 0x7c00);
  volatile double small = -2.9, huge = 1e300, half_way = 0x1p63;  // volatile: constant folding treats overflow differently
  EXPECT(truncated<int32_t>(+small) == -2 && truncated<int64_t>(+huge) == INT64_MIN);
  EXPECT(truncated<uint64_t>(+half_way) == uint64_t{1} << 63);

  // A contiguous (3, 4, 5) collapses to one dimension. With a transposed operand it keeps three, ordered by the first operand.
  const int64_t sizes[] = {3, 4, 5}, dense[] = {20, 5, 1}, transposed[] = {1, 3, 12}, row[] = {0, 0, 1};
  cb_tensor a{};
  a.ndim = 3;
  a.numel = 60;
  a.sizes = sizes;
  a.strides = dense;
  cb_tensor b = a, c = a;
  b.strides = transposed;
  c.strides = row;
  EXPECT((geometry<1>({&a}).contiguous() && geometry<1>({&a}).sizes[0] == 60));
  EXPECT((geometry<2>({&a, &b}).ndim == 3 && geometry<2>({&a, &b}).strides[0][0] == 1));
  const auto rows = geometry<2>({&a, &c});
  EXPECT(rows.ndim == 2 && rows.sizes[0] == 5 && rows.sizes[1] == 12 && rows.strides[1][1] == 0);
  EXPECT((geometry<1>({&b}, Order::RowMajor).ndim == 3 && is_contiguous(a) && !is_contiguous(b) && same_sizes(a, b)));

  // A table of kernels; an exception becomes a status and a message.
  kernel::KernelTable<Call, Guarded> table;
  table.add<fill>("fill_");
  table.add<broken>("broken");
  cb_backend backend{};
  table.write_to(backend);
  EXPECT(backend.kernel_count == 2 && backend.kernel_entry_size == sizeof(cb_kernel_entry));
  EXPECT(std::strcmp(backend.kernels[0].operator_name, "fill_") == 0 && backend.kernels[0].flags == 0);
  char message[64] = {};
  float values[60] = {};
  a.data = values;
  a.dtype = CB_FLOAT32;
  cb_scalar number{};
  number.kind = CB_SCALAR_FLOAT;
  number.re = 2.5;
  cb_value values_of_fill[2] = {};
  values_of_fill[0].kind = CB_TENSOR;
  values_of_fill[0].as.tensor = &a;
  values_of_fill[1].kind = CB_SCALAR;
  values_of_fill[1].as.scalar = &number;
  cb_call call{};
  call.operator_name = "fill_";
  call.outputs = &a;
  call.output_count = 1;
  call.arguments = values_of_fill;
  call.argument_count = 2;
  call.error = message;
  call.error_capacity = sizeof message;
  EXPECT(Guarded<fill>::run(&call) == CB_OK && values[59] == 2.5f);
  EXPECT(Guarded<broken>::run(&call) == CB_VALUE_ERROR && std::strcmp(message, "a value of 7") == 0);
  a.dtype = CB_DTYPE_COUNT;
  EXPECT(Guarded<fill>::run(&call) == CB_NOT_IMPLEMENTED);

  using namespace candelabra::formulas;
  EXPECT((divide_integers<DivisionKind::Floor>(-7, 2) == -4 && divide_integers<DivisionKind::Trunc>(-7, 2) == -3 && divide_integers<DivisionKind::Remainder>(-7, 2) == 1));
  EXPECT((divide_integers<DivisionKind::Fmod>(-7, 2) == -1 && divide_integers<DivisionKind::Floor, int8_t>(-128, -1) == -128));
  EXPECT(integer_power(3, 5) == 243 && integer_power(-1, -3) == -1 && RightShift{}(-8, 70) == -1 && LeftShift{}(1, 40) == 0);
  EXPECT(Maximum{}(1.0, 2.0) == 2.0 && Heaviside{}(0.0, 0.5) == 0.5 && SquaredError{}(3.0f, 1.0f) == 4.0f);
  EXPECT(HalfNextAfter<Half>{}(0x3c00, 0x4000) == 0x3c01);
  using Z = std::complex<double>;
  EXPECT(Exp{}(0.0f) == 1.0f && Exp{}(Z(0)) == Z(1) && Sgn{}(Z(0, -2)) == Z(0, -1) && Square{}(Z(0, 1)) == Z(-1));
  EXPECT(Power{}(Z(0, 1), Z(2)) == Z(-1) && Power{}(2, 5) == 32 && Expm1{}(Z(0)) == Z(0) && Sign{}(-3) == -1);
  EXPECT(Clamp{}(5, 0, 3) == 3 && Lerp{}(1.0, 3.0, 0.5) == 2.0 && LogicalXor{}(Z(1), Z(0)) && Abs{}(Z(3, 4)) == 5.0);
  EXPECT(IsInf{}(Z(0, INFINITY)) && !IsFinite{}(NAN) && Polar<Z>{}(2, 0) == Z(2) && logit_of<float>(0.25).high == 0.75f);
  LstmGates<double> gates{0, 0, 0, 0};
  double cell = 2;
  EXPECT(lstm_step(gates, cell) == 0.5 * candelabra::math::tanh(1.0) && cell == 1 && gates.f == 0.5);
  EXPECT((DecayedGradient<float>(0.5, true)(1, 4) == 1 && DecayedGradient<float>(0, false)(1, INFINITY) == 1));
  return 0;
}
"""

ARGUMENTS = r"""
#define CANDELABRA_KERNEL_DEFINITIONS
#include "candelabra/arguments/elementwise.hpp"
#include "candelabra/arguments/joining.hpp"
#include "candelabra/arguments/reduction.hpp"
#include "candelabra/arguments/resampling.hpp"
#include "candelabra/arguments/scan.hpp"
#include "candelabra/arguments/sorting.hpp"
#include "candelabra/positions.hpp"

using namespace candelabra;

static_assert(positions::topk::self == 0 && positions::topk::k == 1 && positions::topk::sorted == 4);
static_assert(positions::bernoulli_in_place::p == 1 && positions::sum::keepdim == 2);

// A position is an int, and an alias of the namespace may stand in a function.
constexpr int last_position() {
  namespace at = positions::add;
  int last = 0;
  for (int i : {at::self, at::other, at::alpha}) last = i;
  return last;
}
static_assert(last_position() == 2);

#define EXPECT(condition) if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1

struct Value : cb_value {
  Value() : cb_value{} {}
  Value(const cb_tensor& tensor) : cb_value{} { kind = CB_TENSOR, as.tensor = &tensor; }
  Value(const cb_scalar& scalar) : cb_value{} { kind = CB_SCALAR, as.scalar = &scalar; }
  Value(int i) : cb_value{} { kind = CB_INT, as.i = i; }
  Value(double f) : cb_value{} { kind = CB_FLOAT, as.f = f; }
  Value(const char* string) : cb_value{} { kind = CB_STRING, as.string = string; }
  template <int Count>
  Value(const cb_tensor* const (&tensors)[Count]) : cb_value{} { kind = CB_TENSORS, count = Count, as.tensors = tensors; }
  template <int Count>
  Value(const int64_t (&ints)[Count]) : cb_value{} { kind = CB_INTS, count = Count, as.ints = ints; }
  template <int Count>
  Value(const double (&floats)[Count]) : cb_value{} { kind = CB_FLOATS, count = Count, as.floats = floats; }
};

// The struct points to what the values point to, not to the values.
template <typename Arguments>
Arguments read(std::initializer_list<Value> given) {
  std::vector<cb_value> values(given.begin(), given.end());
  cb_call raw{};
  raw.arguments = values.data();
  raw.argument_count = static_cast<int32_t>(values.size());
  return Arguments(kernel::Call(&raw));
}

int main() {
  cb_tensor x{}, y{};
  cb_scalar two{};
  two.kind = CB_SCALAR_FLOAT;
  two.re = 2;
  const Value none;

  const auto topk = read<arguments::Topk>({x, 3, -1, 1, 0});
  EXPECT(topk.self == &x && topk.k == 3 && topk.dim == -1 && topk.largest && !topk.sorted);

  // A number in a tensor's place: one of the two is null.
  const auto tensors = read<arguments::Add>({x, y, two});
  EXPECT(tensors.self == &x && !tensors.self_number && tensors.other == &y && !tensors.other_number && tensors.alpha->re == 2);
  const auto number = read<arguments::Add>({x, two, two});
  EXPECT(!number.other && number.other_number == &two);

  // Optional arguments: a null pointer, or std::nullopt.
  const auto clamp = read<arguments::Clamp>({x, none, y});
  EXPECT(!clamp.min && clamp.max == &y);
  const auto nan_to_num = read<arguments::NanToNum>({x, none, 1.5, none});
  EXPECT(!nan_to_num.nan && nan_to_num.posinf == 1.5 && !nan_to_num.neginf);
  const int64_t dims[] = {0, 2};
  const auto sum = read<arguments::Sum>({x, dims, 1, CB_FLOAT64});
  EXPECT(sum.dim && sum.dim->size() == 2 && (*sum.dim)[1] == 2 && sum.keepdim && sum.dtype == CB_FLOAT64);
  const auto sum_of_all = read<arguments::Sum>({x, none, 0, none});
  EXPECT(!sum_of_all.dim && !sum_of_all.keepdim && !sum_of_all.dtype);
  const auto var = read<arguments::Var>({x, none, none, 0});
  EXPECT(!var.correction && !var.keepdim);

  // Lists and strings.
  const cb_tensor* const list[] = {&x, &y};
  const auto cat = read<arguments::Cat>({list, 1});
  EXPECT(cat.tensors.size() == 2 && cat.tensors[1] == &y && cat.dim == 1);
  const double scales[] = {0.5, 2};
  const auto resample = read<arguments::Upsample>({x, dims, scales, "linear", 1, 0});
  EXPECT(resample.output_size.size() == 2 && resample.scales[0] == 0.5 && resample.mode == "linear" && resample.align_corners);
  return 0;
}
"""

C_PROGRAM = r"""
#include <stddef.h>

#include "candelabra/backend.h"
#include "candelabra/positions.h"

/* An operator whose in-place variant has a schema of its own: bernoulli and bernoulli_. */
typedef char in_place_check[CB_BERNOULLI_SELF == 0 && CB_BERNOULLI_IN_PLACE_P == 1 ? 1 : -1];

static int64_t number_of_elements(const cb_call* call) { return call->arguments[CB_TOPK_K].as.i; }

int main(void) {
  cb_value arguments[CB_TOPK_SORTED + 1] = {{CB_NONE, 0, {NULL}, 0}};
  cb_call call = {0};
  arguments[CB_TOPK_K].kind = CB_INT;
  arguments[CB_TOPK_K].as.i = 3;
  call.arguments = arguments;
  call.argument_count = CB_TOPK_SORTED + 1;
  return number_of_elements(&call) == 3 && call.argument_count == 5 ? 0 : 1;
}
"""


def include_folder() -> Path:
    """The folder of the installed headers: those of ``include/`` and those generated from the
    catalogue.
    """
    folders = [Path(folder) / "include" for folder in candelabra.__path__]
    complete = [folder for folder in folders if (folder / "candelabra" / "positions.hpp").is_file()]
    assert complete, f"no headers generated from the catalogue in {folders}: install candelabra-tensor-core anew"
    return complete[0]


@pytest.mark.parametrize(
    ("compiler", "standard", "suffix", "text"),
    [
        ("g++", "c++20", "cpp", PROGRAM),
        ("g++", "c++20", "cpp", ARGUMENTS),
        ("gcc", "c99", "c", C_PROGRAM),
    ],
    ids=["headers", "arguments", "C99"],
)
def test_headers_stand_alone(tmp_path, compiler, standard, suffix, text):
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    source, program = tmp_path / f"program.{suffix}", tmp_path / "program"
    source.write_text(text, encoding="utf-8")
    flags = [f"-std={standard}", "-O1", "-Wall", "-Wextra", "-Werror", *(["-pedantic"] if suffix == "c" else [])]
    command = [compiler, *flags, f"-I{include_folder()}", str(source), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
