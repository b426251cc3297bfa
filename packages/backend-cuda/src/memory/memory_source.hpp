// Memory of a CUDA device for the allocator: cudaMalloc, and ranges of addresses by the driver's
// virtual memory.
#pragma once

#include "memory/allocator.hpp"

namespace candelabra::cuda {

std::unique_ptr<MemorySource> make_cuda_source(int device);

}  // namespace candelabra::cuda
