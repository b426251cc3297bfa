// Random numbers that are identical on every backend: Philox 4x32-10, and distributions computed
// from its output.
//
// Philox is the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (2011). Ten rounds of multiplications map (key, counter) to four independent
// 32-bit words. Element i of a tensor depends on i alone, so any number of threads may compute
// elements in any order. The key is the seed, and the counter is the block index. This file and
// docs/architecture.md, "Random numbers", define which word belongs to which element.
#ifndef CANDELABRA_RANDOM_HPP
#define CANDELABRA_RANDOM_HPP

#include <cmath>
#include <cstdint>

#include "candelabra/host_device.hpp"

namespace candelabra {

struct PhiloxBlock {
  uint32_t words[4];
};

// The block with this index in the stream of this seed.
CANDELABRA_HOST_DEVICE inline PhiloxBlock philox_block(uint64_t seed, uint64_t block) {
  constexpr uint64_t multiplier0 = 0xD2511F53u, multiplier1 = 0xCD9E8D57u;
  constexpr uint32_t weyl0 = 0x9E3779B9u, weyl1 = 0xBB67AE85u;
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = 0, c3 = 0;
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = multiplier0 * c0;
    const uint64_t product1 = multiplier1 * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c1 = static_cast<uint32_t>(product1);
    c3 = static_cast<uint32_t>(product0);
    key0 += weyl0;
    key1 += weyl1;
  }
  return {{c0, c1, c2, c3}};
}

// The 64-bit draws of a block. Draw 0 is words 0 (low) and 1 (high); draw 1 is words 2 and 3.
CANDELABRA_HOST_DEVICE inline uint64_t word64_of(const PhiloxBlock& block, int draw) {
  return static_cast<uint64_t>(block.words[2 * draw]) | static_cast<uint64_t>(block.words[2 * draw + 1]) << 32;
}

// Draw i of a call whose first block has index `offset`.
CANDELABRA_HOST_DEVICE inline uint32_t random_word32(uint64_t seed, uint64_t offset, uint64_t i) {
  return philox_block(seed, offset + i / 4).words[i % 4];
}
CANDELABRA_HOST_DEVICE inline uint64_t random_word64(uint64_t seed, uint64_t offset, uint64_t i) {
  return word64_of(philox_block(seed, offset + i / 2), static_cast<int>(i % 2));
}

// Uniform numbers in [0, 1). They use as many bits as the significand holds, so that none rounds up
// to 1.
CANDELABRA_HOST_DEVICE inline float uniform_float32(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
CANDELABRA_HOST_DEVICE inline double uniform_float64(uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}
CANDELABRA_HOST_DEVICE inline float uniform_float16(uint32_t word) {
  return static_cast<float>(word >> 21) * 0x1p-11f;
}
CANDELABRA_HOST_DEVICE inline float uniform_bfloat16(uint32_t word) {
  return static_cast<float>(word >> 24) * 0x1p-8f;
}

template <typename T>
struct NormalPair {
  T first, second;
};

// Two normal numbers from two uniform ones in [0, 1) (Box and Muller, 1958). 1 - u is in (0, 1],
// where the logarithm is finite.
CANDELABRA_HOST_DEVICE inline NormalPair<float> normal_pair(float u1, float u2) {
  const float radius = sqrtf(-2.0f * logf(1.0f - u1));
  const float angle = 6.283185307179586f * u2;
  return {radius * cosf(angle), radius * sinf(angle)};
}
CANDELABRA_HOST_DEVICE inline NormalPair<double> normal_pair(double u1, double u2) {
  const double radius = sqrt(-2.0 * log(1.0 - u1));
  const double angle = 6.283185307179586 * u2;
  return {radius * cos(angle), radius * sin(angle)};
}

// An exponentially distributed number of rate lambda, from a uniform one in [0, 1).
CANDELABRA_HOST_DEVICE inline float exponential_number(float u, float lambda) {
  return -log1pf(-u) / lambda;
}
CANDELABRA_HOST_DEVICE inline double exponential_number(double u, double lambda) {
  return -log1p(-u) / lambda;
}

// An integer in [low, high), from a 64-bit draw.
CANDELABRA_HOST_DEVICE inline int64_t random_range(uint64_t word, int64_t low, int64_t high) {
  return static_cast<int64_t>(static_cast<uint64_t>(low) + word % (static_cast<uint64_t>(high) - static_cast<uint64_t>(low)));
}

// How many blocks a call for this many elements consumes.
CANDELABRA_HOST_DEVICE inline uint64_t random_block_count(uint64_t elements) {
  return (elements + 1) / 2;
}

}  // namespace candelabra

#endif
