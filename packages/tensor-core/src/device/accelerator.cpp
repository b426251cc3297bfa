// Python functions for device features beyond memory and kernels: streams, events, allocator
// statistics, and profiler ranges. accelerator_memory.cpp has pinned memory and inter-process
// sharing, accelerator_graphs.cpp has graphs. candelabra.accelerator is built on these functions.
#include <cstring>
#include <string>
#include <vector>

#include "device/accelerator_calls.hpp"

namespace candelabra {

namespace {

using namespace py::literals;

// ---- streams

Address stream_create(Device device, IntArgument priority) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_STREAMS) && type.table->stream_create, type, "streams");
  Address stream;
  succeed(type, "stream_create", type.table->stream_create(device.index, priority, &stream.value));
  return stream;
}

void stream_destroy(Device device, Address stream) {
  const DeviceType& type = device_type(device);
  if (stream.value && type.table->stream_destroy) type.table->stream_destroy(device.index, stream.value);
}

void stream_synchronize(Device device, Address stream) {
  const DeviceType& type = device_type(device);
  if (type.has(CB_CAP_STREAMS) && type.table->stream_synchronize)
    succeed(type, "stream_synchronize",
            unlocked([&] { return type.table->stream_synchronize(device.index, stream.value); }));
  else
    succeed(type, "synchronize", unlocked([&] { return type.table->synchronize(device.index); }));
}

bool stream_query(Device device, Address stream) {
  const DeviceType& type = device_type(device);
  int32_t done = 1;
  if (type.has(CB_CAP_STREAMS) && type.table->stream_query)
    succeed(type, "stream_query", type.table->stream_query(device.index, stream.value, &done));
  return done != 0;
}

py::tuple stream_priorities(Device device) {
  const DeviceType& type = device_type(device);
  int32_t least = 0, greatest = 0;
  if (const auto function = accelerator_of(type).stream_priorities)
    succeed(type, "stream_priorities", function(device.index, &least, &greatest));
  return py::make_tuple(least, greatest);
}

bool stream_is_capturing(Device device, Address stream) {
  const DeviceType& type = device_type(device);
  int32_t result = 0;
  if (const auto function = accelerator_of(type).stream_is_capturing)
    succeed(type, "stream_is_capturing", function(device.index, stream.value, &result));
  return result != 0;
}

Address current_stream_address(Device device) {
  return {current_stream(device)};
}

void set_current_stream_address(Device device, Address stream) {
  const DeviceType& type = device_type(device);
  require(!stream.value || type.has(CB_CAP_STREAMS), type, "streams");
  set_current_stream(device, stream.value);
}

int current_index_of_name(const py::str& name) {
  const char* characters = PyUnicode_AsUTF8(name.ptr());
  if (!characters) throw PythonError();
  const int type = find_device_type(characters);
  return type < 0 ? 0 : current_index(type);
}

void set_current_device(Device device) {
  set_current_index(device.type, device.index);
}

void record_stream(Storage* given, Address stream) {
  const Storage* storage = root_storage(given);
  const DeviceType& type = device_type(storage->device);
  // Adopted memory (release is set) is not from the allocator: its owner keeps it alive.
  if (storage->handle && !storage->release && type.has(CB_CAP_STREAMS) && type.table->stream_record_memory)
    succeed(type, "stream_record_memory",
            type.table->stream_record_memory(storage->device.index, storage->handle, stream.value));
}

// ---- events

Address event_create(Device device, IntArgument flags) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_EVENTS) && type.table->event_create, type, "events");
  Address event;
  succeed(type, "event_create", type.table->event_create(device.index, flags, &event.value));
  return event;
}

void event_destroy(Device device, Address event) {
  const DeviceType& type = device_type(device);
  if (event.value && type.table->event_destroy) type.table->event_destroy(device.index, event.value);
}

void event_record(Device device, Address event, Address stream) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_EVENTS) && type.table->event_record, type, "events");
  succeed(type, "event_record", type.table->event_record(device.index, event.value, stream.value));
}

void event_wait(Device device, Address event, Address stream) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_EVENTS) && type.table->event_wait, type, "events");
  succeed(type, "event_wait", type.table->event_wait(device.index, event.value, stream.value));
}

void event_synchronize(Device device, Address event) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_EVENTS) && type.table->event_synchronize, type, "events");
  succeed(type, "event_synchronize",
          unlocked([&] { return type.table->event_synchronize(device.index, event.value); }));
}

bool event_query(Device device, Address event) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_EVENTS) && type.table->event_query, type, "events");
  int32_t done = 0;
  succeed(type, "event_query", type.table->event_query(device.index, event.value, &done));
  return done != 0;
}

double event_elapsed(Device device, Address start, Address end) {
  const DeviceType& type = device_type(device);
  require(type.has(CB_CAP_EVENTS) && type.table->event_elapsed, type, "events");
  double milliseconds = 0;
  succeed(type, "event_elapsed", type.table->event_elapsed(device.index, start.value, end.value, &milliseconds));
  return milliseconds;
}

// ---- allocator statistics

struct NamedStatistic {
  const char* name;
  cb_statistic cb_memory_details::* statistic;
};
constexpr NamedStatistic statistics[] = {
    {"allocated_bytes", &cb_memory_details::allocated},
    {"requested_bytes", &cb_memory_details::requested},
    {"active_bytes", &cb_memory_details::active},
    {"reserved_bytes", &cb_memory_details::reserved},
    {"inactive_split_bytes", &cb_memory_details::inactive_split},
    {"allocation", &cb_memory_details::allocations},
    {"segment", &cb_memory_details::segments},
    {"active", &cb_memory_details::active_blocks},
    {"inactive_split", &cb_memory_details::inactive_split_blocks},
};
struct NamedCount {
  const char* name;
  int64_t cb_memory_details::* count;
};
constexpr NamedCount counts[] = {
    {"num_alloc_retries", &cb_memory_details::retry_count},
    {"num_ooms", &cb_memory_details::failure_count},
    {"num_sync_all_streams", &cb_memory_details::sync_count},
    {"num_device_alloc", &cb_memory_details::device_alloc_count},
    {"num_device_free", &cb_memory_details::device_free_count},
    {"limit", &cb_memory_details::limit},
};

py::dict statistics_dict(const cb_memory_details& details) {
  py::dict result;
  for (const NamedStatistic& each : statistics) {
    const cb_statistic& statistic = details.*each.statistic;
    const std::string name = std::string(each.name) + ".all.";
    result[py::str(name + "current")] = statistic.current;
    result[py::str(name + "peak")] = statistic.peak;
    result[py::str(name + "allocated")] = statistic.allocated;
    result[py::str(name + "freed")] = statistic.freed;
  }
  for (const NamedCount& each : counts) result[each.name] = details.*each.count;
  return result;
}

py::dict memory_details(Device device) {
  const DeviceType& type = device_type(device);
  cb_memory_details details{};
  details.size = sizeof details;
  details.limit = -1;
  if (const auto function = accelerator_of(type).memory_details) {
    succeed(type, "memory_details", function(device.index, &details));
  } else {  // the statistics that every backend has
    cb_memory_statistics basic{};
    basic.size = sizeof basic;
    succeed(type, "memory_statistics", type.table->memory_statistics(device.index, &basic));
    details.allocated.current = details.active.current = details.requested.current = basic.allocated;
    details.allocated.peak = details.active.peak = details.requested.peak = basic.allocated_peak;
    details.reserved.current = basic.reserved;
    details.reserved.peak = basic.reserved_peak;
    details.allocations.allocated = basic.allocation_count;
    details.device_alloc_count = basic.allocation_count - basic.cache_hit_count;
  }
  return statistics_dict(details);
}

py::dict pinned_details(Device device) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).pinned_details;
  require(function, type, "statistics of its pinned memory");
  cb_memory_details details{};
  details.size = sizeof details;
  details.limit = -1;
  succeed(type, "pinned_details", function(&details));
  return statistics_dict(details);
}

void reset_pinned(Device device, TruthArgument totals) {
  const DeviceType& type = device_type(device);
  const auto function = totals ? accelerator_of(type).reset_pinned_totals : accelerator_of(type).reset_pinned_peaks;
  require(function, type, "statistics of its pinned memory");
  succeed(type, "reset_pinned", function());
}

void set_caching(Device device, TruthArgument is_enabled) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).set_caching;
  require(function, type, "switch for its cache of memory");
  succeed(type, "set_caching", function(is_enabled));
}

void reset_memory_totals(Device device) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).reset_totals;
  require(function, type, "totals of its allocator");
  succeed(type, "reset_totals", function(device.index));
}

py::tuple memory_info(Device device) {
  const DeviceType& type = device_type(device);
  int64_t free_bytes = 0, total_bytes = 0;
  if (const auto function = accelerator_of(type).memory_info) {
    succeed(type, "memory_info", function(device.index, &free_bytes, &total_bytes));
  } else if (type.table->device_properties) {
    cb_device_properties properties{};
    properties.size = sizeof properties;
    succeed(type, "device_properties", type.table->device_properties(device.index, &properties));
    free_bytes = properties.free_memory;
    total_bytes = properties.total_memory;
  }
  return py::make_tuple(free_bytes, total_bytes);
}

py::dict block_dict(const cb_memory_block& block) {
  py::dict entry;
  entry["device"] = block.device;
  entry["segment_address"] = block.segment_address;
  entry["segment_size"] = block.segment_bytes;
  entry["stream"] = Address{block.stream};
  entry["pool"] = Address{block.pool};
  entry["is_expandable"] = block.is_expandable != 0;
  entry["is_large"] = block.is_large != 0;
  entry["address"] = block.address;
  entry["size"] = block.bytes;
  entry["requested_size"] = block.requested;
  entry["state"] = block.state == CB_BLOCK_ALLOCATED ? "active_allocated"
                   : block.state == CB_BLOCK_PENDING ? "active_pending_free"
                                                     : "inactive";
  return entry;
}

py::list memory_snapshot(Device device) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).memory_snapshot;
  require(function, type, "snapshot of its memory");
  // Copied first: the visitor must not allocate Python objects while the allocator is locked.
  std::vector<cb_memory_block> blocks;
  succeed(type, "memory_snapshot",
          function(
              device.index,
              [](void* context, const cb_memory_block* block) {
                static_cast<std::vector<cb_memory_block>*>(context)->push_back(*block);
              },
              &blocks));
  py::list result;
  for (const cb_memory_block& block : blocks) result.append(block_dict(block));
  return result;
}

py::dict device_details(Device device) {
  const DeviceType& type = device_type(device);
  cb_device_details d{};
  d.size = sizeof d;
  if (const auto function = accelerator_of(type).device_details)
    succeed(type, "device_details", function(device.index, &d));
  py::dict result;
  result["major"] = d.major;
  result["minor"] = d.minor;
  result["warp_size"] = d.warp_size;
  result["max_threads_per_multi_processor"] = d.threads_per_processor;
  result["max_threads_per_block"] = d.threads_per_block;
  result["clock_rate"] = d.clock_khz;
  result["L2_cache_size"] = d.l2_bytes;
  result["shared_memory_per_block"] = d.shared_bytes_per_block;
  result["shared_memory_per_block_optin"] = d.shared_bytes_per_block_optin;
  result["shared_memory_per_multiprocessor"] = d.shared_bytes_per_processor;
  result["regs_per_multiprocessor"] = d.registers_per_processor;
  result["is_integrated"] = d.is_integrated != 0;
  result["is_multi_gpu_board"] = d.is_multi_gpu_board != 0;
  result["pci_domain_id"] = d.pci_domain;
  result["pci_bus_id"] = d.pci_bus;
  result["pci_device_id"] = d.pci_device;
  result["driver_version"] = d.driver_version;
  result["runtime_version"] = d.runtime_version;
  result["uuid"] = py::bytes(reinterpret_cast<const char*>(d.uuid), sizeof d.uuid);
  return result;
}

bool can_access_peer(Device device, Device peer) {
  const DeviceType& type = device_type(device);
  int32_t result = device == peer;
  const auto function = accelerator_of(type).can_access_peer;
  if (function && device.type == peer.type)
    succeed(type, "can_access_peer", function(device.index, peer.index, &result));
  return result != 0;
}

// ---- profiler ranges and marks

void profiler_mark(Device device, TextArgument kind, TextArgument text) {
  const cb_accelerator& table = accelerator_of(device_type(device));
  if (std::strcmp(kind, "push") == 0) {
    if (table.range_push) table.range_push(text);
  } else if (std::strcmp(kind, "pop") == 0) {
    if (table.range_pop) table.range_pop();
  } else {
    check(std::strcmp(kind, "mark") == 0, PyExc_ValueError, "profiler_mark(): push, pop or mark, not ", kind.value);
    if (table.mark) table.mark(text);
  }
}

uint64_t profiler_range_start(Device device, TextArgument text) {
  const auto function = accelerator_of(device_type(device)).range_start;
  return function ? function(text) : 0;
}

void profiler_range_end(Device device, Uint64Argument range) {
  if (const auto function = accelerator_of(device_type(device)).range_end) function(range);
}

void profiler_record(Device device, TruthArgument is_recording) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).profiler_record;
  require(function, type, "profiler");
  succeed(type, "profiler_record", function(is_recording));
}

// ---- registration

void register_streams(py::module_& module) {
  module.def("stream_create", stream_create, "device"_a, "priority"_a,
             "Create a stream on a device with a priority; returns its address.");
  module.def("stream_destroy", stream_destroy, "device"_a, "stream"_a, "Destroy a stream.");
  module.def("stream_synchronize", stream_synchronize, "device"_a, "stream"_a,
             "Wait until all work queued on a stream is done.");
  module.def("stream_query", stream_query, "device"_a, "stream"_a, "Whether all work queued on a stream is done.");
  module.def("stream_priorities", stream_priorities, "device"_a, "The least and the greatest stream priority.");
  module.def("stream_is_capturing", stream_is_capturing, "device"_a, "stream"_a,
             "Whether a stream is capturing a graph.");
  module.def("current_stream", current_stream_address, "device"_a,
             "The address of this thread's current stream on a device; 0: the default stream.");
  module.def("set_current_stream", set_current_stream_address, "device"_a, "stream"_a,
             "Set this thread's current stream on a device.");
  module.def("current_index", current_index_of_name, "device_type"_a,
             "The index of this thread's current device of a type.");
  module.def("set_current_index", set_current_device, "device"_a, "Set this thread's current device of its type.");
  module.def("record_stream", record_stream, "storage"_a, "stream"_a,
             "Record that a stream uses the memory of a storage.");
}

void register_events(py::module_& module) {
  module.def("event_create", event_create, "device"_a, "flags"_a,
             "Create an event on a device; flags: 1 timing, 2 blocking, 4 interprocess.");
  module.def("event_destroy", event_destroy, "device"_a, "event"_a, "Destroy an event.");
  module.def("event_record", event_record, "device"_a, "event"_a, "stream"_a, "Record an event on a stream.");
  module.def("event_wait", event_wait, "device"_a, "event"_a, "stream"_a, "Make a stream wait for an event.");
  module.def("event_synchronize", event_synchronize, "device"_a, "event"_a, "Wait until an event completes.");
  module.def("event_query", event_query, "device"_a, "event"_a, "Whether an event has completed.");
  module.def("event_elapsed", event_elapsed, "device"_a, "start"_a, "end"_a, "Milliseconds between two events.");
}

void register_statistics(py::module_& module) {
  module.def("memory_details", memory_details, "device"_a, "All statistics of a device's allocator.");
  module.def("reset_memory_totals", reset_memory_totals, "device"_a, "Reset the totals of a device's allocator.");
  module.def("memory_info", memory_info, "device"_a, "Free and total memory of a device, in bytes.");
  module.def("memory_snapshot", memory_snapshot, "device"_a, "Every block of a device's allocator.");
  module.def("device_details", device_details, "device"_a, "Properties of a device beyond the basic ones.");
  module.def("can_access_peer", can_access_peer, "device"_a, "peer"_a,
             "Whether a device can access the memory of another one.");
  module.def("pinned_details", pinned_details, "device"_a, "All statistics of the cache of pinned memory.");
  module.def("reset_pinned", reset_pinned, "device"_a, "totals"_a,
             "Reset the peaks, or the totals, of the cache of pinned memory.");
  module.def("set_caching", set_caching, "device"_a, "enabled"_a, "Set whether a device type caches freed memory.");
}

void register_profiler(py::module_& module) {
  module.def("profiler_record", profiler_record, "device"_a, "recording"_a,
             "Start or stop recording by the vendor's profiler.");
  module.def("profiler_range_start", profiler_range_start, "device"_a, "text"_a,
             "Start a range in the vendor's profiler; returns its number.");
  module.def("profiler_range_end", profiler_range_end, "device"_a, "range"_a, "End a range in the vendor's profiler.");
  module.def("profiler_mark", profiler_mark, "device"_a, "kind"_a, "text"_a,
             "Push a range, pop one, or set a mark in the vendor's profiler.");
}

}  // namespace

void register_accelerator(py::module_& module) {
  register_streams(module);
  register_events(module);
  register_statistics(module);
  register_profiler(module);
}

}  // namespace candelabra
