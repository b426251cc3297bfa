// Python functions for pinned host memory, and for memory and events shared between processes.
#define PY_SSIZE_T_CLEAN  // lengths of bytes are Py_ssize_t
#include <Python.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "device/accelerator_calls.hpp"
#include "device/streams.hpp"
#include "interop/interop.hpp"
#include "memory/storage.hpp"

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

PyObject* pinned_storage(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject* object;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(arguments, "On:pinned_storage", &object, &bytes)) return nullptr;
    check(bytes >= 0, PyExc_ValueError, "pinned_storage(): the number of bytes must not be negative, but is ", bytes);
    Storage* storage = make_pinned_storage(device_type(device_from_object(object)), static_cast<size_t>(bytes));
    PyObject* result = storage_object(storage);
    release(storage);  // the object holds its own reference
    return result;
  });
}

PyObject* is_pinned(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *device_argument;
    if (!PyArg_ParseTuple(arguments, "OO:is_pinned", &object, &device_argument)) return nullptr;
    const Storage* storage = root_storage(storage_from_object(object));
    const DeviceType& type = device_type(device_from_object(device_argument));
    if (storage->release == release_pinned) Py_RETURN_TRUE;
    int32_t result = 0;
    const auto function = accelerator_of(type).is_pinned;
    if (function && storage->data && storage->is_host_visible)
      succeed(type, "is_pinned", function(storage->data, &result));
    return PyBool_FromLong(result);
  });
}

PyObject* empty_pinned_cache(PyObject*, PyObject* argument) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    if (const auto function = accelerator_of(device_type(device_from_object(argument))).empty_pinned_cache) function();
    return Py_NewRef(Py_None);
  });
}

// ---- inter-process sharing

cb_ipc_handle handle_from(PyObject* bytes, unsigned long long offset, unsigned long long block_bytes) {
  cb_ipc_handle handle{};
  handle.size = sizeof handle;
  check(PyBytes_Check(bytes) && static_cast<size_t>(PyBytes_GET_SIZE(bytes)) == sizeof handle.bytes, PyExc_ValueError,
        "a handle of other processes' memory has ", sizeof handle.bytes, " bytes");
  std::memcpy(handle.bytes, PyBytes_AS_STRING(bytes), sizeof handle.bytes);
  handle.offset = offset;
  handle.block_bytes = block_bytes;
  return handle;
}

PyObject* handle_object(const cb_ipc_handle& handle) {
  return Py_BuildValue("y#KK", reinterpret_cast<const char*>(handle.bytes),
                       static_cast<Py_ssize_t>(sizeof handle.bytes), static_cast<unsigned long long>(handle.offset),
                       static_cast<unsigned long long>(handle.block_bytes));
}

PyObject* ipc_export_storage(PyObject*, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&] {
    const Storage* storage = root_storage(storage_from_object(object));
    const DeviceType& type = device_type(storage->device);
    const auto function = accelerator_of(type).ipc_export_memory;
    require(type.has(CB_CAP_IPC) && function, type, "memory that other processes can open");
    check(storage->handle, PyExc_ValueError, "an empty storage has no memory to share");
    cb_ipc_handle handle{};
    handle.size = sizeof handle;
    succeed(type, "ipc_export_memory", function(storage->device.index, storage->handle, &handle));
    return handle_object(handle);
  });
}

struct OpenedMemory {
  Device device;
  void* base;
  std::string key;
  Ref<> owner;
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

PyObject* ipc_open_storage(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *bytes, *owner = Py_None;
    const char* key = nullptr;
    Py_ssize_t key_length = 0;
    unsigned long long offset, block_bytes, storage_bytes;
    if (!PyArg_ParseTuple(arguments, "OOKKK|y#O:ipc_open_storage", &object, &bytes, &offset, &block_bytes,
                          &storage_bytes, &key, &key_length, &owner))
      return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    const auto function = accelerator_of(type).ipc_open_memory;
    require(type.has(CB_CAP_IPC) && function, type, "memory that other processes can open");
    check(offset <= block_bytes && storage_bytes <= block_bytes - offset, PyExc_ValueError,
          "ipc_open_storage(): the storage lies outside of the block of memory");
    const cb_ipc_handle handle = handle_from(bytes, offset, block_bytes);
    const std::string name = key ? std::string(key, static_cast<size_t>(key_length)) : std::string();
    if (const auto found = opened_storages().find(name); key && found != opened_storages().end()) {
      check(found->second->device == device && found->second->bytes == storage_bytes, PyExc_ValueError,
            "ipc_open_storage(): other memory is known by this key");
      return storage_object(found->second);
    }
    auto opened = std::make_unique<OpenedMemory>(OpenedMemory{device, nullptr, name, Ref<>::borrow(owner)});
    succeed(type, "ipc_open_memory", function(device.index, &handle, &opened->base));
    char* data = static_cast<char*>(opened->base) + offset;
    Storage* storage = adopt_storage(device, data, storage_bytes, release_opened, opened.release());
    if (key) opened_storages()[name] = storage;
    PyObject* result = storage_object(storage);
    release(storage);
    return result;
  });
}

PyObject* ipc_storage_owner(PyObject*, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const Storage* storage = root_storage(storage_from_object(object));
    return Py_NewRef(storage->release == release_opened ? static_cast<OpenedMemory*>(storage->owner)->owner.get()
                                                        : Py_None);
  });
}

PyObject* ipc_export_event(PyObject*, PyObject* arguments) {
  return with_address(arguments, "OO:ipc_export_event", [](Device device, const DeviceType& type, void* event) {
    const auto function = accelerator_of(type).ipc_export_event;
    require(type.has(CB_CAP_IPC) && function, type, "events that other processes can open");
    cb_ipc_handle handle{};
    handle.size = sizeof handle;
    succeed(type, "ipc_export_event", function(device.index, event, &handle));
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(handle.bytes), sizeof handle.bytes);
  });
}

PyObject* ipc_open_event(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *object, *bytes;
    if (!PyArg_ParseTuple(arguments, "OO:ipc_open_event", &object, &bytes)) return nullptr;
    const Device device = device_from_object(object);
    const DeviceType& type = device_type(device);
    const auto function = accelerator_of(type).ipc_open_event;
    require(type.has(CB_CAP_IPC) && function, type, "events that other processes can open");
    const cb_ipc_handle handle = handle_from(bytes, 0, 0);
    void* event = nullptr;
    succeed(type, "ipc_open_event", function(device.index, &handle, &event));
    return PyLong_FromVoidPtr(event);
  });
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

PyMethodDef accelerator_memory_functions[] = {
    {"pinned_storage", pinned_storage, METH_VARARGS,
     "Allocate pinned host memory, which a device can copy to and from asynchronously."},
    {"is_pinned", is_pinned, METH_VARARGS, "Whether a storage is pinned for a device."},
    {"empty_pinned_cache", empty_pinned_cache, METH_O, "Return cached pinned memory to the system."},
    {"ipc_export_storage", ipc_export_storage, METH_O,
     "The handle, the offset and the size of the block, for another process."},
    {"ipc_open_storage", ipc_open_storage, METH_VARARGS,
     "ipc_open_storage(device, handle, offset, block_bytes, nbytes, key=..., owner=None) -> Storage\n\nA storage on "
     "memory "
     "of another process; it keeps `owner` alive. Returns the existing storage if one has the same key."},
    {"ipc_storage_owner", ipc_storage_owner, METH_O, "The owner given to ipc_open_storage(); None for other storages."},
    {"ipc_export_event", ipc_export_event, METH_VARARGS, "The handle of an event, for another process."},
    {"ipc_open_event", ipc_open_event, METH_VARARGS, "Open an event of another process; returns its address."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
