// Many blocks of Philox 4x32-10 at a time. The generator itself, and which word belongs to which element, is in
// candelabra/random.hpp.
#pragma once

#include <cstdint>

#include "dtypes.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// The words of blocks [first, first + count): 4 * count of them.
inline void philox_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* words) {
  constexpr int lanes = 16;
  const auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (int64_t block = 0; block < count; block += lanes) {
    const uint64_t base = first + static_cast<uint64_t>(block);
    const auto low = static_cast<uint32_t>(base), high = static_cast<uint32_t>(base >> 32);
#pragma omp simd
    for (int j = 0; j < lanes; ++j) {
      uint32_t x0 = low + static_cast<uint32_t>(j), x1 = high + (x0 < low ? 1u : 0u), x2 = 0, x3 = 0;
      uint32_t k0 = key0, k1 = key1;
#pragma GCC unroll 10
      for (int round = 0; round < 10; ++round) {
        const uint64_t product0 = uint64_t{0xD2511F53u} * x0, product1 = uint64_t{0xCD9E8D57u} * x2;
        x0 = static_cast<uint32_t>(product1 >> 32) ^ x1 ^ k0;
        x2 = static_cast<uint32_t>(product0 >> 32) ^ x3 ^ k1;
        x1 = static_cast<uint32_t>(product1);
        x3 = static_cast<uint32_t>(product0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      c0[j] = x0, c1[j] = x1, c2[j] = x2, c3[j] = x3;
    }
    uint32_t* out = words + 4 * block;
    int64_t n = count - block < lanes ? count - block : lanes;
    for (int64_t j = 0; j < n; ++j) {
      out[4 * j] = c0[j];
      out[4 * j + 1] = c1[j];
      out[4 * j + 2] = c2[j];
      out[4 * j + 3] = c3[j];
    }
  }
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
