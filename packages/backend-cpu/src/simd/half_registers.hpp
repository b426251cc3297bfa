// Loads and stores half precisions as registers of float32.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "dtypes.hpp"
#include "simd/vec.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace halves {

using Floats = math::Vec<float>;

// Loads eight elements, whatever the register width.
[[gnu::always_inline]] inline __m256 eight(const Half* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline __m256 eight(const BFloat16* from) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))), 16));
}

#ifdef __AVX512F__

// Masked forms with all lanes set: GCC 12 warns that the unmasked ones read an uninitialized
// variable.
constexpr __mmask16 all = 0xffff;

[[gnu::always_inline]] inline __mmask16 first(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
[[gnu::always_inline]] inline Floats widened(const Half*, __m256i bits) {
  return _mm512_maskz_cvtph_ps(all, bits);
}
[[gnu::always_inline]] inline Floats widened(const BFloat16*, __m256i bits) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, bits), 16));
}
[[gnu::always_inline]] inline __m256i narrowed(const Half*, Floats value) {
  return _mm512_maskz_cvtps_ph(all, value.v, _MM_FROUND_TO_NEAREST_INT);
}
// Rounds to nearest even, into the upper half of each word. Not valid for NaN.
[[gnu::always_inline]] inline __m512i rounded_numbers(Floats value) {
  const __m512i words = _mm512_castps_si512(value.v);
  const __m512i even = _mm512_and_si512(_mm512_maskz_srli_epi32(all, words, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(words, _mm512_set1_epi32(0x7fff)), even);
}
// The same, with every NaN mapped to the canonical one.
[[gnu::always_inline]] inline __m512i rounded(Floats value) {
  return _mm512_mask_mov_epi32(rounded_numbers(value), (value != value).m, _mm512_set1_epi32(0x7fc00000));
}
[[gnu::always_inline]] inline __m256i narrowed(const BFloat16*, Floats value) {
  return _mm512_maskz_cvtepi32_epi16(all, _mm512_maskz_srli_epi32(all, rounded(value), 16));
}

template <typename T>
[[gnu::always_inline]] inline Floats load(const T* from) {
  return widened(from, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
template <typename T>
[[gnu::always_inline]] inline Floats load(const T* from, int64_t n) {
  return widened(from, _mm256_maskz_loadu_epi16(first(n), from));
}
template <typename T>
[[gnu::always_inline]] inline void store(Floats value, T* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrowed(to, value));
}
template <typename T>
[[gnu::always_inline]] inline void store(Floats value, T* to, int64_t n) {
  _mm256_mask_storeu_epi16(to, first(n), narrowed(to, value));
}

// Stores two registers. For bfloat16, one permutation collects the upper halves of all words.
[[gnu::always_inline]] inline void store(Floats low, Floats high, BFloat16* to) {
  alignas(64) static constexpr uint16_t upper_halves[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                            23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                            45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  __m512i a = rounded_numbers(low), b = rounded_numbers(high);
  if (_mm512_cmp_ps_mask(low.v, high.v, _CMP_UNORD_Q)) [[unlikely]]
    a = rounded(low), b = rounded(high);
  _mm512_storeu_si512(to, _mm512_permutex2var_epi16(a, _mm512_load_si512(upper_halves), b));
}
[[gnu::always_inline]] inline void store(Floats low, Floats high, Half* to) {
  store(low, to);
  store(high, to + Floats::size);
}

#else

template <typename T>
[[gnu::always_inline]] inline Floats load(const T* from) {
  return eight(from);
}
// Without AVX-512, stores and partial loads go through an array and the block conversions.
template <typename T>
inline void store(Floats value, T* to, int64_t n = Floats::size) {
  alignas(32) float values[Floats::size];
  value.store(values);
  from_float(values, to, n);
}
template <typename T>
inline void store(Floats low, Floats high, T* to) {
  store(low, to);
  store(high, to + Floats::size);
}
template <typename T>
inline Floats load(const T* from, int64_t n) {
  alignas(32) float values[Floats::size] = {};
  to_float(from, values, n);
  return Floats::load(values);
}

#endif

}  // namespace halves

// Load and store n elements of any floating dtype as a register of the compute type.
template <typename T>
[[gnu::always_inline]] inline math::Vec<compute_t<T>> load_some(const T* from, int64_t n) {
  using V = math::Vec<compute_t<T>>;
  if constexpr (is_half_v<T>)
    return n == V::size ? halves::load(from) : halves::load(from, n);
  else
    return n == V::size ? V::load(from) : V::load(from, n);
}
template <typename T>
[[gnu::always_inline]] inline void store_some(math::Vec<compute_t<T>> value, T* to, int64_t n) {
  const bool whole = n == math::Vec<compute_t<T>>::size;
  if constexpr (is_half_v<T>)
    whole ? halves::store(value, to) : halves::store(value, to, n);
  else
    whole ? value.store(to) : value.store(to, n);
}

// Convert arrays of half precisions to float32 and back. The tail is one partial register;
// to_float() and from_float() convert it element by element.
template <typename T>
void widen(const T* from, float* to, int64_t n) {
  using halves::Floats;
  int64_t i = 0;
  for (; i + Floats::size <= n; i += Floats::size) halves::load(from + i).store(to + i);
  if (i < n) halves::load(from + i, n - i).store(to + i, n - i);
}
template <typename T>
void narrow(const float* from, T* to, int64_t n) {
  using halves::Floats;
  int64_t i = 0;
  for (; i + 2 * Floats::size <= n; i += 2 * Floats::size)
    halves::store(Floats::load(from + i), Floats::load(from + i + Floats::size), to + i);
  for (; i < n; i += Floats::size)
    store_some(load_some(from + i, std::min(Floats::size, n - i)), to + i, std::min(Floats::size, n - i));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
