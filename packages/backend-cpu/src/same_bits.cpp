#include "same_bits.hpp"

#include <atomic>
#include <cstdint>

#include "candelabra/backend.h"

namespace {

std::atomic<bool> same_bits{false};

}  // namespace

// Called by the Python package when the setting changes.
extern "C" CB_EXPORT void candelabra_cpu_want_same_bits(int32_t wanted) {
  same_bits = wanted != 0;
}

namespace candelabra::cpu {

bool wants_same_bits() {
  return same_bits.load(std::memory_order_relaxed);
}

}  // namespace candelabra::cpu
