// The device that this template pretends to have: memory of the host behind handles, as a driver
// would hand them out. Replace the bodies by calls of your driver: clCreateBuffer,
// vkAllocateMemory, MTLBuffer, ...
//
// A handle is no address, and the host cannot touch the memory: allocate() leaves `address` null.
// If the device has addresses, set allocation->address; if the host can use them, also set
// allocation->host_visible. If all memory is the host's, add CB_CAP_HOST_MEMORY in backend.cpp.
#include "device.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace device {

namespace {

struct Buffer {
  uint64_t bytes;
  std::unique_ptr<char[]> memory;
};

std::atomic<int64_t> allocated, allocated_peak, allocation_count;
thread_local char message[256];

char* address_of(const cb_memory& memory) {
  return address(memory.storage, memory.offset);
}

int32_t allocate(int32_t, cb_allocation* allocation) {
  std::unique_ptr<Buffer> made(new (std::nothrow) Buffer{allocation->bytes, nullptr});
  if (made) made->memory.reset(new (std::nothrow) char[allocation->bytes]);
  if (!made || !made->memory) {
    std::snprintf(message, sizeof message, "out of memory: asked for %llu bytes, %lld are in use",
                  static_cast<unsigned long long>(allocation->bytes), static_cast<long long>(allocated));
    return CB_OUT_OF_MEMORY;
  }
  const int64_t now = allocated += static_cast<int64_t>(made->bytes);
  int64_t peak = allocated_peak;
  while (now > peak && !allocated_peak.compare_exchange_weak(peak, now)) continue;
  ++allocation_count;
  allocation->storage = made.release();
  return CB_OK;
}

void deallocate(int32_t, void* storage, uint64_t) {
  const std::unique_ptr<Buffer> freed(static_cast<Buffer*>(storage));
  allocated -= static_cast<int64_t>(freed->bytes);
}

int32_t copy_from_host(int32_t, const cb_memory* destination, const void* source, uint64_t bytes, void*) {
  std::memcpy(address_of(*destination), source, bytes);
  return CB_OK;
}

int32_t copy_to_host(int32_t, void* destination, const cb_memory* source, uint64_t bytes, void*) {
  std::memcpy(destination, address_of(*source), bytes);
  return CB_OK;
}

int32_t copy_within(int32_t, const cb_memory* destination, const cb_memory* source, uint64_t bytes, void*) {
  std::memmove(address_of(*destination), address_of(*source), bytes);
  return CB_OK;
}

int32_t memory_statistics(int32_t, cb_memory_statistics* result) {
  result->allocated = result->reserved = allocated;
  result->allocated_peak = result->reserved_peak = allocated_peak;
  result->allocation_count = allocation_count;
  return CB_OK;
}

const char* last_error() {
  return message;
}

}  // namespace

char* address(const void* storage, uint64_t offset) {
  return storage ? static_cast<const Buffer*>(storage)->memory.get() + offset : nullptr;
}

void write_to(cb_backend& table) {
  table.last_error = last_error;
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.copy_within = copy_within;
  table.memory_statistics = memory_statistics;
}

}  // namespace device
