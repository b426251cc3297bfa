// Devices: their number, the current device of a thread, and their properties.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

// Properties from which kernels choose a grid. Read once.
struct DeviceTraits {
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int max_shared_per_block = 0;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  int l2_bytes = 0;
  int capability = 0;      // 90 for compute capability 9.0
  bool supported = false;  // this build has kernels for it
};

// Implements cb_backend.initialize. Throws if there is no driver, the driver is too old, or no
// device can be used.
void initialize_devices();
int device_count();  // 0 before initialize_devices
const DeviceTraits& device_traits(int device);
void read_properties(int device, cb_device_properties& result);
void read_details(int device, cb_device_details& result);

// Sets the current device of the thread for the lifetime of the guard.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int before_ = -1;  // -1: the device was current already
};

// Whether work that is queued on this stream is captured into a graph.
bool is_capturing(cudaStream_t stream);

// A forked child has no context. Every use of the device fails there with a clear message.
void devices_after_fork();
bool in_forked_child();

}  // namespace candelabra::cuda
