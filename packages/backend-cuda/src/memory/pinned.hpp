// Pinned host memory with a cache of its own, because pinning is slow.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

void* allocate_pinned(size_t bytes);
void deallocate_pinned(void* memory) noexcept;
bool is_pinned(const void* memory);
// Records that the stream uses memory of this cache. The memory is reused only when the work queued
// on the stream by then is done.
void record_pinned(void* memory, int device, cudaStream_t stream);
void empty_pinned_cache();
cb_memory_details pinned_details();
void reset_pinned_peaks();
void reset_pinned_totals();

}  // namespace candelabra::cuda
