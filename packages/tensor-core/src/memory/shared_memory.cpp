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
#include "memory/copy_on_write.hpp"
#include "python/bindings.hpp"
#include "python/gil.hpp"

namespace candelabra {

namespace {

using FileKey = std::tuple<dev_t, ino_t, size_t>;  // device, inode, and number of mapped bytes

struct Mapping {
  FileKey file;
  py::object owner;         // keeps the file: dropping the last reference closes or removes it
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
}

Mapping* mapping_of(Storage* storage) {
  return storage->release == release_mapping ? static_cast<Mapping*>(storage->owner) : nullptr;
}

[[noreturn]] void raise_system_error(const char* filename) {
  PyErr_SetFromErrnoWithFilename(PyExc_OSError, filename);
  throw PythonError();
}

void require_host_memory(Device device, const char* function) {
  check(device_type(device).has(CB_CAP_HOST_MEMORY), PyExc_RuntimeError, function, "(): the memory of device ",
        to_text(device), " is not host memory, which is what a file can be mapped to");
}

py::object map_storage(IntArgument descriptor, SizeArgument bytes, py::object owner, Device device) {
  require_host_memory(device, "map_storage");
  check(bytes >= 0, PyExc_ValueError, "map_storage(): the number of bytes must not be negative, but is ", bytes.value);
  struct stat status;
  if (fstat(descriptor, &status) != 0) raise_system_error("map_storage");
  // Reading beyond the end of the file would kill the process with SIGBUS.
  check(status.st_size >= bytes, PyExc_ValueError, "map_storage(): the file has ", status.st_size,
        " bytes, fewer than ", bytes.value);
  const auto length = static_cast<size_t>(bytes.value);
  const FileKey file(status.st_dev, status.st_ino, length);
  if (const auto found = mapped_storages().find(file); found != mapped_storages().end()) {
    Storage* storage = found->second;
    check(storage->device == device, PyExc_ValueError, "map_storage(): the file is mapped already, on ",
          to_text(storage->device));
    return stolen(storage_object(storage));
  }
  void* data = nullptr;
  if (length > 0) {
    data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED) raise_system_error("mmap");
  }
  auto mapping = std::make_unique<Mapping>(Mapping{file, std::move(owner)});
  Storage* storage = adopt_storage(device, data, length, release_mapping, mapping.release());
  mapped_storages()[file] = storage;
  return object_of_new(storage);
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

py::object map_range(IntArgument descriptor, Int64Argument offset, Int64Argument bytes, TruthArgument shared,
                     Device device) {
  require_host_memory(device, "map_range");
  check(offset >= 0 && bytes > 0, PyExc_ValueError, "map_range(): cannot map ", bytes.value, " bytes at ",
        offset.value);
  struct stat status;
  if (fstat(descriptor, &status) != 0) raise_system_error("map_range");
  check(offset <= status.st_size && bytes <= status.st_size - offset, PyExc_ValueError, "map_range(): ", bytes.value,
        " bytes at ", offset.value, " reach beyond the end of the file, which has ", status.st_size);
  // A mapping must begin at a page boundary.
  const long long before = offset % sysconf(_SC_PAGESIZE);
  const auto length = static_cast<size_t>(before + bytes);
  const int flags = shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
  void* start = mmap(nullptr, length, PROT_READ | PROT_WRITE, flags, descriptor, offset - before);
  if (start == MAP_FAILED) raise_system_error("mmap");
  auto pages = std::make_unique<Pages>(Pages{start, length});
  return object_of_new(adopt_storage(device, static_cast<char*>(start) + before, static_cast<size_t>(bytes.value),
                                     release_pages, pages.release()));
}

void move_storage(Storage* given, Storage* target) {
  Storage* storage = root_storage(given);
  make_writable(storage);
  check(mapping_of(target) != nullptr, PyExc_ValueError, "move_storage(): the target is not the mapping of a file");
  check(target->references == 1 && storage != target, PyExc_ValueError, "move_storage(): the target is in use");
  check(storage->bytes == target->bytes && storage->device == target->device, PyExc_ValueError,
        "move_storage(): ", storage->bytes, " bytes on ", to_text(storage->device), " do not go to ", target->bytes,
        " bytes on ", to_text(target->device));
  check(capacity_of(storage) == storage->bytes, PyExc_RuntimeError,
        "a storage that was made smaller cannot be moved to shared memory: tensors may view what it had");
  if (mapping_of(storage)) return;
  wait_for(storage->device);
  if (storage->bytes > 0) {
    // The arguments hold references to both, so neither can be freed meanwhile.
    const GilReleased released;
    std::memcpy(target->data, storage->data, storage->bytes);
  }
  // Another thread may have moved the storage meanwhile.
  if (mapping_of(storage)) return;
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
}

py::object storage_owner(Storage* storage) {
  const Mapping* mapping = mapping_of(root_storage(storage));
  return mapping ? mapping->owner : py::none();
}

// A forked process needs the owners of mapped files to take care of the files.
py::list mapped_owners() {
  py::list owners;
  for (const auto& [file, storage] : mapped_storages()) owners.append(mapping_of(storage)->owner);
  return owners;
}

}  // namespace

void register_shared_memory(py::module_& module) {
  using namespace py::literals;
  module.def("map_storage", map_storage, "descriptor"_a, "nbytes"_a, "owner"_a, "device"_a,
             "A storage on the memory of a file; it keeps `owner` alive. Returns the existing storage if the same "
             "number of bytes of the file is already mapped.");
  module.def("map_range", map_range, "descriptor"_a, "offset"_a, "nbytes"_a, "shared"_a, "device"_a,
             "A storage on a part of a file. If it is shared, writing to it changes the file; otherwise writing "
             "copies the page first. No descriptor is kept open.");
  module.def("move_storage", move_storage, "storage"_a, "target"_a,
             "Copy the bytes of a storage to the memory of an otherwise unused one from map_storage(), which then "
             "replaces the storage's memory under all its tensors.");
  module.def("storage_owner", storage_owner, "storage"_a, "The owner given to map_storage(); None for other storages.");
  module.def("mapped_owners", mapped_owners, "The owners of all mapped files.");
}

}  // namespace candelabra
