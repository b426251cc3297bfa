// Weights in the order that a primitive wants them in, kept from call to call while what they were made of is unchanged: at batch 1
// bringing a weight into order takes about as long as the convolution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <memory>

#include "allocator.hpp"

namespace candelabra::cpu {

// A weight where it lies, as it is described, and the description that it is wanted in. `contents` is the core's number for what
// the memory holds (cb_call.contents), not 0.
struct WantedWeight {
  uint64_t contents;
  const void* data;
  const dnnl::memory::desc &given, &wanted;
};

using KeptWeight = std::shared_ptr<Scratch<char>>;

// The weight in its wanted order; null where it is not kept, and is not yet worth it: that is from the second call on that finds it
// unchanged. Then `keep` is set, and the caller, who has to bring it into order anyway, hands it to keep_weight().
KeptWeight find_weight(const WantedWeight& weight, bool& keep);
// Memory for a weight that is to be kept; null where there is none to spare.
KeptWeight room_for_weight(size_t bytes);
void keep_weight(const WantedWeight& weight, KeptWeight room);

// How many bytes are kept at most: the environment variable CANDELABRA_CPU_KEPT_WEIGHTS, or an eighth of the machine's memory.
int64_t kept_bytes_allowed();

// What was made of weights in this memory, which is given back now.
void forget_weights(const void* memory, size_t bytes) noexcept;
// All of them. Returns whether memory became free.
bool forget_all_weights() noexcept;

void kept_weights_before_fork();
void kept_weights_after_fork();

}  // namespace candelabra::cpu
