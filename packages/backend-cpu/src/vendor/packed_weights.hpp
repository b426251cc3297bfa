// Packed-weight cache: weights in the layout of a primitive, reused across calls while their
// contents are unchanged. At batch size 1, reordering a weight takes about as long as the
// convolution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#if CANDELABRA_ONEDNN
#include <dnnl.hpp>
#endif

#include "memory/allocator.hpp"

namespace candelabra::cpu {

#if CANDELABRA_ONEDNN
// A weight in memory with its layout, and the layout that is wanted. `contents` is the core's
// version number of the memory's contents (cb_call.content_versions), not 0.
struct WantedWeight {
  uint64_t contents;
  const void* data;
  const dnnl::memory::desc &given, &wanted;
};

using PackedWeight = std::shared_ptr<Scratch<char>>;

// Returns the packed weight, or null if it is not cached. From the second call with unchanged
// contents on, a miss sets `keep`: the caller reorders the weight anyway, and passes it to
// cache_packed_weight().
PackedWeight find_packed_weight(const WantedWeight& weight, bool& keep);
// Memory for a weight to be cached, or null if it does not fit.
PackedWeight room_for_weight(size_t bytes);
void cache_packed_weight(const WantedWeight& weight, PackedWeight room);
#endif

// Limit on the bytes of the cache: the environment variable CANDELABRA_CPU_PACKED_WEIGHTS, or an
// eighth of the machine's memory.
int64_t kept_bytes_allowed();

// Drops the packed forms of weights in this memory, which is being freed.
void drop_packed_weights(const void* memory, size_t bytes) noexcept;
// Drops all packed weights. Returns whether memory became free.
bool drop_all_packed_weights() noexcept;

void packed_weights_before_fork();
void packed_weights_after_fork();

}  // namespace candelabra::cpu
