/* The device of this backend: its memory, and how the host reaches it. */
#ifndef DEVICE_H
#define DEVICE_H

#include "candelabra/backend.h"

int32_t device_allocate(int32_t device, cb_allocation* allocation);
void device_deallocate(int32_t device, void* storage, uint64_t bytes);
int32_t device_copy_from_host(int32_t device, const cb_memory* destination, const void* source, uint64_t bytes,
                              void* stream);
int32_t device_copy_to_host(int32_t device, void* destination, const cb_memory* source, uint64_t bytes, void* stream);
int32_t device_copy_within(int32_t device, const cb_memory* destination, const cb_memory* source, uint64_t bytes,
                           void* stream);
int32_t device_memory_statistics(int32_t device, cb_memory_statistics* result);
const char* device_last_error(void);

/* Where kernels find a position of a storage. */
char* device_address(const void* storage, uint64_t offset);

#endif
