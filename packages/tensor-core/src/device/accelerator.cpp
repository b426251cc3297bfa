// Python functions for device features beyond memory and kernels: streams, events, allocator
// statistics, and profiler ranges. accelerator_memory.cpp has pinned memory and inter-process
// sharing, accelerator_graphs.cpp has graphs. candelabra.accelerator is built on these functions.
#define PY_SSIZE_T_CLEAN  // lengths of bytes are Py_ssize_t
#include <Python.h>

#include <cstring>
#include <string>
#include <vector>

#include "device/accelerator_calls.hpp"
#include "device/streams.hpp"
#include "interop/interop.hpp"
#include "memory/storage.hpp"

namespace candelabra {

namespace {

// ---- streams

PyObject* stream_create(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int priority;
    if (!PyArg_ParseTuple(arguments, "Oi:stream_create", &object, &priority)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require(type.has(CB_CAP_STREAMS) && type.table->stream_create, type, "streams");
    void* stream = nullptr;
    succeed(type, "stream_create", type.table->stream_create(device.index, priority, &stream));
    return PyLong_FromVoidPtr(stream);
  });
}

PyObject* stream_destroy(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:stream_destroy", [](Device device, const DeviceType& type, void* stream) {
    if (stream && type.table->stream_destroy) type.table->stream_destroy(device.index, stream);
    return Py_NewRef(Py_None);
  });
}

PyObject* stream_synchronize(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:stream_synchronize", [](Device device, const DeviceType& type, void* stream) {
    if (type.has(CB_CAP_STREAMS) && type.table->stream_synchronize)
      succeed(type, "stream_synchronize",
              unlocked([&] { return type.table->stream_synchronize(device.index, stream); }));
    else
      succeed(type, "synchronize", unlocked([&] { return type.table->synchronize(device.index); }));
    return Py_NewRef(Py_None);
  });
}

PyObject* stream_query(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:stream_query", [](Device device, const DeviceType& type, void* stream) {
    int32_t done = 1;
    if (type.has(CB_CAP_STREAMS) && type.table->stream_query)
      succeed(type, "stream_query", type.table->stream_query(device.index, stream, &done));
    return PyBool_FromLong(done);
  });
}

PyObject* stream_priorities(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const Device device = device_from_object(argument);
    const DeviceType& type = device_type(device);
    int32_t least = 0, greatest = 0;
    if (const auto function = accelerator_of(type).stream_priorities)
      succeed(type, "stream_priorities", function(device.index, &least, &greatest));
    return Py_BuildValue("ii", least, greatest);
  });
}

PyObject* stream_is_capturing(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:stream_is_capturing", [](Device device, const DeviceType& type, void* stream) {
    int32_t result = 0;
    if (const auto function = accelerator_of(type).stream_is_capturing)
      succeed(type, "stream_is_capturing", function(device.index, stream, &result));
    return PyBool_FromLong(result);
  });
}

PyObject* current_stream_function(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr),
                   [&] { return PyLong_FromVoidPtr(current_stream(device_from_object(argument))); });
}

PyObject* set_current_stream_function(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:set_current_stream", [](Device device, const DeviceType& type, void* stream) {
    require(!stream || type.has(CB_CAP_STREAMS), type, "streams");
    set_current_stream(device, stream);
    return Py_NewRef(Py_None);
  });
}

PyObject* current_index_function(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const char* name = PyUnicode_AsUTF8(argument);
    if (!name) return nullptr;
    const int type = find_device_type(name);
    return PyLong_FromLong(type < 0 ? 0 : current_index(type));
  });
}

PyObject* set_current_index_function(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const Device device = device_from_object(argument);
    set_current_index(device.type, device.index);
    return Py_NewRef(Py_None);
  });
}

PyObject* record_stream(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *address;
    if (!PyArg_ParseTuple(arguments, "OO:record_stream", &object, &address)) return nullptr;
    const Storage* storage = root_storage(storage_from_object(object));
    const DeviceType& type = device_type(storage->device);
    // Adopted memory (release is set) is not from the allocator: its owner keeps it alive.
    if (storage->handle && !storage->release && type.has(CB_CAP_STREAMS) && type.table->stream_record_memory)
      succeed(type, "stream_record_memory",
              type.table->stream_record_memory(storage->device.index, storage->handle, address_of(address)));
    Py_RETURN_NONE;
  });
}

// ---- events

PyObject* event_create(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int flags;
    if (!PyArg_ParseTuple(arguments, "Oi:event_create", &object, &flags)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require(type.has(CB_CAP_EVENTS) && type.table->event_create, type, "events");
    void* event = nullptr;
    succeed(type, "event_create", type.table->event_create(device.index, flags, &event));
    return PyLong_FromVoidPtr(event);
  });
}

PyObject* event_destroy(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:event_destroy", [](Device device, const DeviceType& type, void* event) {
    if (event && type.table->event_destroy) type.table->event_destroy(device.index, event);
    return Py_NewRef(Py_None);
  });
}

using EventFunction = int32_t (*cb_backend::*)(int32_t device, void* event, void* stream);

PyObject* event_on_stream(PyObject* arguments, const char* name, EventFunction function) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *event, *stream;
    if (!PyArg_ParseTuple(arguments, "OOO", &object, &event, &stream)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require(type.has(CB_CAP_EVENTS) && type.table->*function, type, "events");
    succeed(type, name, (type.table->*function)(device.index, address_of(event), address_of(stream)));
    Py_RETURN_NONE;
  });
}
PyObject* event_record(PyObject*, PyObject* arguments) {
  return event_on_stream(arguments, "event_record", &cb_backend::event_record);
}
PyObject* event_wait(PyObject*, PyObject* arguments) {
  return event_on_stream(arguments, "event_wait", &cb_backend::event_wait);
}

PyObject* event_synchronize(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:event_synchronize", [](Device device, const DeviceType& type, void* event) {
    require(type.has(CB_CAP_EVENTS) && type.table->event_synchronize, type, "events");
    succeed(type, "event_synchronize", unlocked([&] { return type.table->event_synchronize(device.index, event); }));
    return Py_NewRef(Py_None);
  });
}

PyObject* event_query(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:event_query", [](Device device, const DeviceType& type, void* event) {
    require(type.has(CB_CAP_EVENTS) && type.table->event_query, type, "events");
    int32_t done = 0;
    succeed(type, "event_query", type.table->event_query(device.index, event, &done));
    return PyBool_FromLong(done);
  });
}

PyObject* event_elapsed(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *start, *end;
    if (!PyArg_ParseTuple(arguments, "OOO:event_elapsed", &object, &start, &end)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    require(type.has(CB_CAP_EVENTS) && type.table->event_elapsed, type, "events");
    double milliseconds = 0;
    succeed(type, "event_elapsed",
            type.table->event_elapsed(device.index, address_of(start), address_of(end), &milliseconds));
    return PyFloat_FromDouble(milliseconds);
  });
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

void set_item(PyObject* dictionary, const std::string& key, int64_t value) {
  const Ref<> number = owned(PyLong_FromLongLong(value));
  if (PyDict_SetItemString(dictionary, key.c_str(), number.get()) < 0) throw PythonError();
}

Ref<> statistics_object(const cb_memory_details& details) {
  Ref<> result = owned(PyDict_New());
  for (const NamedStatistic& each : statistics) {
    const cb_statistic& statistic = details.*each.statistic;
    const std::string name = std::string(each.name) + ".all.";
    set_item(result.get(), name + "current", statistic.current);
    set_item(result.get(), name + "peak", statistic.peak);
    set_item(result.get(), name + "allocated", statistic.allocated);
    set_item(result.get(), name + "freed", statistic.freed);
  }
  for (const NamedCount& each : counts) set_item(result.get(), each.name, details.*each.count);
  return result;
}

PyObject* memory_details(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const Device device = device_from_object(argument);
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
    return statistics_object(details).release();
  });
}

PyObject* pinned_details(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const DeviceType& type = device_type(device_from_object(argument));
    const auto function = accelerator_of(type).pinned_details;
    require(function, type, "statistics of its pinned memory");
    cb_memory_details details{};
    details.size = sizeof details;
    details.limit = -1;
    succeed(type, "pinned_details", function(&details));
    return statistics_object(details).release();
  });
}

PyObject* reset_pinned(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int totals;
    if (!PyArg_ParseTuple(arguments, "Op:reset_pinned", &object, &totals)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    const auto function = totals ? accelerator_of(type).reset_pinned_totals : accelerator_of(type).reset_pinned_peaks;
    require(function, type, "statistics of its pinned memory");
    succeed(type, "reset_pinned", function());
    Py_RETURN_NONE;
  });
}

PyObject* set_caching(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int is_enabled;
    if (!PyArg_ParseTuple(arguments, "Op:set_caching", &object, &is_enabled)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    const auto function = accelerator_of(type).set_caching;
    require(function, type, "switch for its cache of memory");
    succeed(type, "set_caching", function(is_enabled));
    Py_RETURN_NONE;
  });
}

PyObject* reset_memory_totals(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const Device device = device_from_object(argument);
    const DeviceType& type = device_type(device);
    const auto function = accelerator_of(type).reset_totals;
    require(function, type, "totals of its allocator");
    succeed(type, "reset_totals", function(device.index));
    return Py_NewRef(Py_None);
  });
}

PyObject* memory_info(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const Device device = device_from_object(argument);
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
    return Py_BuildValue("LL", static_cast<long long>(free_bytes), static_cast<long long>(total_bytes));
  });
}

PyObject* memory_snapshot(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const Device device = device_from_object(argument);
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
    Ref<> result = owned(PyList_New(0));
    for (const cb_memory_block& block : blocks) {
      const char* state = block.state == CB_BLOCK_ALLOCATED ? "active_allocated"
                          : block.state == CB_BLOCK_PENDING ? "active_pending_free"
                                                            : "inactive";
      const Ref<> entry = owned(Py_BuildValue(
          "{s:i,s:K,s:K,s:K,s:K,s:O,s:O,s:K,s:K,s:K,s:s}", "device", block.device, "segment_address",
          static_cast<unsigned long long>(block.segment_address), "segment_size",
          static_cast<unsigned long long>(block.segment_bytes), "stream",
          static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(block.stream)), "pool",
          static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(block.pool)), "is_expandable",
          block.is_expandable ? Py_True : Py_False, "is_large", block.is_large ? Py_True : Py_False, "address",
          static_cast<unsigned long long>(block.address), "size", static_cast<unsigned long long>(block.bytes),
          "requested_size", static_cast<unsigned long long>(block.requested), "state", state));
      if (PyList_Append(result.get(), entry.get()) < 0) return nullptr;
    }
    return result.release();
  });
}

PyObject* device_details(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const Device device = device_from_object(argument);
    const DeviceType& type = device_type(device);
    cb_device_details d{};
    d.size = sizeof d;
    if (const auto function = accelerator_of(type).device_details)
      succeed(type, "device_details", function(device.index, &d));
    return Py_BuildValue(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:L,s:L,s:L,s:L,s:i,s:O,s:O,s:i,s:i,s:i,s:i,s:i,s:y#}", "major", d.major, "minor",
        d.minor, "warp_size", d.warp_size, "max_threads_per_multi_processor", d.threads_per_processor,
        "max_threads_per_block", d.threads_per_block, "clock_rate", d.clock_khz, "L2_cache_size",
        static_cast<long long>(d.l2_bytes), "shared_memory_per_block", static_cast<long long>(d.shared_bytes_per_block),
        "shared_memory_per_block_optin", static_cast<long long>(d.shared_bytes_per_block_optin),
        "shared_memory_per_multiprocessor", static_cast<long long>(d.shared_bytes_per_processor),
        "regs_per_multiprocessor", d.registers_per_processor, "is_integrated", d.is_integrated ? Py_True : Py_False,
        "is_multi_gpu_board", d.is_multi_gpu_board ? Py_True : Py_False, "pci_domain_id", d.pci_domain, "pci_bus_id",
        d.pci_bus, "pci_device_id", d.pci_device, "driver_version", d.driver_version, "runtime_version",
        d.runtime_version, "uuid", reinterpret_cast<const char*>(d.uuid), static_cast<Py_ssize_t>(sizeof d.uuid));
  });
}

PyObject* can_access_peer(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *other;
    if (!PyArg_ParseTuple(arguments, "OO:can_access_peer", &object, &other)) return nullptr;
    const Device device = device_from_object(object), peer = device_from_object(other);
    const DeviceType& type = device_type(device);
    int32_t result = device == peer;
    const auto function = accelerator_of(type).can_access_peer;
    if (function && device.type == peer.type)
      succeed(type, "can_access_peer", function(device.index, peer.index, &result));
    return PyBool_FromLong(result);
  });
}

// ---- profiler ranges and marks

PyObject* profiler_mark(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    const char* kind;
    const char* text;
    if (!PyArg_ParseTuple(arguments, "Oss:profiler_mark", &object, &kind, &text)) return nullptr;
    const cb_accelerator& table = accelerator_of(device_type(device_from_object(object)));
    if (std::strcmp(kind, "push") == 0) {
      if (table.range_push) table.range_push(text);
    } else if (std::strcmp(kind, "pop") == 0) {
      if (table.range_pop) table.range_pop();
    } else {
      check(std::strcmp(kind, "mark") == 0, PyExc_ValueError, "profiler_mark(): push, pop or mark, not ", kind);
      if (table.mark) table.mark(text);
    }
    Py_RETURN_NONE;
  });
}

PyObject* profiler_range_start(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    const char* text;
    if (!PyArg_ParseTuple(arguments, "Os:profiler_range_start", &object, &text)) return nullptr;
    const auto function = accelerator_of(device_type(device_from_object(object))).range_start;
    return PyLong_FromUnsignedLongLong(function ? function(text) : 0);
  });
}

PyObject* profiler_range_end(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    unsigned long long range;
    if (!PyArg_ParseTuple(arguments, "OK:profiler_range_end", &object, &range)) return nullptr;
    if (const auto function = accelerator_of(device_type(device_from_object(object))).range_end) function(range);
    Py_RETURN_NONE;
  });
}

PyObject* profiler_record(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    int is_recording;
    if (!PyArg_ParseTuple(arguments, "Op:profiler_record", &object, &is_recording)) return nullptr;
    const DeviceType& type = device_type(device_from_object(object));
    const auto function = accelerator_of(type).profiler_record;
    require(function, type, "profiler");
    succeed(type, "profiler_record", function(is_recording));
    Py_RETURN_NONE;
  });
}

}  // namespace

PyMethodDef accelerator_functions[] = {
    {"stream_create", stream_create, METH_VARARGS, "Create a stream on a device with a priority; returns its address."},
    {"stream_destroy", stream_destroy, METH_VARARGS, "Destroy a stream."},
    {"stream_synchronize", stream_synchronize, METH_VARARGS, "Wait until all work queued on a stream is done."},
    {"stream_query", stream_query, METH_VARARGS, "Whether all work queued on a stream is done."},
    {"stream_priorities", stream_priorities, METH_O, "The least and the greatest stream priority."},
    {"stream_is_capturing", stream_is_capturing, METH_VARARGS, "Whether a stream is capturing a graph."},
    {"current_stream", current_stream_function, METH_O,
     "The address of this thread's current stream on a device; 0: the default stream."},
    {"set_current_stream", set_current_stream_function, METH_VARARGS, "Set this thread's current stream on a device."},
    {"current_index", current_index_function, METH_O, "The index of this thread's current device of a type."},
    {"set_current_index", set_current_index_function, METH_O, "Set this thread's current device of its type."},
    {"record_stream", record_stream, METH_VARARGS, "Record that a stream uses the memory of a storage."},
    {"event_create", event_create, METH_VARARGS,
     "Create an event on a device; flags: 1 timing, 2 blocking, 4 interprocess."},
    {"event_destroy", event_destroy, METH_VARARGS, "Destroy an event."},
    {"event_record", event_record, METH_VARARGS, "Record an event on a stream."},
    {"event_wait", event_wait, METH_VARARGS, "Make a stream wait for an event."},
    {"event_synchronize", event_synchronize, METH_VARARGS, "Wait until an event completes."},
    {"event_query", event_query, METH_VARARGS, "Whether an event has completed."},
    {"event_elapsed", event_elapsed, METH_VARARGS, "Milliseconds between two events."},
    {"memory_details", memory_details, METH_O, "All statistics of a device's allocator."},
    {"reset_memory_totals", reset_memory_totals, METH_O, "Reset the totals of a device's allocator."},
    {"memory_info", memory_info, METH_O, "Free and total memory of a device, in bytes."},
    {"memory_snapshot", memory_snapshot, METH_O, "Every block of a device's allocator."},
    {"device_details", device_details, METH_O, "Properties of a device beyond the basic ones."},
    {"can_access_peer", can_access_peer, METH_VARARGS, "Whether a device can access the memory of another one."},
    {"pinned_details", pinned_details, METH_O, "All statistics of the cache of pinned memory."},
    {"reset_pinned", reset_pinned, METH_VARARGS, "Reset the peaks, or the totals, of the cache of pinned memory."},
    {"set_caching", set_caching, METH_VARARGS, "Set whether a device type caches freed memory."},
    {"profiler_record", profiler_record, METH_VARARGS, "Start or stop recording by the vendor's profiler."},
    {"profiler_range_start", profiler_range_start, METH_VARARGS,
     "Start a range in the vendor's profiler; returns its number."},
    {"profiler_range_end", profiler_range_end, METH_VARARGS, "End a range in the vendor's profiler."},
    {"profiler_mark", profiler_mark, METH_VARARGS, "Push a range, pop one, or set a mark in the vendor's profiler."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
