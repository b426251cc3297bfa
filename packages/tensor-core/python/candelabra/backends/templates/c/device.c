/*
 * The device that this template pretends to have: memory of the host behind handles, as a driver
 * would hand them out. Replace the bodies by calls of your driver: clCreateBuffer, vkAllocateMemory,
 * MTLBuffer, ...
 *
 * A handle is no address, and the host cannot touch the memory: allocate() leaves `address` null.
 * If the device has addresses, set allocation->address; if the host can use them, also set
 * allocation->host_visible. If all memory is the host's, add CB_CAP_HOST_MEMORY in backend.c.
 */
#include "device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
  uint64_t bytes;
  char* memory;
} buffer;

static atomic_llong allocated, allocated_peak, allocation_count;
static _Thread_local char message[256];

int32_t device_allocate(int32_t device, cb_allocation* allocation) {
  (void)device;
  buffer* made = malloc(sizeof *made);
  char* memory = made ? malloc(allocation->bytes) : NULL;
  if (!memory) {
    free(made);
    snprintf(message, sizeof message, "out of memory: asked for %llu bytes, %lld are in use",
             (unsigned long long)allocation->bytes, (long long)allocated);
    return CB_OUT_OF_MEMORY;
  }
  *made = (buffer){allocation->bytes, memory};
  allocation->storage = made;
  const long long now = atomic_fetch_add(&allocated, (long long)made->bytes) + (long long)made->bytes;
  long long peak = allocated_peak;
  while (now > peak && !atomic_compare_exchange_weak(&allocated_peak, &peak, now)) continue;
  ++allocation_count;
  return CB_OK;
}

void device_deallocate(int32_t device, void* storage, uint64_t bytes) {
  (void)device, (void)bytes;
  buffer* freed = storage;
  allocated -= (long long)freed->bytes;
  free(freed->memory);
  free(freed);
}

char* device_address(const void* storage, uint64_t offset) {
  return storage ? ((const buffer*)storage)->memory + offset : NULL;
}

int32_t device_copy_from_host(int32_t device, const cb_memory* destination, const void* source, uint64_t bytes,
                              void* stream) {
  (void)device, (void)stream;
  memcpy(device_address(destination->storage, destination->offset), source, bytes);
  return CB_OK;
}

int32_t device_copy_to_host(int32_t device, void* destination, const cb_memory* source, uint64_t bytes, void* stream) {
  (void)device, (void)stream;
  memcpy(destination, device_address(source->storage, source->offset), bytes);
  return CB_OK;
}

int32_t device_copy_within(int32_t device, const cb_memory* destination, const cb_memory* source, uint64_t bytes,
                           void* stream) {
  (void)device, (void)stream;
  memmove(device_address(destination->storage, destination->offset), device_address(source->storage, source->offset),
          bytes);
  return CB_OK;
}

int32_t device_memory_statistics(int32_t device, cb_memory_statistics* result) {
  (void)device;
  const cb_memory_statistics found = {result->size,     allocated, allocated_peak, allocated, allocated_peak,
                                      allocation_count, 0};
  memcpy(result, &found, result->size < sizeof found ? result->size : sizeof found);
  return CB_OK;
}

const char* device_last_error(void) {
  return message;
}
