// Events, which mark points in the work of a stream.
#pragma once

#include <cuda_runtime_api.h>

namespace candelabra::cuda {

cudaEvent_t event_create(int device, int flags);  // enum cb_event_flags
void event_destroy(int device, cudaEvent_t event) noexcept;
void event_record(int device, cudaEvent_t event, cudaStream_t stream);
void event_wait(int device, cudaEvent_t event, cudaStream_t stream);
void event_synchronize(int device, cudaEvent_t event);
bool event_query(int device, cudaEvent_t event);
double event_elapsed(int device, cudaEvent_t start, cudaEvent_t end);

}  // namespace candelabra::cuda
