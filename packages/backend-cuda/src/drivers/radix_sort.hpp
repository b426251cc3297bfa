// Sorting of many pairs of a key and a position, by CUB.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace candelabra::cuda {

// The pairs are in the first of each two; the second are room for as many.
template <typename K>
struct PairBuffers {
  K* keys[2];
  uint32_t* positions[2];
};

// Sorts pairs by the lowest `bits` bits of their keys; those of equal keys keep their order. Queues
// work and returns which of the two buffers holds the result. For K = uint32_t and uint64_t.
template <typename K>
int radix_sort(const Call& call, const PairBuffers<K>& buffers, uint32_t count, int bits);

}  // namespace candelabra::cuda
