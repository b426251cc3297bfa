// What the emulated runtime offers beside CUDA's own functions: to kernels (cuda_language.hpp), and
// to stand-ins of NVIDIA's libraries.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace emulation {

// Work of a stream: runs at once; or when somebody waits for the stream
// (CANDELABRA_EMULATION_DEFERRED=1); or at every launch of the graph that is being captured. It is
// given a copy of what it needs, as a kernel its arguments. Device memory may be touched in here
// and nowhere else.
cudaError_t queue(cudaStream_t stream, std::function<void()> work);
// The same for work that waits for something outside of this process: it and what is queued behind
// it run when `ready` says so. That is asked whenever somebody looks at the stream. Cannot be
// captured.
cudaError_t queue_when(cudaStream_t stream, std::function<bool()> ready, std::function<void()> work);

// How a kernel is called: its address, and the addresses of copies of its arguments.
struct Signature {
  size_t count;
  const size_t* sizes;
  void (*call)(const void* kernel, void* const* arguments);
};
// Says what a kernel takes; cudaLaunchKernel knows it by its address. Returns the address.
const void* register_kernel(const void* kernel, const Signature* signature);

// ---- for the threads of a kernel

struct Site {
  const char* file;
  int line;
};
enum class Vote : int { None, Count, And, Or };

int sync_block(Vote vote, int predicate, Site site);
// A warp's threads give a value each: `values` are those of the 32 lanes, of which `lanes` took
// part.
struct Exchanged {
  const uint64_t* values;
  unsigned lanes;
  unsigned own;  // lane
};
Exchanged exchange(unsigned mask, uint64_t value, Site site);
[[noreturn]] void trap(const char* text, Site site);
void* dynamic_shared();

}  // namespace emulation
