// Storage: a block of memory on one device, shared by the tensors that view it, with its version
// counter.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "device/device.hpp"

namespace candelabra {

// Reference-counted; guarded by the GIL.
struct Storage {
  int64_t references = 1;
  // The address of the first byte. Memory without an address has a unique position here instead, so
  // that overlaps are found as for addresses.
  void* data = nullptr;
  void* handle = nullptr;  // cb_allocation.storage; null for memory with another owner
  size_t bytes = 0;
  Device device;
  uint8_t kind = CB_MEMORY_DEVICE;  // enum cb_memory_kind
  bool is_addressable = true;
  bool is_host_visible = false;
  uint32_t version = 0;           // bumped by every in-place modification of the memory
  uint32_t exports = 0;           // buffers and capsules outside the core that know the address
  uint32_t past_changes = 0;      // changes through deleted aliases and ended exports
  bool is_address_known = false;  // the address was given out as a number: writes can go unnoticed
  // the last result of contents_of(), valid while the number of changes is contents_changes
  uint64_t contents = 0;
  uint64_t contents_changes = 0;
  void (*release)(Storage&) = nullptr;  // frees the memory; null: the device's deallocate
  void* owner = nullptr;                // data for release: PyObject*, DLManagedTensor* or Storage*
  PyObject* wrapper = nullptr;          // the Python Storage object, if it exists; borrowed
  // list of aliases from alias_storage(), linked by next_alias; borrowed
  Storage* aliases = nullptr;
  Storage* next_alias = nullptr;
  // Of memory made while a thread records: the recorder, and its number for this memory.
  uint32_t recording = 0;
  int32_t recorded_buffer = 0;
};

Storage* make_storage(Device device, size_t bytes);  // allocates memory; throws OutOfMemoryError
// Memory with another owner. Calls release(storage) when the last reference is dropped.
Storage* adopt_storage(Device device, void* data, size_t bytes, void (*release)(Storage&), void* owner,
                       cb_memory_kind kind = CB_MEMORY_IMPORTED);
// Makes `to` describe the memory of `from`, which keeps its own owner and version.
void copy_memory_facts(Storage& to, const Storage& from);

// A place in a storage.
struct Position {
  Storage& storage;
  uint64_t offset;  // in bytes
  char* address() const { return static_cast<char*>(storage.data) + offset; }
};
// As the functions of a backend's table get it.
inline cb_memory memory_at(Position position) {
  Storage& storage = position.storage;
  return {storage.handle, position.offset, storage.is_addressable ? position.address() : nullptr, 0};
}

inline Storage* retain(Storage* storage) {
  ++storage->references;
  return storage;
}
void release(Storage* storage);  // the counterpart of retain()

// A storage on the same memory with its own version counter.
Storage* alias_storage(Storage* storage);
// The storage that owns the memory: for an alias, the one it was made from.
Storage* root_storage(Storage* storage);
// The number of bytes that tensors may view: more than `bytes` where the storage was made smaller.
size_t capacity_of(Storage* storage);

// Keeps the memory at its address while an exported buffer or capsule uses it. The counterpart is
// end_export().
Storage* begin_export(Storage* storage);
void end_export(Storage* storage);

// A number that identifies the contents of the memory: unique to this memory, and different after
// each change. 0 if changes could go unnoticed.
uint64_t contents_of(Storage* storage);

PyObject* storage_object(Storage* storage);      // new reference
Storage* storage_from_object(PyObject* object);  // borrowed; throws TypeError

}  // namespace candelabra
