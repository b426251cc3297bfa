// Captures the work that is queued on a stream, and replays it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "runtime/launch.hpp"

namespace candelabra::cuda {

void graph_begin(int device, cudaStream_t stream, void* pool, int mode, uint64_t random_offset);
void* graph_end(int device, cudaStream_t stream);
void graph_launch(int device, void* graph, cudaStream_t stream, uint64_t seed, uint64_t offset);
void graph_write_dot(void* graph, const char* path);
void graph_destroy(int device, void* graph);

}  // namespace candelabra::cuda
