"""The C++ headers that kernels are written with: a program of nobody's backend uses them, for a plain processor."""

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

#include "candelabra/arithmetic.hpp"
#include "candelabra/dtypes.hpp"
#include "candelabra/geometry.hpp"
#include "candelabra/kernel.hpp"
#include "candelabra/loss.hpp"
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
  dispatch<Lists::AllTypes>(call.output().dtype, [&]<typename T>() {
    const T value = scalar_to<T>(call.scalar(0));
    T* to = data<T>(call.output());
    for (int64_t i = 0; i < call.output().numel; ++i) to[i] = value;
  });
}
void broken(Call&) {
  throw failure(CB_VALUE_ERROR, "a %s of %d", "value", 7);
}

int main() {
  // Half precisions: all finite values there and back, ties to even.
  for (uint32_t word = 0; word < 0x10000u; ++word) {
    Half half{};
    half.bits = static_cast<uint16_t>(word);
    BFloat16 brain{};
    brain.bits = static_cast<uint16_t>(word);
    if (const float value = half; value == value) EXPECT(Half(value).bits == word);
    if (const float value = brain; value == value) EXPECT(BFloat16(value).bits == word);
  }
  EXPECT(Half(1.0f + 0x1p-11f).bits == 0x3c00 && Half(1.0f + 0x1.8p-10f).bits == 0x3c02 && Half(65520.0f).bits == 0x7c00);
  volatile double small = -2.9, huge = 1e300, half_way = 0x1p63;  // not known to the compiler, which has other ideas of overflow
  EXPECT(truncated<int32_t>(+small) == -2 && truncated<int64_t>(+huge) == INT64_MIN);
  EXPECT(truncated<uint64_t>(+half_way) == uint64_t{1} << 63);

  // (3, 4, 5) without gaps is one dimension; transposed beside it, it is three of which the first operand's innermost is first.
  const int64_t sizes[] = {3, 4, 5}, dense[] = {20, 5, 1}, turned[] = {1, 3, 12}, row[] = {0, 0, 1};
  cb_tensor a{};
  a.ndim = 3;
  a.numel = 60;
  a.sizes = sizes;
  a.strides = dense;
  cb_tensor b = a, c = a;
  b.strides = turned;
  c.strides = row;
  EXPECT((geometry<1>({&a}).contiguous() && geometry<1>({&a}).sizes[0] == 60));
  EXPECT((geometry<2>({&a, &b}).ndim == 3 && geometry<2>({&a, &b}).strides[0][0] == 1));
  const auto rows = geometry<2>({&a, &c});
  EXPECT(rows.ndim == 2 && rows.sizes[0] == 5 && rows.sizes[1] == 12 && rows.strides[1][1] == 0);
  EXPECT((geometry<1>({&b}, Order::RowMajor).ndim == 3 && is_contiguous(a) && !is_contiguous(b) && same_sizes(a, b)));

  // A table of kernels, and what becomes of an exception.
  kernel::KernelTable<Call, Guarded> table;
  table.add<fill>("fill");
  table.add<broken>("broken");
  EXPECT(table.entries().size() == 2 && std::strcmp(table.entries()[0].operator_name, "fill") == 0);
  char message[64] = {};
  float values[60] = {};
  a.data = values;
  a.dtype = CB_FLOAT32;
  cb_scalar number{};
  number.kind = CB_SCALAR_FLOAT;
  number.re = 2.5;
  cb_value argument{};
  argument.kind = CB_SCALAR;
  argument.as.scalar = &number;
  cb_call call{};
  call.operator_name = "fill";
  call.outputs = &a;
  call.output_count = call.argument_count = 1;
  call.arguments = &argument;
  call.error = message;
  call.error_capacity = sizeof message;
  EXPECT(Guarded<fill>::run(&call) == CB_OK && values[59] == 2.5f);
  EXPECT(Guarded<broken>::run(&call) == CB_VALUE_ERROR && std::strcmp(message, "a value of 7") == 0);
  a.dtype = CB_DTYPE_COUNT;
  EXPECT(Guarded<fill>::run(&call) == CB_NOT_IMPLEMENTED);

  using namespace candelabra::formulas;
  EXPECT((divide_whole<Whole::Floor>(-7, 2) == -4 && divide_whole<Whole::Trunc>(-7, 2) == -3 && divide_whole<Whole::Remainder>(-7, 2) == 1));
  EXPECT((divide_whole<Whole::Fmod>(-7, 2) == -1 && divide_whole<Whole::Floor, int8_t>(-128, -1) == -128));
  EXPECT(power_whole(3, 5) == 243 && power_whole(-1, -3) == -1 && RightShift{}(-8, 70) == -1 && LeftShift{}(1, 40) == 0);
  EXPECT(Maximum{}(1.0, 2.0) == 2.0 && Heaviside{}(0.0, 0.5) == 0.5 && SquaredError{}(3.0f, 1.0f) == 4.0f);
  EXPECT(HalfNextAfter<Half>{}(0x3c00, 0x4000) == 0x3c01);
  return 0;
}
"""


def test_headers_stand_alone(tmp_path):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    folders = [Path(folder) for folder in candelabra.__path__]
    include = next(
        path for folder in folders for path in (folder / "include", folder.parents[1] / "include") if (path / "candelabra").is_dir()
    )
    command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{include}", str(source), "-o", str(program)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
