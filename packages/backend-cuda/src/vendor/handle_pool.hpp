// Pools of library handles, each of which one thread at a time may use. A call borrows a handle.
// Handles outlive threads and are never destroyed, because the libraries may be gone at the end of
// the process.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <vector>

namespace candelabra::cuda {

// Allows the thread's operations beside its streams during a capture, for the lifetime of the
// object.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

template <typename Handle>
class HandlePool {
 public:
  // Calls `make`, with the current device set, if all handles of the device are in use.
  template <typename Make>
  Handle take(int device, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<Handle>& free = free_[device];
      if (!free.empty()) {
        const Handle handle = free.back();
        free.pop_back();
        return handle;
      }
    }
    // A library may allocate device memory for a handle, also during a capture.
    const RelaxedCapture scope;
    return make();
  }
  void give(int device, Handle handle) {
    const std::lock_guard lock(mutex_);
    free_[device].push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<Handle>> free_;
};

// Pools live as long as the process:  static auto& pool = lasting_pool<cublasHandle_t>();
template <typename Handle>
HandlePool<Handle>& lasting_pool() {
  static auto* pool = new HandlePool<Handle>();
  return *pool;
}

}  // namespace candelabra::cuda
