#include "threads/deterministic.hpp"

#include <atomic>
#include <cstdint>

#include "candelabra/backend.h"

namespace {

std::atomic<bool> deterministic{false};

}  // namespace

// Called by the Python package when the setting changes.
extern "C" CB_EXPORT void candelabra_cpu_set_deterministic(int32_t mode) {
  deterministic = mode != 0;
}

namespace candelabra::cpu {

bool is_deterministic() {
  return deterministic.load(std::memory_order_relaxed);
}

}  // namespace candelabra::cpu
