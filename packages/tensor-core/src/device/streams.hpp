// The current stream of each thread and device: the device's default stream unless another is set.
#pragma once

#include "candelabra/accelerator.h"
#include "memory/storage.hpp"
#include "tensor/tensor.hpp"

namespace candelabra {

// Null: the device's default stream.
void* current_stream(Device device);
void set_current_stream(Device device, void* stream);

// This thread's current device of a type, which a device name without an index refers to.
int current_index(int type);
void set_current_index(int type, int index);

// The table of accelerator.h for a device type, padded with null for absent functions. Always a
// valid reference.
const cb_accelerator& accelerator_of(const DeviceType& type);

// Pinned host memory, for asynchronous copies to and from devices of this type.
bool has_pinned_memory(const DeviceType& type);
Storage* make_pinned_storage(const DeviceType& type, size_t bytes);

// Like those in interop.hpp and call.hpp. With non_blocking, copies from and to pinned memory may
// continue after the call.
bool copy_as_bytes(TensorObject* destination, TensorObject* source, bool non_blocking);
TensorRef to_device(TensorObject* self, Device device, bool non_blocking);

}  // namespace candelabra
