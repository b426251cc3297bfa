#pragma once

#include "candelabra/backend.h"

namespace candelabra {

// The table with defaults in the place of what is missing: null pointers, and fields beyond the size an older backend states.
cb_backend completed(const cb_backend& given);

// The table of a backend that has no library: ordinary host memory, one device, no compiled kernels.
cb_backend host_memory_backend(const char* device_type);

}  // namespace candelabra
