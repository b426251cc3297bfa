// Devices: how many there are, which one a thread is at, what they can do.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "candelabra/accelerator.h"

namespace candelabra::cuda {

// What kernels ask for when they choose a grid; read once.
struct DeviceTraits {
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int max_shared_per_block = 0;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  int l2_bytes = 0;
  int capability = 0;      // 90 for compute capability 9.0
  bool supported = false;  // this build has kernels for it
};

// Throws where there is no driver, the driver is too old, or no device can be used: for
// cb_backend.initialize.
void initialize_devices();
int device_count();  // 0 before initialize_devices
const DeviceTraits& device_traits(int device);
void read_properties(int device, cb_device_properties& result);
void read_details(int device, cb_device_details& result);

// Makes a device the thread's for as long as it lives.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard();

 private:
  int before_ = -1;  // -1: it was that device already
};

// Whether work that is queued on this stream goes to a graph.
bool is_capturing(cudaStream_t stream);

// A forked child has no context: everything that would use the device fails with a clear message.
void devices_after_fork();
bool in_forked_child();

}  // namespace candelabra::cuda
