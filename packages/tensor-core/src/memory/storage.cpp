#include "memory/storage.hpp"

#include <structmember.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "device/streams.hpp"
#include "interop/interop.hpp"
#include "memory/copy_on_write.hpp"
#include "python/bindings.hpp"
#include "python/errors.hpp"
#include "record/recorder.hpp"
#include "tensor/tensor.hpp"

namespace candelabra {

namespace {

// A free list of Storage structs: every operator result needs one.
constexpr int free_limit = 512;
Storage* free_list[free_limit];
int free_count = 0;

Storage* new_struct() {
  if (free_count > 0) return new (free_list[--free_count]) Storage();
  return std::make_unique<Storage>().release();
}

void delete_struct(Storage* storage) {
  if (free_count < free_limit) {
    free_list[free_count++] = storage;
  } else {
    std::unique_ptr<Storage> owner(storage);
  }
}

struct StorageObject {
  PyObject_HEAD Storage* storage;
  PyObject* weakrefs;
  PyObject* dict;
  // The memory owns the object, instead of the object a reference to the memory: of an object that
  // Python code has dropped while tensors use the memory.
  bool is_kept;
};

PyTypeObject* storage_type = nullptr;
// Makes the memory of UntypedStorage(...) from its arguments; Python code, never freed.
PyObject* storage_maker = nullptr;
Storage& of(PyObject* self) {
  return *reinterpret_cast<StorageObject*>(self)->storage;
}

StorageObject* as_storage_object(PyObject* self) {
  return reinterpret_cast<StorageObject*>(self);
}

// Whether something would be lost with the object that a new one on the same memory does not have.
// A finalizer has run already, and is not to run twice.
bool has_state(PyObject* self) {
  const StorageObject* object = as_storage_object(self);
  if (Py_TYPE(self) != storage_type) return !Py_TYPE(self)->tp_finalize;
  return object->weakrefs || (object->dict && PyDict_GET_SIZE(object->dict) > 0);
}

void storage_dealloc(PyObject* self) {
  StorageObject* object = as_storage_object(self);
  Storage* storage = object->storage;
  if (storage && storage->wrapper == self && storage->references > 1 && has_state(self)) {
    _Py_NewReference(self);
    object->is_kept = true;
    --storage->references;
    return;
  }
  PyObject_GC_UnTrack(self);
  if (storage && storage->wrapper == self) storage->wrapper = nullptr;
  if (object->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(object->dict);
  if (storage) release(storage);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Does what Python code would do by dropping the last reference: the memory has no other owner.
void drop_kept_object(Storage& storage) {
  PyObject* object = storage.wrapper;
  as_storage_object(object)->is_kept = false;
  storage.references = 1;
  Py_DECREF(object);
}

int storage_traverse(PyObject* self, visitproc visit, void* arg) {
  const StorageObject* object = as_storage_object(self);
  // Other owners of the memory keep the object, and thus what it refers to.
  if (!object->storage || object->storage->references == 1) Py_VISIT(object->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int storage_clear(PyObject* self) {
  Py_CLEAR(as_storage_object(self)->dict);
  return 0;
}

PyObject* storage_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Ref<> made = owned(PyObject_Call(storage_maker, args, kwargs));
    if (type == storage_type) return made.release();
    Storage* storage = retain(storage_from_object(made.get()));
    made = Ref<>();
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) {
      release(storage);
      return nullptr;
    }
    reinterpret_cast<StorageObject*>(self)->storage = storage;
    storage->wrapper = self;
    return self;
  });
}

// The arguments are those of storage_new(); subclasses have their own.
int storage_init(PyObject*, PyObject*, PyObject*) {
  return 0;
}

Py_ssize_t storage_length(PyObject* self) {
  return static_cast<Py_ssize_t>(of(self).bytes);
}

PyObject* storage_bytes(PyObject* self, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Storage& storage = of(self);
    Ref<> bytes = owned(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(storage.bytes)));
    copy_bytes_to_host(PyBytes_AS_STRING(bytes.get()), {storage, 0}, storage.bytes);
    return bytes.release();
  });
}

py::object tensor_on_storage(Storage* storage, Dtype dtype) {
  const int64_t count = static_cast<int64_t>(storage->bytes) / itemsize(dtype);
  return stolen(make_tensor(retain(storage), dtype, Dims{count}, Dims{1}, 0).release_object());
}

PyMethodDef storage_methods[] = {
    {"nbytes", [](PyObject* self, PyObject*) { return PyLong_FromSize_t(of(self).bytes); }, METH_NOARGS,
     "The size in bytes."},
    {"size", [](PyObject* self, PyObject*) { return PyLong_FromSize_t(of(self).bytes); }, METH_NOARGS,
     "The size in bytes."},
    {"data_ptr",
     [](PyObject* self, PyObject*) {
       refuse_recording("data_ptr() gives out the address of a tensor");
       make_writable(&of(self));
       root_storage(&of(self))->is_address_known = true;
       return PyLong_FromVoidPtr(is_meta(of(self).device) ? nullptr : of(self).data);
     },
     METH_NOARGS, "The address of the memory on its device."},
    {"tobytes", storage_bytes, METH_NOARGS, "A copy of the memory as bytes."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef storage_getset[] = {
    {"device", [](PyObject* self, void*) { return device_object(of(self).device); }, nullptr,
     "The device of the memory.", nullptr},
    {"_cdata", [](PyObject* self, void*) { return PyLong_FromVoidPtr(root_storage(&of(self))); }, nullptr,
     "A number that is the same for all storages on this memory.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef storage_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(StorageObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(StorageObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot storage_slots[] = {
    {Py_tp_members, storage_members},
    {Py_tp_dealloc, reinterpret_cast<void*>(storage_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(storage_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(storage_clear)},
    {Py_tp_new, reinterpret_cast<void*>(storage_new)},
    {Py_tp_init, reinterpret_cast<void*>(storage_init)},
    {Py_sq_length, reinterpret_cast<void*>(storage_length)},
    {Py_tp_methods, storage_methods},
    {Py_tp_getset, storage_getset},
    {Py_tp_doc, const_cast<char*>("The memory behind one or more tensors.")},
    {0, nullptr},
};
PyType_Spec storage_spec = {"candelabra.Storage", sizeof(StorageObject), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, storage_slots};

}  // namespace

namespace {

// A position for memory without an address. Positions are not used again: there are enough of them.
void* new_position(size_t bytes) {
  static uint64_t next = uint64_t{1} << 60;
  return reinterpret_cast<void*>(std::exchange(next, next + (bytes + 63) / 64 * 64));
}

[[noreturn, gnu::cold]] void refuse_allocation(const DeviceType& type) {
  raise(backend_error, type.name, " (", type.distribution,
        "): allocate() succeeded and returned no memory: set storage, address or both");
}

}  // namespace

Storage* make_storage(Device device, size_t bytes) {
  const DeviceType& type = device_type(device);
  cb_allocation allocation{sizeof(cb_allocation),       bytes, nullptr, nullptr, nullptr, CB_MEMORY_DEVICE,
                           type.has(CB_CAP_HOST_MEMORY)};
  if (bytes > 0) {
    allocation.stream = current_stream(device);
    const int32_t status = type.table->allocate(device.index, &allocation);
    if (status != CB_OK) [[unlikely]]
      raise_backend_failure(type, "allocate", status);
    if (!allocation.storage && !allocation.address) [[unlikely]]
      refuse_allocation(type);
  }
  Storage* storage = new_struct();
  storage->handle = allocation.storage ? allocation.storage : allocation.address;
  storage->is_addressable = allocation.address || bytes == 0;
  storage->data = storage->is_addressable ? allocation.address : new_position(bytes);
  storage->bytes = bytes;
  storage->device = device;
  storage->kind = static_cast<uint8_t>(allocation.kind);
  storage->is_host_visible = allocation.host_visible && storage->is_addressable;
  if (Recorder* active = recorder()) [[unlikely]]
    active->note_new(*storage);
  return storage;
}

Storage* adopt_storage(Device device, void* data, size_t bytes, void (*release)(Storage&), void* owner,
                       cb_memory_kind kind) {
  Storage* storage = new_struct();
  storage->data = data;
  storage->bytes = bytes;
  storage->device = device;
  storage->kind = kind;
  storage->is_host_visible = device_type(device).has(CB_CAP_HOST_MEMORY);
  storage->release = release;
  storage->owner = owner;
  return storage;
}

void copy_memory_facts(Storage& to, const Storage& from) {
  to.data = from.data;
  to.handle = from.handle;
  to.bytes = from.bytes;
  to.device = from.device;
  to.kind = from.kind;
  to.is_addressable = from.is_addressable;
  to.is_host_visible = from.is_host_visible;
}

namespace {

// The storages that a program refers to weakly, while they live: the number of each, and all.
std::atomic<bool> any_watched{false};
class WatchedStorages {
 public:
  uint64_t watch(const Storage* root) {
    const auto [place, is_new] = numbers_.try_emplace(root, last_ + 1);
    if (is_new) living_.insert(++last_);
    return place->second;
  }
  bool is_alive(uint64_t number) const { return living_.contains(number); }
  void forget(const Storage* storage) {
    const auto place = numbers_.find(storage);
    if (place == numbers_.end()) return;
    living_.erase(place->second);
    numbers_.erase(place);
  }

 private:
  std::unordered_map<const Storage*, uint64_t> numbers_;
  std::unordered_set<uint64_t> living_;
  uint64_t last_ = 0;
};
WatchedStorages& watched() {
  static WatchedStorages made;
  return made;
}

uint64_t watch_storage(Storage* storage) {
  any_watched = true;
  return watched().watch(root_storage(storage));
}

bool is_storage_alive(uint64_t number) {
  return watched().is_alive(number);
}

}  // namespace

void release(Storage* storage) {
  if (--storage->references > 0) return;
  if (storage->wrapper) [[unlikely]]
    return drop_kept_object(*storage);
  if (any_watched.load(std::memory_order_relaxed)) [[unlikely]]
    watched().forget(storage);
  if (storage->recording) [[unlikely]] {
    if (Recorder* active = recorder()) active->note_freed(*storage);
  }
  if (storage->release) {
    storage->release(*storage);
  } else if (storage->handle) {
    device_type(storage->device).table->deallocate(storage->device.index, storage->handle, storage->bytes);
  }
  delete_struct(storage);
}

namespace {

void release_alias(Storage& alias) {
  Storage* root = static_cast<Storage*>(alias.owner);
  Storage** place = &root->aliases;
  while (*place != &alias) place = &(*place)->next_alias;
  *place = alias.next_alias;
  root->past_changes += alias.version;
  release(root);
}

}  // namespace

Storage* root_storage(Storage* storage) {
  return storage->release == release_alias ? static_cast<Storage*>(storage->owner) : storage;
}

Storage* alias_storage(Storage* storage) {
  Storage* root = retain(root_storage(storage));
  Storage* alias = adopt_storage(root->device, root->data, root->bytes, release_alias, root);
  copy_memory_facts(*alias, *root);
  alias->next_alias = std::exchange(root->aliases, alias);
  return alias;
}

Storage* begin_export(Storage* storage) {
  refuse_recording("numpy(), DLPack or a buffer gives out the memory of a tensor");
  make_writable(storage);
  Storage* root = retain(root_storage(storage));
  ++root->exports;
  return root;
}

void end_export(Storage* storage) {
  --storage->exports;
  ++storage->past_changes;  // the exported memory may have been written to, unseen
  release(storage);
}

uint64_t contents_of(Storage* storage) {
  Storage* root = root_storage(storage);
  if (root->release || root->exports > 0 || root->is_address_known) return 0;
  uint64_t changes = uint64_t{root->version} + root->past_changes;
  for (const Storage* alias = root->aliases; alias; alias = alias->next_alias) changes += alias->version;
  if (root->contents == 0 || root->contents_changes != changes) {
    static uint64_t last = 0;
    root->contents = ++last;
    root->contents_changes = changes;
  }
  return root->contents;
}

Storage* storage_from_object(PyObject* object) {
  check(PyObject_TypeCheck(object, storage_type), PyExc_TypeError, "expected a Storage, but got ",
        Py_TYPE(object)->tp_name);
  return &of(object);
}

PyObject* storage_object(Storage* storage) {
  if (storage->wrapper) return Py_NewRef(storage->wrapper);
  PyObject* object = storage_type->tp_alloc(storage_type, 0);
  if (!object) return nullptr;
  as_storage_object(object)->storage = retain(storage);
  storage->wrapper = object;
  return object;
}

namespace {

void release_slice(Storage& slice) {
  end_export(static_cast<Storage*>(slice.owner));
}

py::object slice_storage(Storage* storage, Int64Argument offset, Int64Argument bytes) {
  Storage* root = root_storage(storage);
  make_writable(root);
  check(root->is_addressable, PyExc_RuntimeError, "memory without an address cannot be sliced");
  check(offset >= 0 && bytes >= 0 && static_cast<size_t>(offset + bytes) <= root->bytes, PyExc_IndexError,
        "a slice of ", bytes.value, " bytes at ", offset.value, " is out of range for storage of size ", root->bytes);
  char* start = static_cast<char*>(root->data) + offset;
  Storage* slice = adopt_storage(root->device, start, static_cast<size_t>(bytes.value), release_slice,
                                 begin_export(root), static_cast<cb_memory_kind>(root->kind));
  slice->is_host_visible = root->is_host_visible;
  py::object object = stolen(storage_object(slice));
  release(slice);
  return object;
}

// The owner of a storage that was resized has the memory, in its whole size.
void release_resized(Storage& storage) {
  release(static_cast<Storage*>(storage.owner));
}

}  // namespace

size_t capacity_of(Storage* storage) {
  Storage* root = root_storage(storage);
  return root->release == release_resized ? static_cast<Storage*>(root->owner)->bytes : root->bytes;
}

namespace {

bool is_resizable(Storage* storage) {
  Storage* root = root_storage(storage);
  return (!root->release || root->release == release_resized || is_copy_on_write(root)) && root->exports == 0;
}

void resize_storage(Storage* storage, Int64Argument bytes, const py::object& new_memory) {
  refuse_recording("the memory of a tensor is resized");
  Storage* target = new_memory.is_none() ? nullptr : storage_from_object(new_memory.ptr());
  Storage* root = root_storage(storage);
  make_writable(root);
  check(is_resizable(root), PyExc_RuntimeError, "Trying to resize storage that is not resizable");
  const auto wanted = static_cast<size_t>(bytes.value);
  check(bytes >= 0 && target != root && (target || wanted <= capacity_of(root)), PyExc_ValueError,
        "resize_storage(): no memory for ", bytes.value, " bytes");
  if (target) {
    check(!target->release && target->bytes == wanted && target->device == root->device, PyExc_ValueError,
          "resize_storage(): the new memory is another's, or of another size or device");
    // Tensors view the old memory up to its capacity, which the new memory has too.
    check(wanted >= capacity_of(root), PyExc_ValueError, "resize_storage(): the new memory is too small");
  }
  if (target || root->release != release_resized) {
    Storage* old = adopt_storage(root->device, root->data, root->bytes, root->release, root->owner);
    copy_memory_facts(*old, *root);
    root->release = release_resized;
    root->owner = target ? retain(target) : retain(old);
    if (target) copy_memory_facts(*root, *target);
    release(old);
  }
  root->bytes = wanted;
  ++root->past_changes;
  for (Storage* alias = root->aliases; alias; alias = alias->next_alias) copy_memory_facts(*alias, *root);
}

}  // namespace

void register_storage(py::module_& module) {
  using namespace py::literals;
  const py::object type = stolen(PyType_FromSpec(&storage_spec));
  storage_type = reinterpret_cast<PyTypeObject*>(py::handle(type).inc_ref().ptr());
  module.add_object("Storage", type);
  register_copy_on_write(module);
  module.def("tensor_on_storage", tensor_on_storage, "storage"_a, "dtype"_a,
             "A 1-D tensor on the whole memory of a storage.");
  module.def(
      "set_storage_maker", [](const py::object& maker) { storage_maker = py::handle(maker).inc_ref().ptr(); },
      "maker"_a, "Set the function that returns the storage for the arguments of Storage().");
  module.def("slice_storage", slice_storage, "storage"_a, "offset"_a, "nbytes"_a,
             "A storage on a part of the memory of another.");
  module.def("watch_storage", watch_storage, "storage"_a,
             "A number of the memory of a storage, by which is_storage_alive() tells whether it is there.");
  module.def("is_storage_alive", is_storage_alive, "number"_a,
             "Whether the memory that watch_storage() gave a number is referenced.");
  module.def("is_resizable", is_resizable, "storage"_a,
             "Whether the core owns the memory, and nothing outside it has the address.");
  module.def("storage_capacity", capacity_of, "storage"_a, "The number of bytes to which resizing needs no memory.");
  module.def("resize_storage", resize_storage, "storage"_a, "nbytes"_a, "target"_a = py::none(),
             "Give a storage another size, and the memory of the new storage `target` where it has to grow. Memory "
             "that tensors view is kept.");
}

}  // namespace candelabra
