// C++ element types (candelabra/dtypes.hpp), and conversions of float16 and bfloat16 blocks.
#pragma once

#include <immintrin.h>

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "candelabra/dtypes.hpp"
#include "kernels.hpp"

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

// Convert contiguous blocks to and from float32. The compiler does not vectorize _cvtsh_ss by
// itself.
inline void to_float(const Half* in, float* out, int64_t n) {
  int64_t whole = n - n % 8;
  for (int64_t i = 0; i < whole; i += 8)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  for (int64_t i = whole; i < n; ++i) out[i] = in[i];
}
inline void from_float(const float* in, Half* out, int64_t n) {
  int64_t whole = n - n % 8;
  for (int64_t i = 0; i < whole; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
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
