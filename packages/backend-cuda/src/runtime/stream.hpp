// Streams. Which one is current is the core's to know: every function is told. A stream that is
// given back is handed out again, so that memory that was cached for it finds new use.
#pragma once

#include <cuda_runtime_api.h>

namespace candelabra::cuda {

cudaStream_t stream_create(int device, int priority);
void stream_destroy(int device, cudaStream_t stream);
void stream_synchronize(int device, cudaStream_t stream);
bool stream_query(int device, cudaStream_t stream);
void stream_priorities(int device, int& least, int& greatest);

}  // namespace candelabra::cuda
