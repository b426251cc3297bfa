// Copies of bytes between host and device, and between devices.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace candelabra::cuda {

// Complete on return.
void copy_from_host(int device, void* to, const void* from, size_t bytes, cudaStream_t stream);
void copy_to_host(int device, void* to, const void* from, size_t bytes, cudaStream_t stream);
// Queued if the host memory is pinned; otherwise complete on return.
void copy_from_host_async(int device, void* to, const void* from, size_t bytes, cudaStream_t stream);
void copy_to_host_async(int device, void* to, const void* from, size_t bytes, cudaStream_t stream);
void copy_within(int device, void* to, const void* from, size_t bytes, cudaStream_t stream);

bool can_access_peer(int device, int peer);
// Queued on a stream of the source's device. Direct if the devices have peer access.
void copy_peer(int to_device, void* to, int from_device, const void* from, size_t bytes, cudaStream_t stream);

}  // namespace candelabra::cuda
