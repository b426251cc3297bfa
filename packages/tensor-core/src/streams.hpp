// Which stream is current: for every thread and device one, the device's default until another is set.
#pragma once

#include "candelabra/accelerator.h"
#include "storage.hpp"
#include "tensor.hpp"

namespace candelabra {

// Null: the device's default stream.
void* current_stream(Device device);
void set_current_stream(Device device, void* stream);

// This thread's current device of a type: what a name without a number means.
int current_index(int type);
void set_current_index(int type, int index);

// What the device has beyond backend.h, complete as far as the core knows it: absent functions are null. Never null itself.
const cb_accelerator& accelerator_of(const DeviceType& type);

// Pinned host memory, for copies to and from devices of this type that go on after the call.
bool has_pinned_memory(const DeviceType& type);
Storage* make_pinned_storage(const DeviceType& type, size_t bytes);

// As in interop.hpp and call.hpp; with non_blocking, what lies in pinned memory may be copied after the call.
bool copy_as_bytes(TensorObject* destination, TensorObject* source, bool non_blocking);
TensorRef to_device(TensorObject* self, Device device, bool non_blocking);

extern PyMethodDef accelerator_functions[];
extern PyMethodDef accelerator_memory_functions[];
extern PyMethodDef accelerator_graph_functions[];

}  // namespace candelabra
