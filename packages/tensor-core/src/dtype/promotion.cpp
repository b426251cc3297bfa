// Type promotion with PyTorch's rules.
#include <array>

#include "dtype/dtype.hpp"
#include "python/errors.hpp"

namespace candelabra {

namespace {

enum Category { boolean, integer, floating, complex_number };

constexpr Category category(int dtype) {
  if (dtype == CB_COMPLEX32) return complex_number;
  if (dtype >= CB_FLOAT8_E4M3FN) return floating;
  if (dtype >= CB_UINT16) return integer;
  if (dtype >= CB_COMPLEX64) return complex_number;
  if (dtype >= CB_FLOAT16) return floating;
  return dtype == CB_BOOL ? boolean : integer;
}

constexpr bool is_signed_integer(int dtype) {
  return dtype >= CB_INT8 && dtype <= CB_INT64;
}

// log2 of the size in bytes of an integer dtype.
constexpr int width(int dtype) {
  if (is_signed_integer(dtype)) return dtype - CB_INT8;
  return dtype == CB_UINT8 ? 0 : dtype - CB_UINT16 + 1;
}

// Marks pairs without a common dtype.
constexpr int none = 255;

constexpr int promoted_integers(int a, int b) {
  if (is_signed_integer(a) == is_signed_integer(b)) return width(a) > width(b) ? a : b;
  const int with_sign = is_signed_integer(a) ? a : b, without = is_signed_integer(a) ? b : a;
  if (width(with_sign) > width(without)) return with_sign;
  return without == CB_UINT64 ? none : CB_INT8 + width(without) + 1;
}

// complex32 holds the values of float16 and, as in PyTorch, of bfloat16 only as complex64.
constexpr int promoted_complex32(int other) {
  if (other == CB_FLOAT64) return CB_COMPLEX128;
  return other == CB_FLOAT32 || other == CB_BFLOAT16 ? CB_COMPLEX64
         : category(other) == complex_number         ? other
                                                     : CB_COMPLEX32;
}

constexpr int promote_dtypes(int a, int b) {
  if (a == b) return a;
  if (is_float8(Dtype(a)) || is_float8(Dtype(b))) return none;
  if (a == CB_COMPLEX32) return promoted_complex32(b);
  if (b == CB_COMPLEX32) return promoted_complex32(a);
  if (category(a) > category(b)) return promote_dtypes(b, a);
  if (category(a) == integer && category(b) == integer) return promoted_integers(a, b);
  if (category(a) == category(b) && a > b) return promote_dtypes(b, a);
  if (category(b) == complex_number) return a == CB_FLOAT64 ? CB_COMPLEX128 : b;
  if (category(b) != category(a)) return b;
  // neither represents all values of the other
  if (a == CB_FLOAT16 && b == CB_BFLOAT16) return CB_FLOAT32;
  return b;
}

using Table = std::array<std::array<uint8_t, dtype_count>, dtype_count>;

constexpr Table make_table() {
  Table table{};
  for (int a = 0; a < dtype_count; ++a) {
    for (int b = 0; b < dtype_count; ++b) table[a][b] = static_cast<uint8_t>(promote_dtypes(a, b));
  }
  return table;
}

constexpr Table promotion_table = make_table();

int promotion_of(int a, int b) {
  const int result = promotion_table[a][b];
  check(result != none || !(is_float8(Dtype(a)) || is_float8(Dtype(b))), PyExc_RuntimeError,
        "Promotion for Float8 Types is not supported, attempted to promote ", dtype_infos[a].type_name, " and ",
        dtype_infos[b].type_name, ": convert one of them with to()");
  check(result != none, PyExc_RuntimeError,
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", dtype_infos[a].type_name,
        " and ", dtype_infos[b].type_name, ": no dtype holds the values of both; convert one of them with to()");
  return result;
}

// Promotes two dtypes, either of which may be missing (-1).
int join(int a, int b) {
  if (a < 0) return b;
  if (b < 0) return a;
  return promotion_of(a, b);
}

// Combines dtypes of different priority. `lower` counts only if its category is higher, and then
// takes the precision of `higher`.
int combine(int higher, int lower) {
  if (higher < 0) return lower;
  if (lower < 0) return higher;
  if (category(higher) == complex_number) return higher;
  if (category(higher) == floating) {
    return category(lower) == complex_number ? static_cast<int>(complex_of(static_cast<Dtype>(higher))) : higher;
  }
  if (higher == CB_BOOL || category(lower) >= floating) return promotion_of(higher, lower);
  return higher;
}

}  // namespace

Dtype promote(Dtype a, Dtype b) {
  return static_cast<Dtype>(promotion_of(static_cast<int>(a), static_cast<int>(b)));
}

bool can_cast(Dtype from, Dtype to) {
  if (is_complex(from)) return is_complex(to);
  if (is_floating(from)) return !is_integral(to);
  return from == Dtype::Bool || to != Dtype::Bool;
}

Dtype real_of(Dtype dtype) {
  if (dtype == Dtype::Complex32) return Dtype::Float16;
  if (dtype == Dtype::Complex64) return Dtype::Float32;
  if (dtype == Dtype::Complex128) return Dtype::Float64;
  return dtype;
}

Dtype complex_of(Dtype dtype) {
  check(!is_float8(dtype), PyExc_RuntimeError, "Unknown Complex ScalarType for ", info(dtype).type_name);
  if (dtype == Dtype::Float16 || dtype == Dtype::Complex32) return Dtype::Complex32;
  return dtype == Dtype::Float64 || dtype == Dtype::Complex128 ? Dtype::Complex128 : Dtype::Complex64;
}

void Promotion::add_tensor(Dtype dtype, bool zero_dimensional) {
  int& part = zero_dimensional ? zero_dimensional_ : dimensioned_;
  part = join(part, static_cast<int>(dtype));
}

void Promotion::add_number(int32_t scalar_kind) {
  Dtype dtype = Dtype::Bool;
  if (scalar_kind == CB_SCALAR_INT) dtype = Dtype::Int64;
  if (scalar_kind == CB_SCALAR_FLOAT) dtype = default_dtype();
  if (scalar_kind == CB_SCALAR_COMPLEX) dtype = complex_of(default_dtype());
  number_ = join(number_, static_cast<int>(dtype));
}

Dtype Promotion::result() const {
  const int result = combine(dimensioned_, combine(zero_dimensional_, number_));
  return result < 0 ? default_dtype() : static_cast<Dtype>(result);
}

}  // namespace candelabra
