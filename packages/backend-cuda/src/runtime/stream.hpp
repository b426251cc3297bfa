// Streams. The core keeps the current stream and passes it to every function. A returned stream is
// handed out again, so that memory cached for it is used again.
#pragma once

#include <cuda_runtime_api.h>

namespace candelabra::cuda {

cudaStream_t stream_create(int device, int priority);
void stream_destroy(int device, cudaStream_t stream);
void stream_synchronize(int device, cudaStream_t stream);
bool stream_query(int device, cudaStream_t stream);
void stream_priorities(int device, int& least, int& greatest);

}  // namespace candelabra::cuda
