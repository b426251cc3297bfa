// Conversions of float16 and bfloat16 to float32 and back: in registers, and of contiguous arrays.
// The compiler does not vectorize _cvtsh_ss by itself.
#pragma once

#include <cstdint>

#include "candelabra/dtypes.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace halves {

using kernel::BFloat16;
using kernel::Half;

// Loads eight elements, whatever the register width.
[[gnu::always_inline]] inline __m256 eight(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline __m256 eight(const BFloat16* from) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
}

// The functions on the widest register, of `lanes` numbers: load and store all lanes or the first
// n, and store two registers.
namespace raw {

#ifdef __AVX512F__

constexpr int64_t lanes = 16;

// Masked forms with all lanes set: GCC 12 warns that the unmasked ones read an uninitialized
// variable.
constexpr __mmask16 all = 0xffff;

[[gnu::always_inline]] inline __mmask16 first(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
[[gnu::always_inline]] inline __m512 widened(const Half*, __m256i bits) {
  return _mm512_maskz_cvtph_ps(all, bits);
}
[[gnu::always_inline]] inline __m512 widened(const BFloat16*, __m256i bits) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, bits), 16));
}
[[gnu::always_inline]] inline __m256i narrowed(const Half*, __m512 value) {
  return _mm512_maskz_cvtps_ph(all, value, _MM_FROUND_TO_NEAREST_INT);
}
// Rounds to nearest even, into the upper half of each word. Not valid for NaN.
[[gnu::always_inline]] inline __m512i rounded_numbers(__m512 value) {
  const __m512i words = _mm512_castps_si512(value);
  const __m512i even = _mm512_and_si512(_mm512_maskz_srli_epi32(all, words, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(words, _mm512_set1_epi32(0x7fff)), even);
}
// The same, with every NaN mapped to the canonical one.
[[gnu::always_inline]] inline __m512i rounded(__m512 value) {
  const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_NEQ_UQ);
  return _mm512_mask_mov_epi32(rounded_numbers(value), nan, _mm512_set1_epi32(0x7fc00000));
}
[[gnu::always_inline]] inline __m256i narrowed(const BFloat16*, __m512 value) {
  return _mm512_maskz_cvtepi32_epi16(all, _mm512_maskz_srli_epi32(all, rounded(value), 16));
}

template <typename T>
[[gnu::always_inline]] inline __m512 load(const T* from) {
  return widened(from, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
template <typename T>
[[gnu::always_inline]] inline __m512 load(const T* from, int64_t n) {
  return widened(from, _mm256_maskz_loadu_epi16(first(n), from));
}
template <typename T>
[[gnu::always_inline]] inline void store(__m512 value, T* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrowed(to, value));
}
template <typename T>
[[gnu::always_inline]] inline void store(__m512 value, T* to, int64_t n) {
  _mm256_mask_storeu_epi16(to, first(n), narrowed(to, value));
}
// For bfloat16, one permutation collects the upper halves of all words.
[[gnu::always_inline]] inline void store(__m512 low, __m512 high, BFloat16* to) {
  alignas(64) static constexpr uint16_t upper_halves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                            23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                            45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  __m512i a = rounded_numbers(low), b = rounded_numbers(high);
  if (_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q)) [[unlikely]]
    a = rounded(low), b = rounded(high);
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, _mm512_load_si512(upper_halves), b));
}
[[gnu::always_inline]] inline void store(__m512 low, __m512 high, Half* to) {
  store(low, to);
  store(high, to + lanes);
}

[[gnu::always_inline]] inline __m512 load_floats(const float* from) {
  return _mm512_loadu_ps(from);
}
[[gnu::always_inline]] inline void store_floats(__m512 value, float* to) {
  _mm512_storeu_ps(to, value);
}

#else

constexpr int64_t lanes = 8;

[[gnu::always_inline]] inline __m128i narrowed(const Half*, __m256 value) {
  return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
}
[[gnu::always_inline]] inline __m128i narrowed(const BFloat16*, __m256 value) {
  const __m256i words = _mm256_castps_si256(value);
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(words, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(words, _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  rounded = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08));
}

template <typename T>
[[gnu::always_inline]] inline __m256 load(const T* from) {
  return eight(from);
}
template <typename T>
[[gnu::always_inline]] inline void store(__m256 value, T* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrowed(to, value));
}
template <typename T>
[[gnu::always_inline]] inline void store(__m256 low, __m256 high, T* to) {
  store(low, to);
  store(high, to + lanes);
}
// AVX2 has no masked accesses of 16 bits.
template <typename T>
inline __m256 load(const T* from, int64_t n) {
  alignas(32) float values[lanes] = {};
  for (int64_t i = 0; i < n; ++i) values[i] = from[i];
  return _mm256_load_ps(values);
}
template <typename T>
inline void store(__m256 value, T* to, int64_t n) {
  alignas(32) float values[lanes];
  _mm256_store_ps(values, value);
  for (int64_t i = 0; i < n; ++i) to[i] = values[i];
}

[[gnu::always_inline]] inline __m256 load_floats(const float* from) {
  return _mm256_loadu_ps(from);
}
[[gnu::always_inline]] inline void store_floats(__m256 value, float* to) {
  _mm256_storeu_ps(to, value);
}

#endif

}  // namespace raw
}  // namespace halves

// Convert contiguous arrays.
template <typename T>
  requires kernel::is_half_v<T>
void to_float(const T* in, float* out, int64_t n) {
  using namespace halves;
  const int64_t whole = n - n % raw::lanes;
  for (int64_t i = 0; i < whole; i += raw::lanes) raw::store_floats(raw::load(in + i), out + i);
#ifdef __AVX512F__
  const int64_t rest = n - whole;
  if (rest) _mm512_mask_storeu_ps(out + whole, raw::first(rest), raw::load(in + whole, rest));
#else
  for (int64_t i = whole; i < n; ++i) out[i] = in[i];
#endif
}
template <typename T>
  requires kernel::is_half_v<T>
void from_float(const float* in, T* out, int64_t n) {
  using namespace halves;
  const int64_t whole = n - n % raw::lanes;
  int64_t i = 0;
  for (; i + 2 * raw::lanes <= whole; i += 2 * raw::lanes)
    raw::store(raw::load_floats(in + i), raw::load_floats(in + i + raw::lanes), out + i);
  if (i < whole) raw::store(raw::load_floats(in + i), out + i);
#ifdef __AVX512F__
  const int64_t rest = n - whole;
  if (rest) raw::store(_mm512_maskz_loadu_ps(raw::first(rest), in + whole), out + whole, rest);
#else
  for (i = whole; i < n; ++i) out[i] = in[i];
#endif
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
