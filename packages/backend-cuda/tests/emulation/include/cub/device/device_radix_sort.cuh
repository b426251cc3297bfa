// cub::DeviceRadixSort with CUB's arguments: the first call asks for the bytes of workspace.
#pragma once

#include <cstring>
#include <numeric>
#include <vector>

#include "emulation.hpp"

namespace cub {

template <typename T>
struct DoubleBuffer {
  T* d_buffers[2];
  int selector = 0;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() const { return d_buffers[selector]; }
  T* Alternate() const { return d_buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
  template <typename K, typename V, typename N>
  static cudaError_t SortPairs(void* workspace, size_t& bytes, DoubleBuffer<K>& keys, DoubleBuffer<V>& values, N count,
                               int begin_bit, int end_bit, cudaStream_t stream) {
    if (!workspace) {
      bytes = 256;
      return cudaSuccess;
    }
    const K *from_keys = keys.Current(), low = static_cast<K>(static_cast<K>(~K{0}) << begin_bit),
            mask = end_bit >= static_cast<int>(8 * sizeof(K)) ? low : static_cast<K>(low & ((K{1} << end_bit) - 1));
    K* to_keys = keys.Alternate();
    const V* from_values = values.Current();
    V* to_values = values.Alternate();
    keys.selector ^= 1;
    values.selector ^= 1;
    return emulation::queue(stream, [=] {
      std::memset(workspace, 0x55, 256);
      std::vector<size_t> order(static_cast<size_t>(count));
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [=](size_t a, size_t b) { return (from_keys[a] & mask) < (from_keys[b] & mask); });
      for (size_t i = 0; i < order.size(); ++i) {
        to_keys[i] = from_keys[order[i]];
        to_values[i] = from_values[order[i]];
      }
    });
  }
};

}  // namespace cub
