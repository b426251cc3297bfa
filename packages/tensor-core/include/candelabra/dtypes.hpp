// C++ element types on the host and on devices, and dispatch from a dtype to a type.
//
// Half and BFloat16 are common to all backends. Each backend chooses its complex types: it
// specializes is_complex_type, real_type and dtype_of for both of them, and instantiates TypeLists
// with them.
#ifndef CANDELABRA_DTYPES_HPP
#define CANDELABRA_DTYPES_HPP

#include <cstdint>
#include <type_traits>
#include <utility>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "candelabra/backend.h"
#include "candelabra/half.hpp"
#include "candelabra/host_device.hpp"
#include "candelabra/kernel.hpp"

namespace candelabra::kernel {

constexpr int64_t itemsize_table[CB_DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 1, 1, 1, 1, 1, 4};
inline int64_t itemsize(int32_t dtype) {
  return itemsize_table[dtype];
}
constexpr bool is_complex_dtype(int32_t dtype) {
  return dtype == CB_COMPLEX64 || dtype == CB_COMPLEX128 || dtype == CB_COMPLEX32;
}
constexpr bool is_floating_dtype(int32_t dtype) {
  return dtype >= CB_FLOAT16 && dtype <= CB_FLOAT64;
}
constexpr bool is_half_dtype(int32_t dtype) {
  return dtype == CB_FLOAT16 || dtype == CB_BFLOAT16;
}
constexpr bool is_float8_dtype(int32_t dtype) {
  return dtype >= CB_FLOAT8_E4M3FN && dtype <= CB_FLOAT8_E8M0FNU;
}
constexpr bool is_integer_dtype(int32_t dtype) {
  return dtype <= CB_INT64 || (dtype >= CB_UINT16 && dtype <= CB_UINT64);
}  // bool included

inline namespace CANDELABRA_ISA_NAMESPACE {

// The upper half of a float32. Rounds to nearest, ties to even; NaN stays NaN.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  CANDELABRA_FORMULA BFloat16(float value) {
#ifdef __CUDA_ARCH__
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    bits = half_bits::bfloat16_from_float(value);
#endif
  }
  CANDELABRA_FORMULA operator float() const { return half_bits::bfloat16_to_float(bits); }
};

// IEEE 754 binary16, converted in hardware where available.
struct Half {
  uint16_t bits;
  Half() = default;
  CANDELABRA_FORMULA Half(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#elif defined(__F16C__)
    bits = static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
#else
    bits = half_bits::float16_from_double(static_cast<double>(value));
#endif
  }
  CANDELABRA_FORMULA operator float() const {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#elif defined(__F16C__)
    return _cvtsh_ss(bits);
#else
    return half_bits::float16_to_float(bits);
#endif
  }
};

template <typename T>
struct is_complex_type : std::false_type {};
template <typename T>
constexpr bool is_complex_v = is_complex_type<T>::value;
template <typename T>
constexpr bool is_half_v = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
constexpr bool is_floating_v = std::is_floating_point_v<T> || is_half_v<T>;
template <typename T>
constexpr bool is_integer_v = std::is_integral_v<T>;  // bool included

// The type to compute in: float for the half precisions.
template <typename T>
using compute_t = std::conditional_t<is_half_v<T>, float, T>;
// The type of an element in memory. A bool may be any byte; 0 is false.
template <typename T>
using memory_t = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
// The component type of a complex type; other types map to themselves.
template <typename T>
struct real_type {
  using type = T;
};
template <typename T>
using real_t = typename real_type<T>::type;

template <int32_t Dtype>
using dtype_constant = std::integral_constant<int32_t, Dtype>;
template <typename T>
struct dtype_of;
template <>
struct dtype_of<bool> : dtype_constant<CB_BOOL> {};
template <>
struct dtype_of<uint8_t> : dtype_constant<CB_UINT8> {};
template <>
struct dtype_of<int8_t> : dtype_constant<CB_INT8> {};
template <>
struct dtype_of<int16_t> : dtype_constant<CB_INT16> {};
template <>
struct dtype_of<int32_t> : dtype_constant<CB_INT32> {};
template <>
struct dtype_of<int64_t> : dtype_constant<CB_INT64> {};
template <>
struct dtype_of<uint16_t> : dtype_constant<CB_UINT16> {};
template <>
struct dtype_of<uint32_t> : dtype_constant<CB_UINT32> {};
template <>
struct dtype_of<uint64_t> : dtype_constant<CB_UINT64> {};
template <>
struct dtype_of<Half> : dtype_constant<CB_FLOAT16> {};
template <>
struct dtype_of<BFloat16> : dtype_constant<CB_BFLOAT16> {};
template <>
struct dtype_of<float> : dtype_constant<CB_FLOAT32> {};
template <>
struct dtype_of<double> : dtype_constant<CB_FLOAT64> {};
template <typename T>
constexpr int32_t dtype_v = dtype_of<T>::value;

template <typename... Ts>
struct Types {};
template <typename... As, typename... Bs>
Types<As..., Bs...> operator+(Types<As...>, Types<Bs...>) {
  return {};
}

using BoolType = Types<bool>;
using IntegerTypes = Types<uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>;
using FullFloatTypes = Types<float, double>;
using HalfTypes = Types<Half, BFloat16>;
using FloatTypes = Types<Half, BFloat16, float, double>;
using RealTypes = decltype(IntegerTypes{} + FloatTypes{});  // no bool

// Type lists that include the backend's complex types.
template <typename Complex64, typename Complex128>
struct TypeLists {
  using ComplexTypes = Types<Complex64, Complex128>;
  using NumberTypes = decltype(RealTypes{} + ComplexTypes{});  // no bool
  using AllTypes = decltype(BoolType{} + NumberTypes{});
};

// Calls f.operator()<T>() with the type of this dtype. Throws not_implemented() if the list lacks
// it.
//   dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { ... });
template <typename... Ts, typename F>
void dispatch_among(int32_t dtype, Types<Ts...>, F&& f) {
  if (!((dtype == dtype_v<Ts> ? (f.template operator()<Ts>(), true) : false) || ...)) throw not_implemented();
}
template <typename List, typename F>
void dispatch(int32_t dtype, F&& f) {
  dispatch_among(dtype, List{}, std::forward<F>(f));
}

// For kernels that only move elements. Calls f.operator()<U>() with an unsigned type of the
// element's size; `Bits128` is the type for 16 bytes.
template <typename Bits128, typename F>
void dispatch_bytes(int64_t itemsize, F&& f) {
  switch (itemsize) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    default:
      return f.template operator()<Bits128>();
  }
}

// Converts a floating-point number to an integer, toward zero. C++ leaves NaN and numbers out of
// range undefined. All backends return what x86 and PyTorch do: the minimum integer of 32 or 64
// bits, whose low bits narrower types keep.
#if defined(__x86_64__) && !defined(__CUDACC__)
template <typename R, typename A>
[[gnu::no_sanitize("float-cast-overflow"), gnu::always_inline]] inline R truncated_to(A value) {
  return static_cast<R>(value);
}
#else
template <typename R, typename A>
CANDELABRA_HOST_DEVICE inline R truncated_to(A number) {
  const auto value = static_cast<double>(number);
  if constexpr (sizeof(R) == 4)
    return value > -2147483649.0 && value < 2147483648.0 ? static_cast<R>(value) : static_cast<R>(-2147483647 - 1);
  else
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<R>(value) : static_cast<R>(uint64_t{1} << 63);
}
#endif
template <typename R, typename A>
CANDELABRA_HOST_DEVICE inline R truncated(A value) {
  if constexpr (sizeof(R) < 4 || std::is_same_v<R, int32_t>)
    return static_cast<R>(truncated_to<int32_t>(value));
  else if constexpr (std::is_same_v<R, uint64_t>)  // the upper half of uint64's range exceeds int64
    return value >= A(0x1p63) ? static_cast<uint64_t>(truncated_to<int64_t>(value - A(0x1p63))) ^ (uint64_t{1} << 63)
                              : static_cast<uint64_t>(truncated_to<int64_t>(value));
  else
    return static_cast<R>(truncated_to<int64_t>(value));
}

// A Python number as T. Integers wrap; a real T drops the imaginary part.
template <typename T>
T scalar_to(const cb_scalar& scalar) {
  const bool whole = scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
  if constexpr (std::is_same_v<T, bool>)
    return whole ? scalar.i != 0 : scalar.re != 0 || scalar.im != 0;
  else if constexpr (is_complex_v<T>)
    return T(static_cast<real_t<T>>(scalar.re), static_cast<real_t<T>>(scalar.im));
  else if constexpr (is_half_v<T>)
    return T(static_cast<float>(scalar.re));
  else if constexpr (is_integer_v<T>)
    return whole ? static_cast<T>(scalar.i)
                 : static_cast<T>(truncated<std::conditional_t<std::is_same_v<T, uint64_t>, T, int64_t>>(scalar.re));
  else
    return static_cast<T>(scalar.re);
}

template <typename T>
const T* data(const cb_tensor& tensor) {
  return static_cast<const T*>(tensor.data);
}
template <typename T>
T* data(cb_tensor& tensor) {
  return static_cast<T*>(tensor.data);
}
template <typename T>
T* mutable_data(const cb_tensor& tensor) {
  return static_cast<T*>(tensor.data);
}

}  // namespace CANDELABRA_ISA_NAMESPACE

}  // namespace candelabra::kernel

#endif  // CANDELABRA_DTYPES_HPP
