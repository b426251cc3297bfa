// Element types on host and device (candelabra/dtypes.hpp), and Python numbers given for tensors.
#pragma once

// Products and quotients of complex numbers use the plain formulas, as on the CPU: infinite parts
// are not recovered from NaN.
#define LIBCUDACXX_ENABLE_SIMPLIFIED_COMPLEX_MULTIPLICATION
#include <bit>
#include <cstdint>
#include <cuda/std/complex>
#include <type_traits>
#include <utility>

#include "candelabra/dtypes.hpp"
#include "kernels.hpp"

namespace candelabra::kernel {
inline namespace CANDELABRA_ISA_NAMESPACE {

template <typename T>
struct is_complex_type<::cuda::std::complex<T>> : std::true_type {};
template <typename T>
struct real_type<::cuda::std::complex<T>> {
  using type = T;
};
template <>
struct dtype_of<::cuda::std::complex<float>> : dtype_constant<CB_COMPLEX64> {};
template <>
struct dtype_of<::cuda::std::complex<double>> : dtype_constant<CB_COMPLEX128> {};

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::kernel

namespace candelabra::cuda {

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
using kernel::is_floating_dtype;
using kernel::is_floating_v;
using kernel::is_half_dtype;
using kernel::is_half_v;
using kernel::is_integer_dtype;
using kernel::is_integer_v;
using kernel::itemsize;
using kernel::memory_t;
using kernel::mutable_data;
using kernel::real_t;
using kernel::real_type;
using kernel::RealTypes;
using kernel::scalar_to;
using kernel::truncated;
using kernel::Types;

using complex64 = ::cuda::std::complex<float>;
using complex128 = ::cuda::std::complex<double>;
using Lists = kernel::TypeLists<complex64, complex128>;
using ComplexTypes = Lists::ComplexTypes;
using NumberTypes = Lists::NumberTypes;
using AllTypes = Lists::AllTypes;

// The accumulator type of sums of T: integers wrap, float32 uses float64, half precision float32.
template <typename T>
struct sum_type {
  using type = std::conditional_t<is_integer_v<T>, uint64_t, std::conditional_t<is_half_v<T>, float, double>>;
};
template <typename T>
struct sum_type<::cuda::std::complex<T>> {
  using type = complex128;
};

// Conversions between the type in memory and the type of the computation.
template <typename T>
CANDELABRA_HOST_DEVICE inline compute_t<T> loaded(memory_t<T> raw) {
  if constexpr (std::is_same_v<T, bool>)
    return raw != 0;
  else
    return static_cast<compute_t<T>>(raw);
}
template <typename T>
CANDELABRA_HOST_DEVICE inline memory_t<T> stored(compute_t<T> value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return static_cast<memory_t<T>>(value);
}

// For kernels that only copy elements: calls f.operator()<U>() with an unsigned type of the
// element's size (uint8_t, uint16_t, uint32_t, uint64_t, or Bits128).
struct alignas(16) Bits128 {
  uint64_t low, high;
  friend CANDELABRA_HOST_DEVICE bool operator==(const Bits128& a, const Bits128& b) {
    return a.low == b.low && a.high == b.high;
  }
};
template <typename F>
void dispatch_size(int64_t bytes, F&& f) {
  kernel::dispatch_bytes<Bits128>(bytes, std::forward<F>(f));
}

// The value of a Python number given for a tensor (CB_TENSOR_NUMBER, in host memory) as C, the type
// of the computation.
template <typename C>
C number_of(const cb_tensor& tensor) {
  if constexpr (std::is_same_v<C, bool>) {
    if (tensor.dtype == CB_BOOL) return *static_cast<const uint8_t*>(tensor.data) != 0;
  } else if constexpr (std::is_same_v<C, float>) {
    if (tensor.dtype == CB_FLOAT16) return *static_cast<const Half*>(tensor.data);
    if (tensor.dtype == CB_BFLOAT16) return *static_cast<const BFloat16*>(tensor.data);
    if (tensor.dtype == CB_FLOAT32) return *static_cast<const float*>(tensor.data);
  } else {
    if (itemsize(tensor.dtype) == static_cast<int64_t>(sizeof(C))) return *static_cast<const C*>(tensor.data);
  }
  throw failure(CB_RUNTIME_ERROR, "a number of another dtype (%d) stands for a tensor", tensor.dtype);
}
inline bool is_number(const cb_tensor& tensor) {
  return (tensor.flags & CB_TENSOR_NUMBER) != 0;
}

}  // namespace candelabra::cuda
