// C++ element types (candelabra/dtypes.hpp), and conversions of float16 and bfloat16 arrays.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "candelabra/dtypes.hpp"
#include "kernels.hpp"
#include "simd/half_conversions.hpp"

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

namespace candelabra::cpu {

using kernel::BFloat16;
using kernel::BoolType;
using kernel::compute_t;
using kernel::data;
using kernel::dispatch;
using kernel::dispatch_among;
using kernel::dtype_of;
using kernel::dtype_v;
using kernel::FloatTypes;
using kernel::FullFloatTypes;
using kernel::Half;
using kernel::HalfTypes;
using kernel::IntegerTypes;
using kernel::is_complex_dtype;
using kernel::is_complex_v;
using kernel::is_float8_dtype;
using kernel::is_floating_dtype;
using kernel::is_floating_v;
using kernel::is_half_dtype;
using kernel::is_half_v;
using kernel::is_integer_dtype;
using kernel::is_integer_v;
using kernel::itemsize;
using kernel::mutable_data;
using kernel::real_t;
using kernel::real_type;
using kernel::RealTypes;
using kernel::scalar_to;
using kernel::truncated;
using kernel::Types;

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;
using Lists = kernel::TypeLists<complex64, complex128>;
using ComplexTypes = Lists::ComplexTypes;
using NumberTypes = Lists::NumberTypes;
using AllTypes = Lists::AllTypes;

// One namespace per instruction set, so that the linker does not merge inline functions compiled
// for different ones.
inline namespace CANDELABRA_ISA_NAMESPACE {

// For kernels that only move elements: calls f.operator()<U>() with the unsigned type of the
// element's size (uint8_t, uint16_t, uint32_t, uint64_t, or Bits128).
struct Bits128 {
  uint64_t low, high;
  friend bool operator==(const Bits128&, const Bits128&) = default;
};
template <typename F>
void dispatch_size(int64_t bytes, F&& f) {
  kernel::dispatch_bytes<Bits128>(bytes, std::forward<F>(f));
}

}  // namespace CANDELABRA_ISA_NAMESPACE

}  // namespace candelabra::cpu
