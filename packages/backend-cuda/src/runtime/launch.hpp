// Launching kernels: grids, checked launches, workspaces, reading results back, random counters.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "candelabra/random.hpp"
#include "dtypes.hpp"
#include "kernels.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/faults.hpp"

namespace candelabra::cuda {

// Throws if the last launch was rejected or an earlier kernel has failed.
inline void check_launch(const Call& call) {
  check(cudaGetLastError(), call.raw()->operator_name);
}

// Queues a kernel that takes one struct: launch_with(call, kernel, blocks, threads, &arguments).
// Generates less code per kernel than launch().
void launch_with(const Call& call, const void* kernel, dim3 blocks, dim3 threads, void* argument, size_t shared = 0);
inline void launch_with(const Call& call, const void* kernel, int64_t blocks, int threads, void* argument) {
  launch_with(call, kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), argument);
}

#ifdef __CUDACC__
// Queues a kernel on the call's stream:
//   launch(call, my_kernel<float>, blocks, threads, shared_bytes, arguments...);
// More than 48 KiB of shared memory are asked for on the way.
template <typename... Parameters, typename... Arguments>
void launch(const Call& call, void (*kernel)(Parameters...), dim3 blocks, dim3 threads, size_t shared,
            Arguments&&... arguments) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  if (shared > 48 * 1024)
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared)),
          call.raw()->operator_name);
  kernel<<<blocks, threads, shared, call.stream()>>>(std::forward<Arguments>(arguments)...);
  check_launch(call);
}
#endif

constexpr int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// The number of blocks for a grid-stride loop over `count`: enough to fill the device, but no more
// than there is work.
inline unsigned grid_for(const Call& call, int64_t count, int threads, int blocks_per_multiprocessor = 8) {
  const int64_t needed = divide_up(count, threads);
  const int64_t full = static_cast<int64_t>(device_traits(call.device()).multiprocessors) * blocks_per_multiprocessor;
  return static_cast<unsigned>(std::max<int64_t>(1, std::min(needed, full)));
}

// The grid-stride loop in a kernel:
//   for (int64_t i = first_index(); i < count; i += index_step())
#ifdef __CUDACC__
__device__ inline int64_t first_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t index_step() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}
#endif

// Device memory for the duration of a call, from the caching allocator. It may be freed while
// kernels that use it are still queued: the next owner works on the same stream, behind them.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Call& call, size_t bytes);
  Workspace(Workspace&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)),
        bytes_(other.bytes_),
        device_(other.device_),
        stream_(other.stream_) {}
  Workspace& operator=(Workspace&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  void* data() const { return memory_; }
  size_t bytes() const { return bytes_; }
  template <typename T>
  T* as(size_t byte_offset = 0) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + byte_offset);
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

// Copies a table (of addresses, of sizes) from the host to device memory. Throws during a capture,
// because a replay would copy from host memory that is gone. Pass tables of up to 4000 bytes to the
// kernel by value instead.
Workspace upload(const Call& call, const void* host, size_t bytes);
// Waits for the stream and reads device memory, for operators whose output shape depends on data.
// Throws during a capture.
void read_back(const Call& call, void* host, const void* device, size_t bytes);
template <typename T>
T read_back(const Call& call, const T* device) {
  T value;
  read_back(call, &value, device, sizeof value);
  return value;
}
void fill_bytes(const Call& call, void* memory, int value, size_t bytes);     // cudaMemsetAsync
void copy_bytes(const Call& call, void* to, const void* from, size_t bytes);  // within the device, on the stream

// The random numbers of a call (see random.hpp). In a graph the counter is read from memory, so
// that each replay draws new numbers.
struct PhiloxState {
  uint64_t seed;
  uint64_t offset;
  const uint64_t* replay;  // seed and first offset of this replay, or null
#ifdef __CUDACC__
  __device__ uint64_t key() const { return replay ? replay[0] : seed; }
  __device__ uint64_t first() const { return replay ? replay[1] + offset : offset; }
#endif
};
PhiloxState philox_state(const Call& call);

}  // namespace candelabra::cuda
