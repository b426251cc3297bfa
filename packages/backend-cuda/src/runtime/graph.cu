// CUDA graphs. Random numbers of a graph depend on two words in device memory. Every launch writes
// them first, so that each replay draws new numbers, as the same calls without a graph would.
#include "runtime/graph.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "memory/allocator.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

namespace candelabra::cuda {

namespace {

struct Capture {
  unsigned long long id = 0;
  cudaStream_t stream = nullptr;
  int device = 0;
  void* pool = nullptr;
  uint64_t random_offset = 0;
  uint64_t* counter = nullptr;  // seed and offset of a replay, in the pool's memory
  bool is_random = false;
};

struct Graph {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  int device = 0;
  void* pool = nullptr;
  uint64_t* counter = nullptr;
  bool is_random = false;
};

std::mutex mutex;
std::atomic<int> captures_under_way{0};
std::vector<std::unique_ptr<Capture>>& captures() {
  static auto* all = new std::vector<std::unique_ptr<Capture>>();
  return *all;
}

__global__ void set_counter(uint64_t* counter, uint64_t seed, uint64_t offset) {
  counter[0] = seed;
  counter[1] = offset;
}

void forget(Graph& graph) {
  if (graph.executable) cudaGraphExecDestroy(graph.executable);
  if (graph.graph) cudaGraphDestroy(graph.graph);
  cudaGetLastError();
  if (graph.counter) allocator(graph.device).deallocate(graph.counter);
}

}  // namespace

void graph_begin(int device, cudaStream_t stream, void* pool, int mode, uint64_t random_offset) {
  const DeviceGuard guard(device);
  if (!stream)
    throw failure(CB_RUNTIME_ERROR,
                  "CUDA graphs must be captured on a non-default stream (candelabra.cuda.graph makes one)");
  auto capture = std::make_unique<Capture>();
  capture->stream = stream;
  capture->device = device;
  capture->pool = pool;
  capture->random_offset = random_offset;
  capture->counter = static_cast<uint64_t*>(allocator(device).allocate(2 * sizeof(uint64_t), stream));
  allocator(device).begin_pool(pool, stream);
  try {
    constexpr cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                               cudaStreamCaptureModeRelaxed};
    check(cudaStreamBeginCapture(stream, modes[std::clamp(mode, 0, 2)]), "beginning to capture a graph");
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamGetCaptureInfo(stream, &status, &capture->id), "asking for the id of a capture");
    if (status != cudaStreamCaptureStatusActive)
      throw failure(CB_RUNTIME_ERROR, "the capture of a graph did not begin");
  } catch (...) {
    allocator(device).end_pool(pool);
    allocator(device).deallocate(capture->counter);
    throw;
  }
  const std::lock_guard lock(mutex);
  captures().push_back(std::move(capture));
  ++captures_under_way;
}

void* graph_end(int device, cudaStream_t stream) {
  const DeviceGuard guard(device);
  std::unique_ptr<Capture> capture;
  {
    const std::lock_guard lock(mutex);
    const auto found = std::find_if(captures().begin(), captures().end(),
                                    [&](const auto& each) { return each->stream == stream && each->device == device; });
    if (found == captures().end()) throw failure(CB_RUNTIME_ERROR, "no capture of a graph is under way on this stream");
    capture = std::move(*found);
    captures().erase(found);
    --captures_under_way;
  }
  auto graph = std::make_unique<Graph>();
  graph->device = device;
  graph->pool = capture->pool;
  graph->counter = capture->counter;
  graph->is_random = capture->is_random;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph->graph);
  allocator(device).end_pool(capture->pool);
  try {
    check(ended, "capturing a graph (an operator did what a capture cannot hold, such as waiting for the device)");
    check(cudaGraphInstantiate(&graph->executable, graph->graph, 0), "making a graph ready");
  } catch (...) {
    forget(*graph);
    throw;
  }
  return graph.release();
}

void graph_launch(int device, void* handle, cudaStream_t stream, uint64_t seed, uint64_t offset) {
  const DeviceGuard guard(device);
  const Graph& graph = *static_cast<Graph*>(handle);
  if (graph.is_random) {
    set_counter<<<1, 1, 0, stream>>>(graph.counter, seed, offset);
    check(cudaGetLastError(), "setting the random numbers of a graph");
  }
  check(cudaGraphLaunch(graph.executable, stream), "launching a graph");
  if (launch_blocking()) check(cudaStreamSynchronize(stream), "running a graph");
}

void graph_write_dot(void* handle, const char* path) {
  check(cudaGraphDebugDotPrint(static_cast<Graph*>(handle)->graph, path, cudaGraphDebugDotFlagsVerbose),
        "writing a graph");
}

void graph_destroy(int device, void* handle) {
  const std::unique_ptr<Graph> graph(static_cast<Graph*>(handle));
  const DeviceGuard guard(device);
  forget(*graph);
}

PhiloxState philox_state(const Call& call) {
  if (captures_under_way.load(std::memory_order_relaxed) > 0) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    check(cudaStreamGetCaptureInfo(call.stream(), &status, &id), "asking whether a stream is captured");
    if (status == cudaStreamCaptureStatusActive) {
      const std::lock_guard lock(mutex);
      for (const auto& capture : captures()) {
        if (capture->id != id) continue;
        capture->is_random = true;
        return {0, call.offset() - capture->random_offset, capture->counter};
      }
    }
  }
  return {call.seed(), call.offset(), nullptr};
}

}  // namespace candelabra::cuda
