// Storages on memory-mapped files, which several processes can share. This file maps the memory and
// moves existing tensors from private to shared memory. candelabra-multiprocessing chooses the
// files, passes them to other processes and removes them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "interop/interop.hpp"

namespace candelabra {

namespace {

using FileKey = std::tuple<dev_t, ino_t, size_t>;  // device, inode, and number of mapped bytes

struct Mapping {
  FileKey file;
  PyObject* owner;          // keeps the file: dropping the last reference closes or removes it
  Storage* kept = nullptr;  // the former private memory, while exported arrays or capsules use it
};

// Storages by file: mapping a file again returns the same storage. Guarded by the GIL.
std::map<FileKey, Storage*>& mapped_storages() {
  static std::map<FileKey, Storage*> storages;
  return storages;
}

void release_mapping(Storage& storage) {
  const std::unique_ptr<Mapping> mapping(static_cast<Mapping*>(storage.owner));
  const auto found = mapped_storages().find(mapping->file);
  if (found != mapped_storages().end() && found->second == &storage) mapped_storages().erase(found);
  if (storage.data) munmap(storage.data, storage.bytes);
  if (mapping->kept) release(mapping->kept);
  Py_DECREF(mapping->owner);
}

Mapping* mapping_of(Storage* storage) {
  return storage->release == release_mapping ? static_cast<Mapping*>(storage->owner) : nullptr;
}

[[noreturn]] void raise_system_error(const char* filename) {
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, filename);
  throw PythonError();
}

PyObject* map_storage(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    int descriptor;
    Py_ssize_t bytes;
    PyObject *owner, *device_argument;
    if (!PyArg_ParseTuple(arguments, "inOO:map_storage", &descriptor, &bytes, &owner, &device_argument)) return nullptr;
    const Device device = device_from_object(device_argument);
    check(device_type(device).has(CB_CAP_HOST_MEMORY), PyExc_RuntimeError, "map_storage(): the memory of device ",
          to_text(device), " is not host memory, which is what a file can be mapped to");
    check(bytes >= 0, PyExc_ValueError, "map_storage(): the number of bytes must not be negative, but is ", bytes);
    struct stat status;
    if (fstat(descriptor, &status) != 0) raise_system_error("map_storage");
    // Reading beyond the end of the file would kill the process with SIGBUS.
    check(status.st_size >= bytes, PyExc_ValueError, "map_storage(): the file has ", status.st_size,
          " bytes, fewer than ", bytes);
    const FileKey file(status.st_dev, status.st_ino, static_cast<size_t>(bytes));
    if (const auto found = mapped_storages().find(file); found != mapped_storages().end()) {
      Storage* storage = found->second;
      check(storage->device == device, PyExc_ValueError, "map_storage(): the file is mapped already, on ",
            to_text(storage->device));
      return storage_object(storage);
    }
    void* data = nullptr;
    if (bytes > 0) {
      data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
      if (data == MAP_FAILED) raise_system_error("mmap");
    }
    auto mapping = std::make_unique<Mapping>(Mapping{file, Py_NewRef(owner)});
    Storage* storage = adopt_storage(device, data, static_cast<size_t>(bytes), release_mapping, mapping.release());
    mapped_storages()[file] = storage;
    PyObject* object = storage_object(storage);
    release(storage);  // the object holds its own reference
    return object;
  });
}

// The mapped pages that contain a storage from map_range().
struct Pages {
  void* start;
  size_t bytes;
};

void release_pages(Storage& storage) {
  const std::unique_ptr<Pages> pages(static_cast<Pages*>(storage.owner));
  munmap(pages->start, pages->bytes);
}

PyObject* map_range(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    int descriptor, shared;
    long long offset, bytes;
    PyObject* device_argument;
    if (!PyArg_ParseTuple(arguments, "iLLpO:map_range", &descriptor, &offset, &bytes, &shared, &device_argument))
      return nullptr;
    const Device device = device_from_object(device_argument);
    check(device_type(device).has(CB_CAP_HOST_MEMORY), PyExc_RuntimeError, "map_range(): the memory of device ",
          to_text(device), " is not host memory, which is what a file can be mapped to");
    check(offset >= 0 && bytes > 0, PyExc_ValueError, "map_range(): cannot map ", bytes, " bytes at ", offset);
    struct stat status;
    if (fstat(descriptor, &status) != 0) raise_system_error("map_range");
    check(offset <= status.st_size && bytes <= status.st_size - offset, PyExc_ValueError, "map_range(): ", bytes,
          " bytes at ", offset, " reach beyond the end of the file, which has ", status.st_size);
    // A mapping must begin at a page boundary.
    const long long before = offset % sysconf(_SC_PAGESIZE);
    const auto length = static_cast<size_t>(before + bytes);
    const int flags = shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
    void* start = mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, descriptor, offset - before);
    if (start == MAP_FAILED) raise_system_error("mmap");
    auto pages = std::make_unique<Pages>(Pages{start, length});
    Storage* storage = adopt_storage(device, static_cast<char*>(start) + before, static_cast<size_t>(bytes),
                                     release_pages, pages.release());
    PyObject* object = storage_object(storage);
    release(storage);  // the object holds its own reference
    return object;
  });
}

// move_storage(storage, target): copies the bytes to target's memory, which then replaces the
// memory of storage under all its tensors.
PyObject* move_storage(PyObject*, PyObject* arguments) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    PyObject *storage_argument, *target_argument;
    if (!PyArg_ParseTuple(arguments, "OO:move_storage", &storage_argument, &target_argument)) return nullptr;
    Storage* storage = root_storage(storage_from_object(storage_argument));
    Storage* target = storage_from_object(target_argument);
    check(mapping_of(target) != nullptr, PyExc_ValueError, "move_storage(): the target is not the mapping of a file");
    check(target->references == 1 && storage != target, PyExc_ValueError, "move_storage(): the target is in use");
    check(storage->bytes == target->bytes && storage->device == target->device, PyExc_ValueError,
          "move_storage(): ", storage->bytes, " bytes on ", to_text(storage->device), " do not go to ", target->bytes,
          " bytes on ", to_text(target->device));
    if (mapping_of(storage)) return Py_NewRef(Py_None);
    wait_for(storage->device);
    if (storage->bytes > 0) {
      // The arguments hold references to both, so neither can be freed meanwhile.
      Py_BEGIN_ALLOW_THREADS;
      std::memcpy(target->data, storage->data, storage->bytes);
      Py_END_ALLOW_THREADS;
    }
    // Another thread may have moved the storage meanwhile.
    if (mapping_of(storage)) return Py_NewRef(Py_None);
    Mapping* mapping = mapping_of(target);
    Storage* old = adopt_storage(storage->device, storage->data, storage->bytes, storage->release, storage->owner);
    copy_memory_facts(*old, *storage);
    copy_memory_facts(*storage, *target);
    target->data = nullptr;
    storage->release = std::exchange(target->release, nullptr);
    storage->owner = std::exchange(target->owner, nullptr);
    target->bytes = 0;
    for (Storage* alias = storage->aliases; alias; alias = alias->next_alias) copy_memory_facts(*alias, *storage);
    mapped_storages()[mapping->file] = storage;
    if (storage->exports > 0) {
      mapping->kept = old;
    } else {
      release(old);
    }
    Py_RETURN_NONE;
  });
}

PyObject* storage_owner(PyObject*, PyObject* object) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    const Mapping* mapping = mapping_of(root_storage(storage_from_object(object)));
    return Py_NewRef(mapping ? mapping->owner : Py_None);
  });
}

// The owners of all mapped files. A forked process needs them to take care of the files.
PyObject* mapped_owners(PyObject*, PyObject*) {
  return guarded<>(static_cast<PyObject*>(nullptr), [&]() -> PyObject* {
    Ref<> owners = owned(PyList_New(0));
    for (const auto& [file, storage] : mapped_storages()) {
      if (PyList_Append(owners.get(), mapping_of(storage)->owner) < 0) throw PythonError();
    }
    return owners.release();
  });
}

}  // namespace

PyMethodDef shared_memory_functions[] = {
    {"map_storage", map_storage, METH_VARARGS,
     "map_storage(descriptor, nbytes, owner, device) -> Storage\n\nA storage on the memory of a file; it keeps `owner` "
     "alive. "
     "Returns the existing storage if the same number of bytes of the file is already mapped."},
    {"map_range", map_range, METH_VARARGS,
     "map_range(descriptor, offset, nbytes, shared, device) -> Storage\n\nA storage on a part of a file. If it is "
     "shared, "
     "writing to it changes the file; otherwise writing copies the page first. No descriptor is kept open."},
    {"move_storage", move_storage, METH_VARARGS,
     "move_storage(storage, target)\n\nMove the bytes of a storage to the memory of an otherwise unused one from "
     "map_storage()."},
    {"storage_owner", storage_owner, METH_O,
     "storage_owner(storage)\n\nThe owner given to map_storage(); None for other storages."},
    {"mapped_owners", mapped_owners, METH_NOARGS, "mapped_owners() -> list\n\nThe owners of all mapped files."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace candelabra
