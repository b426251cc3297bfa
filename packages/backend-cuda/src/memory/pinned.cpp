#include "memory/pinned.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "memory/allocator_blocks.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"

namespace candelabra::cuda {

namespace {

struct HostBlock {
  void* memory = nullptr;
  size_t bytes = 0;
  bool in_use = false;
  std::vector<cudaEvent_t> events;
};

struct HostCache {
  std::mutex mutex;
  std::unordered_map<const void*, HostBlock> blocks;
  std::multimap<size_t, void*> free_blocks;
  std::vector<void*> pending;  // freed blocks with pending events
  cb_memory_details statistics{};
};
HostCache& cache() {
  static auto* made = new HostCache();
  return *made;
}

// Requires the lock.
void mark_in_use(HostCache& all, HostBlock& block) {
  block.in_use = true;
  const auto bytes = static_cast<int64_t>(block.bytes);
  for (cb_statistic* statistic : {&all.statistics.allocated, &all.statistics.active, &all.statistics.requested})
    add(*statistic, bytes);
  add(all.statistics.allocations, 1);
  add(all.statistics.active_blocks, 1);
}

// Requires the lock and a block that neither the host nor a stream uses.
void is_free(HostCache& all, const HostBlock& block) {
  all.free_blocks.emplace(block.bytes, block.memory);
  add(all.statistics.active, -static_cast<int64_t>(block.bytes));
  add(all.statistics.active_blocks, -1);
}

// Requires the lock. Moves blocks whose events have completed to the free blocks.
void collect(HostCache& all) {
  std::erase_if(all.pending, [&](void* memory) {
    HostBlock& block = all.blocks[memory];
    std::erase_if(block.events, [](cudaEvent_t event) {
      const cudaError_t error = cudaEventQuery(event);
      if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
      }
      cudaEventDestroy(event);
      return true;
    });
    if (!block.events.empty()) return false;
    is_free(all, block);
    return true;
  });
}

}  // namespace

void* allocate_pinned(size_t bytes) {
  HostCache& all = cache();
  const size_t rounded = std::bit_ceil(std::max<size_t>(bytes, 4096));
  {
    const std::lock_guard lock(all.mutex);
    collect(all);
    const auto found = all.free_blocks.find(rounded);
    if (found != all.free_blocks.end()) {
      void* memory = found->second;
      all.free_blocks.erase(found);
      mark_in_use(all, all.blocks[memory]);
      return memory;
    }
  }
  const DeviceGuard guard(0);
  void* memory = nullptr;
  cudaError_t error = cudaHostAlloc(&memory, rounded, cudaHostAllocPortable);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    ++cache().statistics.retry_count;
    empty_pinned_cache();
    error = cudaHostAlloc(&memory, rounded, cudaHostAllocPortable);
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    throw failure(CB_OUT_OF_MEMORY, "%zu bytes of pinned host memory cannot be had: %s", rounded,
                  cudaGetErrorString(error));
  }
  const std::lock_guard lock(all.mutex);
  HostBlock& block = all.blocks[memory] = {memory, rounded, true, {}};
  ++all.statistics.device_alloc_count;
  add(all.statistics.reserved, static_cast<int64_t>(rounded));
  add(all.statistics.segments, 1);
  mark_in_use(all, block);
  return memory;
}

void deallocate_pinned(void* memory) noexcept {
  if (in_forked_child()) return;
  HostCache& all = cache();
  const std::lock_guard lock(all.mutex);
  const auto found = all.blocks.find(memory);
  if (found == all.blocks.end() || !found->second.in_use) return;
  HostBlock& block = found->second;
  block.in_use = false;
  add(all.statistics.allocated, -static_cast<int64_t>(block.bytes));
  add(all.statistics.requested, -static_cast<int64_t>(block.bytes));
  add(all.statistics.allocations, -1);
  if (block.events.empty())
    is_free(all, block);
  else
    all.pending.push_back(memory);
}

bool is_pinned(const void* memory) {
  if (!memory || device_count() == 0 || in_forked_child()) return false;
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

void record_pinned(void* memory, int device, cudaStream_t stream) {
  const DeviceGuard guard(device);
  HostCache& all = cache();
  const std::lock_guard lock(all.mutex);
  // The address may lie inside a block.
  const auto found = std::find_if(all.blocks.begin(), all.blocks.end(), [&](const auto& each) {
    const auto* base = static_cast<const char*>(each.second.memory);
    return memory >= base && memory < base + each.second.bytes;
  });
  if (found == all.blocks.end() || is_capturing(stream)) return;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  found->second.events.push_back(event);
  check(cudaEventRecord(event, stream), "recording an event");
}

void empty_pinned_cache() {
  HostCache& all = cache();
  const std::lock_guard lock(all.mutex);
  collect(all);
  for (const auto& [bytes, memory] : all.free_blocks) {
    all.blocks.erase(memory);
    ++all.statistics.device_free_count;
    add(all.statistics.reserved, -static_cast<int64_t>(bytes));
    add(all.statistics.segments, -1);
    check(cudaFreeHost(memory), "giving pinned memory back");
  }
  all.free_blocks.clear();
}

cb_memory_details pinned_details() {
  HostCache& all = cache();
  const std::lock_guard lock(all.mutex);
  collect(all);
  return all.statistics;
}

void reset_pinned_peaks() {
  HostCache& all = cache();
  const std::lock_guard lock(all.mutex);
  reset_peaks(all.statistics);
}

void reset_pinned_totals() {
  HostCache& all = cache();
  const std::lock_guard lock(all.mutex);
  reset_totals(all.statistics);
}

}  // namespace candelabra::cuda
