#include "memory/ipc.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "memory/allocator.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

namespace candelabra::cuda {

namespace {

// A process opens a block once, for all tensors in it.
struct Opened {
  void* base;
  int count;
};
std::mutex mutex;
std::map<std::string, Opened>& opened() {
  static auto* all = new std::map<std::string, Opened>();
  return *all;
}

std::string key_of(int device, const cb_ipc_handle& handle) {
  return std::to_string(device) + std::string(reinterpret_cast<const char*>(handle.bytes), sizeof handle.bytes);
}

}  // namespace

void export_memory(int device, void* memory, cb_ipc_handle& result) {
  const DeviceGuard guard(device);
  void* base = nullptr;
  size_t bytes = 0;
  if (!allocator(device).find_segment(memory, &base, &bytes))
    throw failure(CB_RUNTIME_ERROR,
                  "this memory cannot be shared with other processes: it is not of the allocator of device %d, or of "
                  "an expandable "
                  "segment (CANDELABRA_CUDA_ALLOC_CONF)",
                  device);
  cudaIpcMemHandle_t handle{};
  check(cudaIpcGetMemHandle(&handle, base), "sharing memory with other processes");
  static_assert(sizeof handle <= sizeof result.bytes);
  std::memset(result.bytes, 0, sizeof result.bytes);
  std::memcpy(result.bytes, &handle, sizeof handle);
  result.offset = static_cast<uint64_t>(static_cast<char*>(memory) - static_cast<char*>(base));
  result.block_bytes = bytes;
}

void* open_memory(int device, const cb_ipc_handle& handle) {
  const DeviceGuard guard(device);
  const std::lock_guard lock(mutex);
  const std::string key = key_of(device, handle);
  if (const auto found = opened().find(key); found != opened().end()) {
    ++found->second.count;
    return found->second.base;
  }
  cudaIpcMemHandle_t native{};
  std::memcpy(&native, handle.bytes, sizeof native);
  void* base = nullptr;
  check(cudaIpcOpenMemHandle(&base, native, cudaIpcMemLazyEnablePeerAccess), "opening the memory of another process");
  opened()[key] = {base, 1};
  return base;
}

void close_memory(int device, void* base) {
  const DeviceGuard guard(device);
  const std::lock_guard lock(mutex);
  for (auto each = opened().begin(); each != opened().end(); ++each) {
    if (each->second.base != base) continue;
    if (--each->second.count == 0) {
      opened().erase(each);
      check(cudaIpcCloseMemHandle(base), "closing the memory of another process");
    }
    return;
  }
  throw failure(CB_RUNTIME_ERROR, "no memory of another process is open at this address");
}

void export_event(int device, cudaEvent_t event, cb_ipc_handle& result) {
  const DeviceGuard guard(device);
  cudaIpcEventHandle_t handle{};
  check(cudaIpcGetEventHandle(&handle, event),
        "sharing an event with other processes (it must be made with interprocess=True)");
  static_assert(sizeof handle <= sizeof result.bytes);
  std::memset(result.bytes, 0, sizeof result.bytes);
  std::memcpy(result.bytes, &handle, sizeof handle);
  result.offset = result.block_bytes = 0;
}

cudaEvent_t open_event(int device, const cb_ipc_handle& handle) {
  const DeviceGuard guard(device);
  cudaIpcEventHandle_t native{};
  std::memcpy(&native, handle.bytes, sizeof native);
  cudaEvent_t event = nullptr;
  check(cudaIpcOpenEventHandle(&event, native), "opening the event of another process");
  return event;
}

}  // namespace candelabra::cuda
