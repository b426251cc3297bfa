#include "memory/copy_on_write.hpp"

#include <utility>

#include "interop/interop.hpp"
#include "python/bindings.hpp"
#include "record/recorder.hpp"
#include "tensor/tensor.hpp"

namespace candelabra {

namespace {

// The owner of a copy-on-write storage is a storage that only holds the memory: no tensor views it.
// Its references are the storages that share the memory.
Storage* memory_of(const Storage& root) {
  return static_cast<Storage*>(root.owner);
}

void release_shared(Storage& storage) {
  release(memory_of(storage));
}

void share_memory_of(Storage& storage, Storage* memory) {
  copy_memory_facts(storage, *memory);
  storage.release = release_shared;
  storage.owner = memory;
}

// Makes `to` the owner of the memory of `from`, and releases `from`.
void take_memory(Storage& to, Storage* from) {
  copy_memory_facts(to, *from);
  to.release = std::exchange(from->release, nullptr);
  to.owner = std::exchange(from->owner, nullptr);
  from->handle = nullptr;
  release(from);
}

// Whether the memory can be shared: the core owns it, nothing outside the core knows its address,
// and no program that is being recorded writes to it.
bool can_share(const Storage& root) {
  const bool is_shared = root.release == release_shared;
  return (is_shared || !root.release) && root.exports == 0 && !root.is_address_known && !is_meta(root.device) &&
         !recorder();
}

// A storage that shares the memory of another until one is written to; null if it cannot.
py::object lazy_clone(Storage* storage) {
  Storage* root = root_storage(storage);
  if (!can_share(*root)) return py::none();
  if (!root->release) {
    Storage* memory = adopt_storage(root->device, root->data, root->bytes, nullptr, nullptr);
    copy_memory_facts(*memory, *root);
    share_memory_of(*root, memory);
  }
  Storage* clone = adopt_storage(root->device, nullptr, 0, nullptr, nullptr);
  share_memory_of(*clone, retain(memory_of(*root)));
  py::object object = stolen(storage_object(clone));
  release(clone);
  return object;
}

}  // namespace

bool is_copy_on_write(Storage* storage) {
  return root_storage(storage)->release == release_shared;
}

void take_own_memory(Storage& storage) {
  Storage* root = root_storage(&storage);
  Storage* memory = memory_of(*root);
  if (memory->references == 1) {
    take_memory(*root, memory);
  } else {
    Storage* copy = make_storage(root->device, root->bytes);
    if (root->bytes > 0) copy_bytes_within({*copy, 0}, {*root, 0}, root->bytes);
    // Another thread may have written to the storage during the copy.
    if (root->release != release_shared) return release(copy);
    take_memory(*root, copy);
    release(memory);
  }
  for (Storage* alias = root->aliases; alias; alias = alias->next_alias) copy_memory_facts(*alias, *root);
}

void register_copy_on_write(py::module_& module) {
  using namespace py::literals;
  module.def("lazy_clone", lazy_clone, "storage"_a,
             "A storage that shares the memory of another until one of them is written to; None where that cannot be.");
  module.def("is_copy_on_write", is_copy_on_write, "storage"_a,
             "Whether a storage shares memory that is copied before it is written to.");
  module.def(
      "storage_address", [](Storage* storage) { return reinterpret_cast<uintptr_t>(storage->data); }, "storage"_a,
      "The address of the memory, only to be compared: the memory may be copied before it is written to.");
}

}  // namespace candelabra
