#include "drivers/radix_sort.hpp"

#include <cub/device/device_radix_sort.cuh>

#include "runtime/launch.hpp"

namespace candelabra::cuda {

template <typename K>
int radix_sort(const Call& call, const PairBuffers<K>& buffers, uint32_t count, int bits) {
  if (count < 2 || bits == 0) return 0;
  cub::DoubleBuffer<K> keys(buffers.keys[0], buffers.keys[1]);
  cub::DoubleBuffer<uint32_t> positions(buffers.positions[0], buffers.positions[1]);
  size_t bytes = 0;
  const char* doing = call.raw()->operator_name;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, positions, count, 0, bits, call.stream()), doing);
  const Workspace room(call, bytes);
  check(cub::DeviceRadixSort::SortPairs(room.data(), bytes, keys, positions, count, 0, bits, call.stream()), doing);
  return keys.selector;
}

template int radix_sort<uint32_t>(const Call&, const PairBuffers<uint32_t>&, uint32_t, int);
template int radix_sort<uint64_t>(const Call&, const PairBuffers<uint64_t>&, uint32_t, int);

}  // namespace candelabra::cuda
