// Storage: one block of memory on one device, shared by the tensors that view it, with their version counter.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "device.hpp"

namespace candelabra {

// Counted by reference; counts change only under Python's global lock.
struct Storage {
  int64_t references = 1;
  void* data = nullptr;
  size_t bytes = 0;
  Device device;
  uint32_t version = 0;           // bumped by every in-place change of any tensor on this storage
  uint32_t exports = 0;           // buffers and capsules of others that know the address
  uint32_t past_changes = 0;      // those of aliases that are no more, and of exports that ended
  bool is_address_known = false;  // it was handed out as a number: anybody may write there at any time
  uint64_t contents = 0;          // the last number from contents_of(), given out when there had been so many changes
  uint64_t contents_changes = 0;
  void (*release)(Storage&) = nullptr;  // gives the memory back; null: the device's deallocate
  void* owner = nullptr;                // what release needs: a PyObject*, a DLManagedTensor*, another Storage*
  PyObject* wrapper = nullptr;          // the Python Storage object of this storage while there is one; borrowed
  Storage* aliases = nullptr;           // those from alias_storage(), each with the next in next_alias; borrowed
  Storage* next_alias = nullptr;
};

Storage* make_storage(Device device, size_t bytes);  // memory from the device's allocator; throws OutOfMemoryError
// Memory that somebody else owns; release(storage) is called when the last tensor lets go.
Storage* adopt_storage(Device device, void* data, size_t bytes, void (*release)(Storage&), void* owner);
inline Storage* retain(Storage* storage) {
  ++storage->references;
  return storage;
}
void release(Storage* storage);  // the counterpart of retain

// The same memory with a version counter of its own.
Storage* alias_storage(Storage* storage);
// The storage that owns the memory: of an alias the one that it was made of.
Storage* root_storage(Storage* storage);

// Keeps the memory where it is while somebody outside knows its address; the counterpart is end_export.
Storage* begin_export(Storage* storage);
void end_export(Storage* storage);

// A number that stands for what the memory holds: no other memory has it, and it is another one after each change. 0 where changes
// could go unseen.
uint64_t contents_of(Storage* storage);

PyObject* storage_object(Storage* storage);      // new reference
Storage* storage_from_object(PyObject* object);  // borrowed; throws TypeError
extern PyMethodDef shared_memory_functions[];  // map_storage, move_storage, storage_owner, mapped_owners; ends with an empty entry
bool init_storage(PyObject* module);

}  // namespace candelabra
