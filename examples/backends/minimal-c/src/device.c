/*
 * The device of the example: a first-fit arena, whose memory has no addresses, like the buffers of
 * OpenCL, Metal and Vulkan. Allocating returns a handle, the position of a block with a tag in the
 * upper bits. The core names memory by a handle and an offset; only device_address() turns them into
 * an address. A handle that is used as one traps.
 */
#define _POSIX_C_SOURCE 200809L
#include "device.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BYTES ((size_t)256 << 20)
#define ALIGNMENT ((size_t)64)
#define TAG ((uintptr_t)0xC0DE000000000000u) /* in no address of x86-64 or of ARM */

/* Blocks lie one behind another. Header and data are multiples of the alignment. */
typedef struct block {
  size_t bytes; /* of the data */
  bool used;
  char padding[55];
} block;

static unsigned char* arena;
static pthread_mutex_t arena_lock;
static cb_memory_statistics statistics = {sizeof(cb_memory_statistics), 0, 0, 0, 0, 0, 0};
static __thread char last_message[256];

char* device_address(const void* handle, uint64_t offset) {
  return handle ? (char*)arena + ((uintptr_t)handle ^ TAG) + offset : NULL;
}
static void* handle_of(const void* memory) {
  return (void*)((uintptr_t)((const unsigned char*)memory - arena) ^ TAG);
}
static block* next_block(block* b) {
  return (block*)((unsigned char*)(b + 1) + b->bytes);
}
static bool inside(const block* b) {
  return (const unsigned char*)b < arena + ARENA_BYTES;
}

int32_t device_initialize(void) {
  if (sizeof(block) != ALIGNMENT || pthread_mutex_init(&arena_lock, NULL) != 0) return CB_RUNTIME_ERROR;
  void* memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, ARENA_BYTES) != 0) return CB_OUT_OF_MEMORY;
  arena = memory;
  *(block*)arena = (block){ARENA_BYTES - sizeof(block), false, {0}};
  statistics.reserved = statistics.reserved_peak = (int64_t)ARENA_BYTES;
  return CB_OK;
}

const char* device_last_error(void) {
  return last_message;
}

int32_t device_allocate(int32_t device, cb_allocation* allocation) {
  (void)device;
  size_t bytes = allocation->bytes;
  int32_t status = CB_OUT_OF_MEMORY;
  size_t wanted = bytes > ARENA_BYTES ? bytes : (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  pthread_mutex_lock(&arena_lock);
  for (block* b = (block*)arena; inside(b); b = next_block(b)) {
    if (b->used) continue;
    for (block* following = next_block(b); inside(following) && !following->used; following = next_block(b)) {
      b->bytes += sizeof(block) + following->bytes; /* neighbours that are free become one */
    }
    if (b->bytes < wanted) continue;
    if (b->bytes >= wanted + sizeof(block) + ALIGNMENT) {
      size_t rest = b->bytes - wanted - sizeof(block);
      b->bytes = wanted;
      *next_block(b) = (block){rest, false, {0}};
    }
    b->used = true;
    allocation->storage = handle_of(b + 1);
    statistics.allocated += (int64_t)b->bytes;
    statistics.allocation_count += 1;
    if (statistics.allocated > statistics.allocated_peak) statistics.allocated_peak = statistics.allocated;
    status = CB_OK;
    break;
  }
  if (status != CB_OK) {
    snprintf(last_message, sizeof last_message,
             "out of memory: asked for %zu bytes, the arena has %zu, %lld of them in use", bytes, ARENA_BYTES,
             (long long)statistics.allocated);
  }
  pthread_mutex_unlock(&arena_lock);
  return status;
}

void device_deallocate(int32_t device, void* storage, uint64_t bytes) {
  (void)device, (void)bytes;
  block* b = (block*)device_address(storage, 0) - 1;
  pthread_mutex_lock(&arena_lock);
  b->used = false;
  statistics.allocated -= (int64_t)b->bytes;
  pthread_mutex_unlock(&arena_lock);
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
  uint64_t size = result->size < sizeof statistics ? result->size : sizeof statistics;
  pthread_mutex_lock(&arena_lock);
  memcpy(result, &statistics, size);
  pthread_mutex_unlock(&arena_lock);
  result->size = size;
  return CB_OK;
}
