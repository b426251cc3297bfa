// Default functions for the entries that a backend's table lacks, and the complete table of a
// backend that has Python kernels only.
#include "device/backend_defaults.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>

namespace candelabra {

namespace {

// A default function does not get the table that it belongs to, so it cannot call the table's other
// functions. Callers therefore handle a null copy_within by copying through the host.
const char* no_last_error() {
  return nullptr;
}
int32_t one_device(int32_t* count) {
  *count = 1;
  return CB_OK;
}
int32_t nothing_to_wait_for(int32_t) {
  return CB_OK;
}
int32_t no_statistics(int32_t, cb_memory_statistics* result) {
  uint64_t size = result->size;
  std::memset(result, 0, size);
  result->size = size;
  return CB_OK;
}
void nothing_on_device(int32_t) {}
int32_t no_memory_limit(int32_t, int64_t) {
  return CB_NOT_IMPLEMENTED;
}
int32_t one_thread() {
  return 1;
}
int32_t no_threads(int32_t) {
  return CB_NOT_IMPLEMENTED;
}
void nothing() {}

int32_t host_allocate(int32_t, size_t bytes, void*, void** result) {
  *result = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return *result ? CB_OK : CB_OUT_OF_MEMORY;
}
void host_deallocate(int32_t, void* memory, size_t, void*) {
  std::free(memory);
}
int32_t host_copy(int32_t, void* destination, const void* source, size_t bytes, void*) {
  std::memmove(destination, source, bytes);
  return CB_OK;
}

template <typename Function>
void set_default(Function*& slot, Function* function) {
  if (!slot) slot = function;
}

}  // namespace

cb_backend completed(const cb_backend& given) {
  cb_backend table{};
  std::memcpy(&table, &given, std::min<size_t>(given.size, sizeof(cb_backend)));
  table.size = sizeof(cb_backend);
  set_default(table.last_error, no_last_error);
  set_default(table.device_count, one_device);
  set_default(table.synchronize, nothing_to_wait_for);
  set_default(table.memory_statistics, no_statistics);
  set_default(table.reset_peak_statistics, nothing_on_device);
  set_default(table.empty_cache, nothing_on_device);
  set_default(table.set_memory_limit, no_memory_limit);
  set_default(table.thread_count, one_thread);
  set_default(table.set_thread_count, no_threads);
  set_default(table.after_fork_in_child, nothing);
  return table;
}

cb_backend host_memory_backend(const char* device_type) {
  cb_backend table{};
  table.size = sizeof(cb_backend);
  table.abi_major = CB_ABI_MAJOR;
  table.abi_minor = CB_ABI_MINOR;
  table.device_type = device_type;
  table.version = "";
  table.capabilities = CB_CAP_HOST_MEMORY;
  table.allocate = host_allocate;
  table.deallocate = host_deallocate;
  table.copy_from_host = host_copy;
  table.copy_to_host = host_copy;
  table.copy_within = host_copy;
  return completed(table);
}

}  // namespace candelabra
