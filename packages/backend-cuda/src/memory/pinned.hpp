// Pinned host memory, with a cache of its own: making it is slow, and gives the device a way to it
// for good.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

void* allocate_pinned(size_t bytes);
void deallocate_pinned(void* memory) noexcept;
bool is_pinned(const void* memory);
// Memory of this cache is used on the stream: it is handed out again only when what is queued there
// by then is done.
void record_pinned(void* memory, int device, cudaStream_t stream);
void empty_pinned_cache();
cb_memory_details pinned_details();
void reset_pinned_peaks();
void reset_pinned_totals();

}  // namespace candelabra::cuda
