// Element types in C++, conversions of the two half precisions, and dispatch from a dtype to a type.
#pragma once

#include <immintrin.h>

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "candelabra/backend.h"
#include "kernels.hpp"

#ifndef CANDELABRA_ISA_NAMESPACE
#define CANDELABRA_ISA_NAMESPACE avx2
#endif

namespace candelabra::cpu {

// In a namespace of the instruction set, so that no inline function compiled for one is used by the other.
inline namespace CANDELABRA_ISA_NAMESPACE {

// Upper half of a float32. Rounds to nearest even; NaN stays NaN.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  [[gnu::always_inline]] BFloat16(float value) {
    uint32_t word = std::bit_cast<uint32_t>(value);
    uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    bits = static_cast<uint16_t>(value != value ? 0x7fc0u : rounded);
  }
  [[gnu::always_inline]] operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

// IEEE 754 binary16, converted by the processor.
struct Half {
  uint16_t bits;
  Half() = default;
  [[gnu::always_inline]] Half(float value) : bits(static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))) {}
  [[gnu::always_inline]] operator float() const { return _cvtsh_ss(bits); }
};

// Contiguous blocks to and from float32 (the compiler does not vectorize _cvtsh_ss by itself).
inline void to_float(const Half* in, float* out, int64_t n) {
  int64_t whole = n - n % 8;
  for (int64_t i = 0; i < whole; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (int64_t i = whole; i < n; ++i) out[i] = in[i];
}
inline void from_float(const float* in, Half* out, int64_t n) {
  int64_t whole = n - n % 8;
  for (int64_t i = 0; i < whole; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (int64_t i = whole; i < n; ++i) out[i] = in[i];
}
inline void to_float(const BFloat16* in, float* out, int64_t n) {
  const int64_t whole = n & ~int64_t{7};
  for (int64_t i = 0; i < whole; i += 8) {
    __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
    _mm256_storeu_ps(out + i, _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
  }
  for (int64_t i = whole; i < n; ++i) out[i] = in[i];
}
inline void from_float(const float* in, BFloat16* out, int64_t n) {
  const int64_t whole = n & ~int64_t{7};
  for (int64_t i = 0; i < whole; i += 8) {
    __m256 values = _mm256_loadu_ps(in + i);
    __m256i words = _mm256_castps_si256(values);
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(words, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(words, _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff))), 16);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
    __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm256_castsi256_si128(packed));
  }
  for (int64_t i = whole; i < n; ++i) out[i] = in[i];
}

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

template <typename T>
struct is_complex_type : std::false_type {};
template <typename T>
struct is_complex_type<std::complex<T>> : std::true_type {};
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
// The type of the parts of a complex number; else the type itself.
template <typename T>
struct real_type {
  using type = T;
};
template <typename T>
struct real_type<std::complex<T>> {
  using type = T;
};
template <typename T>
using real_t = typename real_type<T>::type;

template <typename T>
struct dtype_of;
template <>
struct dtype_of<bool> {
  static constexpr int32_t value = CB_BOOL;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr int32_t value = CB_UINT8;
};
template <>
struct dtype_of<int8_t> {
  static constexpr int32_t value = CB_INT8;
};
template <>
struct dtype_of<int16_t> {
  static constexpr int32_t value = CB_INT16;
};
template <>
struct dtype_of<int32_t> {
  static constexpr int32_t value = CB_INT32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr int32_t value = CB_INT64;
};
template <>
struct dtype_of<uint16_t> {
  static constexpr int32_t value = CB_UINT16;
};
template <>
struct dtype_of<uint32_t> {
  static constexpr int32_t value = CB_UINT32;
};
template <>
struct dtype_of<uint64_t> {
  static constexpr int32_t value = CB_UINT64;
};
template <>
struct dtype_of<Half> {
  static constexpr int32_t value = CB_FLOAT16;
};
template <>
struct dtype_of<BFloat16> {
  static constexpr int32_t value = CB_BFLOAT16;
};
template <>
struct dtype_of<float> {
  static constexpr int32_t value = CB_FLOAT32;
};
template <>
struct dtype_of<double> {
  static constexpr int32_t value = CB_FLOAT64;
};
template <>
struct dtype_of<complex64> {
  static constexpr int32_t value = CB_COMPLEX64;
};
template <>
struct dtype_of<complex128> {
  static constexpr int32_t value = CB_COMPLEX128;
};
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
using ComplexTypes = Types<complex64, complex128>;
using RealTypes = decltype(IntegerTypes{} + FloatTypes{});   // no bool
using NumberTypes = decltype(RealTypes{} + ComplexTypes{});  // no bool
using AllTypes = decltype(BoolType{} + NumberTypes{});

// Calls f.operator()<T>() with the type of this dtype; "not implemented" where it is not in the list.
//   dispatch<FloatTypes>(call.output().dtype, [&]<typename T>() { ... });
template <typename... Ts, typename F>
void dispatch_among(int32_t dtype, Types<Ts...>, F&& f) {
  if (!((dtype == dtype_v<Ts> ? (f.template operator()<Ts>(), true) : false) || ...)) throw not_implemented();
}
template <typename List, typename F>
void dispatch(int32_t dtype, F&& f) {
  dispatch_among(dtype, List{}, std::forward<F>(f));
}

// For kernels that only move elements: calls f.operator()<U>() with an unsigned type of the element's size
// (uint8_t, uint16_t, uint32_t, uint64_t, or Bits128).
struct Bits128 {
  uint64_t low, high;
  friend bool operator==(const Bits128&, const Bits128&) = default;
};
template <typename F>
void dispatch_size(int64_t itemsize, F&& f) {
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

}  // namespace CANDELABRA_ISA_NAMESPACE

constexpr int64_t itemsize_table[CB_DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8};
inline int64_t itemsize(int32_t dtype) {
  return itemsize_table[dtype];
}
constexpr bool is_complex_dtype(int32_t dtype) {
  return dtype == CB_COMPLEX64 || dtype == CB_COMPLEX128;
}
constexpr bool is_floating_dtype(int32_t dtype) {
  return dtype >= CB_FLOAT16 && dtype <= CB_FLOAT64;
}
constexpr bool is_integer_dtype(int32_t dtype) {
  return dtype <= CB_INT64 || dtype >= CB_UINT16;
}  // bool included

inline namespace CANDELABRA_ISA_NAMESPACE {

// A floating-point number as an integer, toward zero. Outside of the integer's range, and for NaN, C++ leaves open what happens;
// the processor gives the least integer of 32 or 64 bits, whose low bits the narrower types take. That is what PyTorch gives, too.
template <typename R, typename A>
[[gnu::no_sanitize("float-cast-overflow")]] inline R truncated(A value) {
  if constexpr (sizeof(R) < 4 || std::is_same_v<R, int32_t>)
    return static_cast<R>(static_cast<int32_t>(value));
  else if constexpr (std::is_same_v<R, uint64_t>)  // the upper half of its range is beyond int64
    return value >= A(0x1p63) ? static_cast<uint64_t>(static_cast<int64_t>(value - A(0x1p63))) ^ (uint64_t{1} << 63)
                              : static_cast<uint64_t>(static_cast<int64_t>(value));
  else
    return static_cast<R>(static_cast<int64_t>(value));
}

// A Python number as T; integers wrap, a complex number's imaginary part is dropped for a real T.
template <typename T>
T scalar_to(const cb_scalar& scalar) {
  bool whole = scalar.kind == CB_SCALAR_BOOL || scalar.kind == CB_SCALAR_INT;
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

}  // namespace candelabra::cpu
