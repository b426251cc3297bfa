#include "runtime/launch.hpp"

#include "memory/allocator.hpp"
#include "runtime/sync_debug.hpp"

namespace candelabra::cuda {

void launch_with(const Call& call, const void* kernel, dim3 blocks, dim3 threads, void* argument, size_t shared) {
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0) return;
  void* arguments[] = {argument};
  check(cudaLaunchKernel(kernel, blocks, threads, arguments, shared, call.stream()), call.raw()->operator_name);
}

Workspace::Workspace(const Call& call, size_t bytes) : bytes_(bytes), device_(call.device()), stream_(call.stream()) {
  if (bytes) memory_ = allocator(device_).allocate(bytes, stream_);
}

Workspace::~Workspace() {
  if (memory_) allocator(device_).deallocate(memory_);
}

Workspace upload(const Call& call, const void* host, size_t bytes) {
  if (is_capturing(call.stream()))
    throw failure(CB_RUNTIME_ERROR, "%s: cannot be captured in a graph with arguments of this size",
                  call.raw()->operator_name);
  Workspace memory(call, bytes);
  if (bytes)
    check(cudaMemcpyAsync(memory.data(), host, bytes, cudaMemcpyHostToDevice, call.stream()),
          call.raw()->operator_name);
  return memory;
}

void read_back(const Call& call, void* host, const void* device, size_t bytes) {
  if (is_capturing(call.stream()))
    throw failure(CB_RUNTIME_ERROR, "%s: cannot be captured in a graph: the shape of its result depends on data",
                  call.raw()->operator_name);
  about_to_wait();
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, call.stream()), call.raw()->operator_name);
  check(cudaStreamSynchronize(call.stream()), call.raw()->operator_name);
  raise_fault_of(call.device());
}

void fill_bytes(const Call& call, void* memory, int value, size_t bytes) {
  if (bytes) check(cudaMemsetAsync(memory, value, bytes, call.stream()), call.raw()->operator_name);
}

void copy_bytes(const Call& call, void* to, const void* from, size_t bytes) {
  if (bytes && to != from)
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, call.stream()), call.raw()->operator_name);
}

}  // namespace candelabra::cuda
