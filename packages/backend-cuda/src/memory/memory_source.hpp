// The MemorySource of a CUDA device: cudaMalloc, and the driver's virtual memory for expandable
// segments.
#pragma once

#include "memory/allocator.hpp"

namespace candelabra::cuda {

std::unique_ptr<MemorySource> make_cuda_source(int device);

}  // namespace candelabra::cuda
