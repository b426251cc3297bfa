#include "runtime/stream.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/faults.hpp"
#include "runtime/sync_debug.hpp"

namespace candelabra::cuda {

namespace {

std::mutex mutex;
struct Streams {
  std::map<std::pair<int, int>, std::vector<cudaStream_t>> unused;  // returned streams by device and priority
  std::map<cudaStream_t, int> priorities;
};
Streams& streams() {
  static auto* all = new Streams();
  return *all;
}

}  // namespace

void stream_priorities(int device, int& least, int& greatest) {
  const DeviceGuard guard(device);
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for the priorities of streams");
}

cudaStream_t stream_create(int device, int priority) {
  int least = 0, greatest = 0;
  stream_priorities(device, least, greatest);
  priority = std::clamp(priority, greatest, least);
  const std::lock_guard lock(mutex);
  auto& unused = streams().unused[{device, priority}];
  if (!unused.empty()) {
    const cudaStream_t stream = unused.back();
    unused.pop_back();
    return stream;
  }
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "making a stream");
  streams().priorities[stream] = priority;
  return stream;
}

void stream_destroy(int device, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  const auto found = streams().priorities.find(stream);
  if (found != streams().priorities.end()) streams().unused[{device, found->second}].push_back(stream);
}

void stream_synchronize(int device, cudaStream_t stream) {
  const DeviceGuard guard(device);
  about_to_wait();
  check(cudaStreamSynchronize(stream), "waiting for a stream");
  raise_fault_of(device);
}

bool stream_query(int device, cudaStream_t stream) {
  const DeviceGuard guard(device);
  const cudaError_t error = cudaStreamQuery(stream);
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(error, "asking a stream");
  return true;
}

}  // namespace candelabra::cuda
