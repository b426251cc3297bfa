#include "runtime/accelerator.hpp"

#include <algorithm>
#include <cstring>

#include "memory/allocator.hpp"
#include "memory/copy.hpp"
#include "memory/ipc.hpp"
#include "memory/pinned.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/graph.hpp"
#include "runtime/nvtx.hpp"
#include "runtime/stream.hpp"
#include "vendor/nccl/collectives.hpp"

namespace candelabra::cuda {
namespace {

cudaStream_t as_stream(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

// Writes as much as the core's build has.
void give_details(const cb_memory_details& details, cb_memory_details& result) {
  const uint64_t size = result.size;
  std::memcpy(&result, &details, std::min<size_t>(size, sizeof details));
  result.size = size;
}

void add_device_functions(cb_accelerator& table) {
  table.device_details = [](int32_t device, cb_device_details* result) {
    return guarded([&] { read_details(device, *result); });
  };
  table.stream_priorities = [](int32_t device, int32_t* least, int32_t* greatest) {
    return guarded([&] { stream_priorities(device, *least, *greatest); });
  };
  table.stream_is_capturing = [](int32_t device, void* stream, int32_t* result) {
    return guarded([&] {
      const DeviceGuard guard(device);
      *result = is_capturing(as_stream(stream));
    });
  };
}

void add_memory_functions(cb_accelerator& table) {
  table.memory_details = [](int32_t device, cb_memory_details* result) {
    return guarded([&] {
      if (has_allocator(device)) give_details(allocator(device).details(), *result);
    });
  };
  table.reset_totals = [](int32_t device) { return guarded([&] { allocator(device).reset_totals(); }); };
  table.memory_snapshot = [](int32_t device, void (*visit)(void*, const cb_memory_block*), void* context) {
    return guarded([&] {
      if (has_allocator(device)) allocator(device).snapshot(visit, context);
    });
  };
  table.memory_info = [](int32_t device, int64_t* free_bytes, int64_t* total_bytes) {
    return guarded([&] {
      const DeviceGuard guard(device);
      size_t free = 0, total = 0;
      check(cudaMemGetInfo(&free, &total), "asking for the device's memory");
      *free_bytes = static_cast<int64_t>(free);
      *total_bytes = static_cast<int64_t>(total);
    });
  };
  table.set_caching = [](int32_t is_enabled) { return guarded([&] { set_caching(is_enabled != 0); }); };
  table.pool_create = [](int32_t device, void** pool) {
    return guarded([&] { *pool = allocator(device).create_pool(); });
  };
  table.pool_retain = [](int32_t device, void* pool) { return guarded([&] { allocator(device).retain_pool(pool); }); };
  table.pool_release = [](int32_t device, void* pool) {
    return guarded([&] { allocator(device).release_pool(pool); });
  };
  table.pool_begin = [](int32_t device, void* pool) {
    return guarded([&] { allocator(device).begin_pool_of_thread(pool); });
  };
  table.pool_end = [](int32_t device, void* pool) {
    return guarded([&] { allocator(device).end_pool_of_thread(pool); });
  };
}

void add_pinned_memory_functions(cb_accelerator& table) {
  table.allocate_pinned = [](size_t bytes, void** result) {
    return guarded([&] { *result = allocate_pinned(bytes); });
  };
  table.deallocate_pinned = [](void* memory, size_t) { deallocate_pinned(memory); };
  table.is_pinned = [](const void* memory, int32_t* result) { return guarded([&] { *result = is_pinned(memory); }); };
  table.record_pinned = [](void* memory, int32_t device, void* stream) {
    return guarded([&] { record_pinned(memory, device, as_stream(stream)); });
  };
  table.empty_pinned_cache = [] { guarded([] { empty_pinned_cache(); }); };
  table.pinned_details = [](cb_memory_details* result) {
    return guarded([&] {
      cb_memory_details details = pinned_details();
      details.limit = -1;
      give_details(details, *result);
    });
  };
  table.reset_pinned_peaks = [] { return guarded([] { reset_pinned_peaks(); }); };
  table.reset_pinned_totals = [] { return guarded([] { reset_pinned_totals(); }); };
}

void add_copy_functions(cb_accelerator& table) {
  table.copy_from_host_async = [](int32_t device, const cb_memory* to, const void* from, uint64_t bytes, void* stream) {
    return guarded([&] { copy_from_host_async(device, to->address, from, bytes, as_stream(stream)); });
  };
  table.copy_to_host_async = [](int32_t device, void* to, const cb_memory* from, uint64_t bytes, void* stream) {
    return guarded([&] { copy_to_host_async(device, to, from->address, bytes, as_stream(stream)); });
  };
  table.can_access_peer = [](int32_t device, int32_t peer, int32_t* result) {
    return guarded([&] { *result = can_access_peer(device, peer); });
  };
  table.copy_peer = [](int32_t to_device, const cb_memory* to, int32_t from_device, const cb_memory* from,
                       uint64_t bytes, void* stream) {
    return guarded([&] { copy_peer(to_device, to->address, from_device, from->address, bytes, as_stream(stream)); });
  };
}

void add_ipc_functions(cb_accelerator& table) {
  table.ipc_export_memory = [](int32_t device, void* memory, cb_ipc_handle* result) {
    return guarded([&] { export_memory(device, memory, *result); });
  };
  table.ipc_open_memory = [](int32_t device, const cb_ipc_handle* handle, void** base) {
    return guarded([&] { *base = open_memory(device, *handle); });
  };
  table.ipc_close_memory = [](int32_t device, void* base) { return guarded([&] { close_memory(device, base); }); };
  table.ipc_export_event = [](int32_t device, void* event, cb_ipc_handle* result) {
    return guarded([&] { export_event(device, static_cast<cudaEvent_t>(event), *result); });
  };
  table.ipc_open_event = [](int32_t device, const cb_ipc_handle* handle, void** event) {
    return guarded([&] { *event = open_event(device, *handle); });
  };
}

void add_graph_functions(cb_accelerator& table) {
  table.graph_begin = [](int32_t device, void* stream, void* pool, int32_t mode, uint64_t random_offset) {
    return guarded([&] { graph_begin(device, as_stream(stream), pool, mode, random_offset); });
  };
  table.graph_end = [](int32_t device, void* stream, void** graph) {
    return guarded([&] { *graph = graph_end(device, as_stream(stream)); });
  };
  table.graph_launch = [](int32_t device, void* graph, void* stream, uint64_t seed, uint64_t offset) {
    return guarded([&] { graph_launch(device, graph, as_stream(stream), seed, offset); });
  };
  table.graph_write_dot = [](int32_t, void* graph, const char* path) {
    return guarded([&] { graph_write_dot(graph, path); });
  };
  table.graph_destroy = [](int32_t device, void* graph) { guarded([&] { graph_destroy(device, graph); }); };
}

void add_profiling_functions(cb_accelerator& table) {
  table.range_push = range_push;
  table.range_pop = range_pop;
  table.mark = mark;
  table.range_start = range_start;
  table.range_end = range_end;
  table.profiler_record = [](int32_t is_recording) { return guarded([&] { record_profile(is_recording != 0); }); };
}

cb_accelerator make_table() {
  cb_accelerator table{};
  table.size = sizeof table;
  add_device_functions(table);
  add_memory_functions(table);
  add_pinned_memory_functions(table);
  add_copy_functions(table);
  add_ipc_functions(table);
  add_graph_functions(table);
  add_profiling_functions(table);
  table.collectives = collectives();
  return table;
}

}  // namespace

const cb_accelerator* accelerator_table() {
  static const cb_accelerator table = make_table();
  return &table;
}

}  // namespace candelabra::cuda
