#include "runtime/event.hpp"

#include "candelabra/accelerator.h"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/faults.hpp"

namespace candelabra::cuda {

cudaEvent_t event_create(int device, int flags) {
  const DeviceGuard guard(device);
  unsigned made = flags & CB_EVENT_TIMING ? cudaEventDefault : cudaEventDisableTiming;
  if (flags & CB_EVENT_BLOCKING) made |= cudaEventBlockingSync;
  if (flags & CB_EVENT_INTERPROCESS) {
    if (flags & CB_EVENT_TIMING) throw failure(CB_VALUE_ERROR, "an event for other processes cannot take times");
    made |= cudaEventInterprocess;
  }
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, made), "making an event");
  return event;
}

void event_destroy(int, cudaEvent_t event) noexcept {
  if (!in_forked_child()) cudaEventDestroy(event);
}

void event_record(int device, cudaEvent_t event, cudaStream_t stream) {
  const DeviceGuard guard(device);
  check(cudaEventRecord(event, stream), "recording an event");
}

void event_wait(int device, cudaEvent_t event, cudaStream_t stream) {
  const DeviceGuard guard(device);
  check(cudaStreamWaitEvent(stream, event, 0), "having a stream wait for an event");
}

void event_synchronize(int device, cudaEvent_t event) {
  const DeviceGuard guard(device);
  check(cudaEventSynchronize(event), "waiting for an event");
  raise_fault_of(device);
}

bool event_query(int device, cudaEvent_t event) {
  const DeviceGuard guard(device);
  const cudaError_t error = cudaEventQuery(event);
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(error, "asking an event");
  return true;
}

double event_elapsed(int device, cudaEvent_t start, cudaEvent_t end) {
  const DeviceGuard guard(device);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, end), "reading the time between events");
  return milliseconds;
}

}  // namespace candelabra::cuda
