// Iterates over the channels of channels-last data, a few registers at a time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "simd/half_registers.hpp"

namespace candelabra::cpu {
inline namespace CANDELABRA_ISA_NAMESPACE {

// Calls body.operator()<K>(c, n) for groups of K registers that start at channel c. The last
// register of a group holds n channels.
template <typename V, typename F>
[[gnu::always_inline]] inline void for_channel_registers(int64_t channels, F&& body) {
  constexpr int64_t size = math::Vec<V>::size;
  int64_t c = 0;
  for (; c + 4 * size <= channels; c += 4 * size) body.template operator()<4>(c, size);
  if (c + 2 * size <= channels) {
    body.template operator()<2>(c, size);
    c += 2 * size;
  }
  for (; c < channels; c += size) body.template operator()<1>(c, std::min(size, channels - c));
}

}  // namespace CANDELABRA_ISA_NAMESPACE
}  // namespace candelabra::cpu
