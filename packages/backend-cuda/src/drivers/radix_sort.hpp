// Radix sort of (key, position) pairs, by CUB.
#pragma once

#include <cstdint>

#include "kernels.hpp"

namespace candelabra::cuda {

// Double buffers: the pairs are in the first of each two; the second ones have the same size.
template <typename K>
struct PairBuffers {
  K* keys[2];
  uint32_t* positions[2];
};

// Sorts pairs by the lowest `bits` bits of their keys, stably. Queues the work and returns the
// index of the buffers with the result. For K = uint32_t and uint64_t.
template <typename K>
int radix_sort(const Call& call, const PairBuffers<K>& buffers, uint32_t count, int bits);

}  // namespace candelabra::cuda
