// Light formulas on half precisions as they lie in memory: numbers are made float32 and back in registers, where conversions in
// passes of their own (blocks.hpp) would take as long as the memory does.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "elementwise.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {
namespace halves {

using Floats = math::Vec<float>;

#ifdef __AVX512F__
constexpr __mmask16 all = 0xffff;
inline __mmask16 first(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
inline Floats load(const Half* from, int64_t n) {
  return _mm512_maskz_cvtph_ps(all, _mm256_maskz_loadu_epi16(first(n), from));
}
inline Floats load(const BFloat16* from, int64_t n) {
  return _mm512_castsi512_ps(
      _mm512_maskz_slli_epi32(all, _mm512_maskz_cvtepu16_epi32(all, _mm256_maskz_loadu_epi16(first(n), from)), 16));
}
inline void store(Floats value, Half* to, int64_t n) {
  _mm256_mask_storeu_epi16(to, first(n), _mm512_maskz_cvtps_ph(all, value.v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store(Floats value, BFloat16* to, int64_t n) {
  const __m512i words = _mm512_castps_si512(value.v);
  const __m512i odd = _mm512_and_si512(_mm512_maskz_srli_epi32(all, words, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(words, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  rounded = _mm512_maskz_srli_epi32(all, rounded, 16);
  rounded = _mm512_mask_mov_epi32(rounded, (value != value).m, _mm512_set1_epi32(0x7fc0));
  _mm256_mask_storeu_epi16(to, first(n), _mm512_maskz_cvtepi32_epi16(all, rounded));
}
#else
// By way of arrays, from which the conversions of blocks take them.
template <typename T>
Floats load(const T* from, int64_t n) {
  alignas(32) float values[Floats::size] = {};
  to_float(from, values, n);
  return Floats::load(values);
}
template <typename T>
void store(Floats value, T* to, int64_t n) {
  alignas(32) float values[Floats::size];
  value.store(values);
  from_float(values, to, n);
}
#endif

template <typename Op, typename T>
void loop2(void* out, const void* const* in, int64_t n, const void*) {
  const Op op{};
  T* to = static_cast<T*>(out);
  const T *a = static_cast<const T*>(in[0]), *b = static_cast<const T*>(in[1]);
  int64_t i = 0;
  for (; i + Floats::size <= n; i += Floats::size)
    store(op(load(a + i, Floats::size), load(b + i, Floats::size)), to + i, Floats::size);
  if (i < n) store(op(load(a + i, n - i), load(b + i, n - i)), to + i, n - i);
}

}  // namespace halves

// As binary(), for formulas without a state that take whole registers of float32.
template <typename Op, typename List, int64_t Work>
void binary_of_registers(Call& call) {
  const int32_t dtype = call.output().dtype;
  dispatch<List>(dtype, [&]<typename T>() {
    if constexpr (is_half_v<T>)
      // A number may be one of another dtype.
      if (call.tensor(0).dtype == dtype && call.tensor(1).dtype == dtype)
        return run<2>({halves::loop2<Op, T>, nullptr, Work, false}, call.output(), {&call.tensor(0), &call.tensor(1)});
    map2<T>(call, Op{}, Work);
  });
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
