// Generates many blocks of Philox 4x32-10 at a time. candelabra/random.hpp defines the generator
// and which word belongs to which element.
#pragma once

#include <cstdint>

#include "dtypes.hpp"
#include "simd/intrinsics.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Each 64-bit lane holds one 32-bit word of a block. Multiplication reads only the lower halves, so
// upper halves may hold anything and low products need no mask.
//
// Masked forms with all lanes set: GCC 12 warns that the unmasked ones read an uninitialized
// variable.
#ifdef __AVX512F__
using Lanes = __m512i;
constexpr int philox_lanes = 8;
[[gnu::always_inline]] inline Lanes lanes_of(uint64_t value) {
  return _mm512_set1_epi64(static_cast<int64_t>(value));
}
[[gnu::always_inline]] inline Lanes lanes_product(Lanes a, Lanes b) {
  return _mm512_maskz_mul_epu32(0xff, a, b);
}
[[gnu::always_inline]] inline Lanes lanes_high(Lanes a) {
  return _mm512_maskz_srli_epi64(0xff, a, 32);
}
[[gnu::always_inline]] inline Lanes lanes_xor(Lanes a, Lanes b, Lanes c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
// two words of each lane's block, adjacent
[[gnu::always_inline]] inline Lanes lanes_pair(Lanes low, Lanes high) {
  return _mm512_mask_shuffle_epi32(low, 0xaaaa, high, _MM_PERM_CCAA);
}
// Lanes 0, 2, 4, 6 hold the first half of the blocks, so that unpacking puts blocks in order.
[[gnu::always_inline]] inline Lanes lanes_counter(uint64_t first) {
  return _mm512_add_epi64(lanes_of(first), _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0));
}
[[gnu::always_inline]] inline void lanes_store(uint32_t* words, Lanes a, Lanes b) {
  _mm512_storeu_si512(words, _mm512_maskz_unpacklo_epi64(0xff, a, b));
  _mm512_storeu_si512(words + 16, _mm512_maskz_unpackhi_epi64(0xff, a, b));
}
#else
using Lanes = __m256i;
constexpr int philox_lanes = 4;
[[gnu::always_inline]] inline Lanes lanes_of(uint64_t value) {
  return _mm256_set1_epi64x(static_cast<int64_t>(value));
}
[[gnu::always_inline]] inline Lanes lanes_product(Lanes a, Lanes b) {
  return _mm256_mul_epu32(a, b);
}
[[gnu::always_inline]] inline Lanes lanes_high(Lanes a) {
  return _mm256_srli_epi64(a, 32);
}
[[gnu::always_inline]] inline Lanes lanes_xor(Lanes a, Lanes b, Lanes c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
[[gnu::always_inline]] inline Lanes lanes_pair(Lanes low, Lanes high) {
  return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}
[[gnu::always_inline]] inline Lanes lanes_counter(uint64_t first) {
  return _mm256_add_epi64(lanes_of(first), _mm256_set_epi64x(3, 1, 2, 0));
}
[[gnu::always_inline]] inline void lanes_store(uint32_t* words, Lanes a, Lanes b) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), _mm256_unpacklo_epi64(a, b));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + 8), _mm256_unpackhi_epi64(a, b));
}
#endif

// Each round depends on the one before, so several groups of lanes are interleaved to hide its
// latency.
constexpr int philox_groups = philox_lanes == 8 ? 4 : 2;
// A multiple of the number of blocks that philox_words() writes at a time.
constexpr int64_t philox_step = 32;
static_assert(philox_step % (philox_groups * philox_lanes) == 0);

// Writes the 4 * count words of blocks [first, first + count). `words` has room for a multiple of
// philox_step blocks.
inline void philox_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* words) {
  const Lanes multiplier0 = lanes_of(0xD2511F53u), multiplier1 = lanes_of(0xCD9E8D57u);
  for (int64_t block = 0; block < count; block += philox_groups * philox_lanes) {
    Lanes x0[philox_groups], x1[philox_groups], x2[philox_groups], x3[philox_groups];
    for (int g = 0; g < philox_groups; ++g) {
      x0[g] = lanes_counter(first + static_cast<uint64_t>(block + g * philox_lanes));
      x1[g] = lanes_high(x0[g]);
      x2[g] = x3[g] = lanes_of(0);
    }
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const Lanes round_key0 = lanes_of(key0), round_key1 = lanes_of(key1);
#pragma GCC unroll 4
      for (int g = 0; g < philox_groups; ++g) {
        const Lanes product0 = lanes_product(multiplier0, x0[g]), product1 = lanes_product(multiplier1, x2[g]);
        x0[g] = lanes_xor(lanes_high(product1), x1[g], round_key0);
        x2[g] = lanes_xor(lanes_high(product0), x3[g], round_key1);
        x1[g] = product1;
        x3[g] = product0;
      }
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    for (int g = 0; g < philox_groups; ++g)
      lanes_store(words + 4 * (block + g * philox_lanes), lanes_pair(x0[g], x1[g]), lanes_pair(x2[g], x3[g]));
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
