// Handles of NVIDIA's libraries, of which one thread at a time may use each: lent for a call, kept
// for the next one. They outlive threads, and are never given back, since libraries do not like
// that at the end of a process.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <vector>

namespace candelabra::cuda {

// While it lives, what this thread does beside its streams is allowed although a stream is
// captured.
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
  // `make` is called, with the device already the thread's, where all handles of the device are in
  // use.
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
    // A library may take memory of the device for it, also while a graph is captured.
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
