// The parts of the emulated machine: devices, memory, streams. One lock protects all of it; work of
// a device runs under the lock.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "emulation.hpp"

namespace emulation {

constexpr int device_count = 2;
constexpr int multiprocessors = 4;  // few, so that grid-stride loops iterate
constexpr size_t shared_by_default = 48 * 1024, shared_at_most = 227 * 1024;

// A recursive lock that a thread can release completely while it waits for another one.
class MachineMutex {
 public:
  void lock() {
    mutex_.lock();
    ++depth_;
  }
  void unlock() {
    --depth_;
    mutex_.unlock();
  }
  int release() {
    const int depth = std::exchange(depth_, 0);
    for (int i = 0; i < depth; ++i) mutex_.unlock();
    return depth;
  }
  void take_again(int depth) {
    for (int i = 0; i < depth; ++i) lock();
  }

 private:
  std::recursive_mutex mutex_;
  int depth_ = 0;  // of the owner
};
MachineMutex& machine_mutex();
using Lock = std::lock_guard<MachineMutex>;

// ---- errors (device.cpp)

// Sets the error for cudaGetLastError. `text` becomes the result of cudaGetErrorString.
cudaError_t failed(cudaError_t error);
cudaError_t failed(cudaError_t error, const std::string& text);
// A failure of work that runs on the device.
struct DeviceFailure {
  cudaError_t error;
  std::string text;
};

int& current_device();
int& running_device();              // the device of the stream whose work runs now
bool is_set(const char* variable);  // an environment variable, to anything but 0

// ---- memory (memory.cpp)

struct Allocation {
  char* base;
  size_t bytes;
  int device;
  bool opened;  // of another process
};
// The live allocation of device memory that holds these bytes, or null.
const Allocation* allocation_of(const void* memory, size_t bytes = 1);
std::string describe_address(const void* address);
// Makes device memory accessible for its lifetime (see CANDELABRA_EMULATION_GUARD=host).
class DeviceAccess {
 public:
  DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
  ~DeviceAccess();
};
// Restricts DeviceAccess to the memory that a kernel of this device can access, for its lifetime.
class KernelAccess {
 public:
  explicit KernelAccess(int device);
  KernelAccess(const KernelAccess&) = delete;
  KernelAccess& operator=(const KernelAccess&) = delete;
  ~KernelAccess();

 private:
  int device_;
};
bool is_peer(int device, int peer);  // whether one device may access the other's memory (device.cpp)

// ---- kernels (grid.cpp)

struct Launch {
  const void* kernel;
  const Signature* signature;
  dim3 blocks, threads;
  size_t shared;
  std::shared_ptr<char[]> arguments;  // copies, each at a multiple of 16
};
void run_grid(const Launch& launch);  // throws DeviceFailure

// ---- streams (streams.cpp)

// Whether this thread may not call functions that would disturb a capture. If so, invalidates the
// capture.
bool disturbs_capture();
cudaError_t wait_for_device(int device);

}  // namespace emulation
