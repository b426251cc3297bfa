// How code that the recorder cannot see tells it: what follows cannot be replayed.
#pragma once

#include <atomic>

#include "memory/storage.hpp"

namespace candelabra {

// How many threads record. Without any, a call pays for one comparison.
extern std::atomic<int> active_recorders;
inline bool may_record() {
  return active_recorders.load(std::memory_order_relaxed) > 0;
}

void refuse_active_recording(const char* reason);
inline void refuse_recording(const char* reason) {
  if (may_record()) [[unlikely]]
    refuse_active_recording(reason);
}

// Call where the host has written to a tensor's memory, other than by a copy or a fill.
void note_active_host_write(Storage& storage);
inline void note_host_write(Storage& storage) {
  if (may_record()) [[unlikely]]
    note_active_host_write(storage);
}

}  // namespace candelabra
