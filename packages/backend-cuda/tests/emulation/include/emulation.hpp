// The emulated runtime's own interface, for kernels (cuda_language.hpp) and for the emulated
// libraries.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace emulation {

// Queues work on a stream. It runs immediately, or when the host waits for the stream
// (CANDELABRA_EMULATION_DEFERRED=1), or at every launch of the graph that is being captured. The
// function must own copies of its inputs, as a kernel owns its arguments. Device memory may only be
// accessed in here.
cudaError_t queue(cudaStream_t stream, std::function<void()> work);
// The same for work that waits for another process. It and the work behind it run once `ready`
// returns true, which is polled whenever the host queries the stream. Cannot be captured.
cudaError_t queue_when(cudaStream_t stream, std::function<bool()> ready, std::function<void()> work);

// How to call a kernel: its address, and the addresses of copies of its arguments.
struct Signature {
  size_t count;
  const size_t* sizes;
  void (*call)(const void* kernel, void* const* arguments);
};
// Registers the argument types of a kernel for cudaLaunchKernel. Returns the kernel's address.
const void* register_kernel(const void* kernel, const Signature* signature);

// ---- for the threads of a kernel

struct Site {
  const char* file;
  int line;
};
enum class Vote : int { None, Count, And, Or };

int sync_block(Vote vote, int predicate, Site site);
// A value from each thread of a warp: `values` are those of the 32 lanes, `lanes` the mask of
// participants.
struct Exchanged {
  const uint64_t* values;
  unsigned lanes;
  unsigned own;  // lane
};
Exchanged exchange(unsigned mask, uint64_t value, Site site);
[[noreturn]] void trap(const char* text, Site site);
void* dynamic_shared();

}  // namespace emulation
