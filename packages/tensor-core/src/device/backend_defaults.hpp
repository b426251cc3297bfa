#pragma once

#include "candelabra/backend.h"

namespace candelabra {

// The table with defaults for null pointers, and for fields beyond the size that an older backend
// states.
cb_backend completed(const cb_backend& given);

// The table of a backend without a library: host memory, one device, no compiled kernels.
cb_backend host_memory_backend(const char* device_type);

}  // namespace candelabra
