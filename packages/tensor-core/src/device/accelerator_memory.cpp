// Python functions for pinned host memory, and for memory and events shared between processes.
#include <pybind11/stl.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "device/accelerator_calls.hpp"
#include "interop/interop.hpp"

namespace candelabra {

namespace {

// ---- pinned memory

struct Pinned {
  void (*release)(void*, size_t);
};

void release_pinned(Storage& storage) {
  const std::unique_ptr<Pinned> pinned(static_cast<Pinned*>(storage.owner));
  if (storage.data) pinned->release(storage.data, storage.bytes);
}

py::object pinned_storage(Device device, SizeArgument bytes) {
  check(bytes >= 0, PyExc_ValueError, "pinned_storage(): the number of bytes must not be negative, but is ",
        bytes.value);
  return object_of_new(make_pinned_storage(device_type(device), static_cast<size_t>(bytes.value)));
}

bool is_pinned(Storage* given, Device device) {
  const Storage* storage = root_storage(given);
  const DeviceType& type = device_type(device);
  if (storage->release == release_pinned) return true;
  int32_t result = 0;
  const auto function = accelerator_of(type).is_pinned;
  if (function && storage->data && storage->is_host_visible)
    succeed(type, "is_pinned", function(storage->data, &result));
  return result != 0;
}

void empty_pinned_cache(Device device) {
  if (const auto function = accelerator_of(device_type(device)).empty_pinned_cache) function();
}

// ---- inter-process sharing

cb_ipc_handle handle_from(py::handle given, uint64_t offset, uint64_t block_bytes) {
  cb_ipc_handle handle{};
  handle.size = sizeof handle;
  PyObject* bytes = given.ptr();
  check(PyBytes_Check(bytes) && static_cast<size_t>(PyBytes_GET_SIZE(bytes)) == sizeof handle.bytes, PyExc_ValueError,
        "a handle of other processes' memory has ", sizeof handle.bytes, " bytes");
  std::memcpy(handle.bytes, PyBytes_AS_STRING(bytes), sizeof handle.bytes);
  handle.offset = offset;
  handle.block_bytes = block_bytes;
  return handle;
}

py::bytes bytes_of(const cb_ipc_handle& handle) {
  return {reinterpret_cast<const char*>(handle.bytes), sizeof handle.bytes};
}

py::tuple ipc_export_storage(Storage* given) {
  const Storage* storage = root_storage(given);
  const DeviceType& type = device_type(storage->device);
  const auto function = accelerator_of(type).ipc_export_memory;
  require(type.has(CB_CAP_IPC) && function, type, "memory that other processes can open");
  check(storage->handle, PyExc_ValueError, "an empty storage has no memory to share");
  cb_ipc_handle handle{};
  handle.size = sizeof handle;
  succeed(type, "ipc_export_memory", function(storage->device.index, storage->handle, &handle));
  return py::make_tuple(bytes_of(handle), handle.offset, handle.block_bytes);
}

struct OpenedMemory {
  Device device;
  void* base;
  std::string key;
  py::object owner;
};

// Storages by key: opening a key again returns the same storage while it exists. Guarded by the
// GIL.
std::map<std::string, Storage*>& opened_storages() {
  static std::map<std::string, Storage*> storages;
  return storages;
}

void release_opened(Storage& storage) {
  const std::unique_ptr<OpenedMemory> opened(static_cast<OpenedMemory*>(storage.owner));
  if (const auto found = opened_storages().find(opened->key);
      found != opened_storages().end() && found->second == &storage)
    opened_storages().erase(found);
  const DeviceType& type = device_type(opened->device);
  // The exporting process reuses the memory once its owner is released, so wait for work queued
  // here. The status is ignored: after a fork, or on a failed device, nothing is queued and nobody
  // can be told.
  if (type.table->synchronize) type.table->synchronize(opened->device.index);
  if (const auto function = accelerator_of(type).ipc_close_memory) function(opened->device.index, opened->base);
}

py::object ipc_open_storage(Device device, py::handle bytes, Uint64Argument offset, Uint64Argument block_bytes,
                            Uint64Argument storage_bytes, const std::optional<py::bytes>& key, py::object owner) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).ipc_open_memory;
  require(type.has(CB_CAP_IPC) && function, type, "memory that other processes can open");
  check(offset <= block_bytes && storage_bytes <= block_bytes - offset, PyExc_ValueError,
        "ipc_open_storage(): the storage lies outside of the block of memory");
  const cb_ipc_handle handle = handle_from(bytes, offset, block_bytes);
  const std::string name = key ? std::string(*key) : std::string();
  if (const auto found = opened_storages().find(name); key && found != opened_storages().end()) {
    check(found->second->device == device && found->second->bytes == storage_bytes, PyExc_ValueError,
          "ipc_open_storage(): other memory is known by this key");
    return stolen(storage_object(found->second));
  }
  auto opened = std::make_unique<OpenedMemory>(OpenedMemory{device, nullptr, name, std::move(owner)});
  succeed(type, "ipc_open_memory", function(device.index, &handle, &opened->base));
  char* data = static_cast<char*>(opened->base) + offset;
  Storage* storage = adopt_storage(device, data, storage_bytes, release_opened, opened.release());
  if (key) opened_storages()[name] = storage;
  return object_of_new(storage);
}

py::object ipc_storage_owner(Storage* given) {
  const Storage* storage = root_storage(given);
  return storage->release == release_opened ? static_cast<OpenedMemory*>(storage->owner)->owner : py::none();
}

py::bytes ipc_export_event(Device device, Address event) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).ipc_export_event;
  require(type.has(CB_CAP_IPC) && function, type, "events that other processes can open");
  cb_ipc_handle handle{};
  handle.size = sizeof handle;
  succeed(type, "ipc_export_event", function(device.index, event.value, &handle));
  return bytes_of(handle);
}

Address ipc_open_event(Device device, py::handle bytes) {
  const DeviceType& type = device_type(device);
  const auto function = accelerator_of(type).ipc_open_event;
  require(type.has(CB_CAP_IPC) && function, type, "events that other processes can open");
  const cb_ipc_handle handle = handle_from(bytes, 0, 0);
  Address event;
  succeed(type, "ipc_open_event", function(device.index, &handle, &event.value));
  return event;
}

}  // namespace

bool has_pinned_memory(const DeviceType& type) {
  const cb_accelerator& table = accelerator_of(type);
  return type.has(CB_CAP_PINNED_MEMORY) && table.allocate_pinned && table.deallocate_pinned;
}

Storage* make_pinned_storage(const DeviceType& type, size_t bytes) {
  require(has_pinned_memory(type), type, "pinned memory");
  const cb_accelerator& table = accelerator_of(type);
  void* memory = nullptr;
  if (bytes > 0) succeed(type, "allocate_pinned", table.allocate_pinned(bytes, &memory));
  auto pinned = std::make_unique<Pinned>(Pinned{table.deallocate_pinned});
  return adopt_storage(host_device(), memory, bytes, release_pinned, pinned.release(), CB_MEMORY_PINNED);
}

void register_accelerator_memory(py::module_& module) {
  using namespace py::literals;
  module.def("pinned_storage", pinned_storage, "device"_a, "nbytes"_a,
             "Allocate pinned host memory, which a device can copy to and from asynchronously.");
  module.def("is_pinned", is_pinned, "storage"_a, "device"_a, "Whether a storage is pinned for a device.");
  module.def("empty_pinned_cache", empty_pinned_cache, "device"_a, "Return cached pinned memory to the system.");
  module.def("ipc_export_storage", ipc_export_storage, "storage"_a,
             "The handle, the offset and the size of the block, for another process.");
  module.def("ipc_open_storage", ipc_open_storage, "device"_a, "handle"_a, "offset"_a, "block_bytes"_a, "nbytes"_a,
             "key"_a = py::none(), "owner"_a = py::none(),
             "A storage on memory of another process; it keeps `owner` alive. Returns the existing storage if one has "
             "the same key.");
  module.def("ipc_storage_owner", ipc_storage_owner, "storage"_a,
             "The owner given to ipc_open_storage(); None for other storages.");
  module.def("ipc_export_event", ipc_export_event, "device"_a, "event"_a,
             "The handle of an event, for another process.");
  module.def("ipc_open_event", ipc_open_event, "device"_a, "handle"_a,
             "Open an event of another process; returns its address.");
}

}  // namespace candelabra
