// Device types, devices, and the registry of backends.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "candelabra/backend.h"

namespace candelabra {

constexpr int max_device_types = 16;

// A device: the index of its type in the registry, and its index within the type.
struct Device {
  int8_t type = -1;
  int8_t index = 0;
  bool operator==(const Device&) const = default;
};

// The registry's entry for a loaded device type.
struct DeviceType {
  std::string name;
  std::string distribution;           // for messages: "candelabra-backend-cpu 0.1.0"
  const cb_backend* table = nullptr;  // complete: missing entries have defaults
  // as exported by the backend; null for a backend with Python kernels only
  const cb_backend* original = nullptr;
  int device_count = 1;
  // Operators without a kernel and without a decomposition run on the CPU.
  bool has_cpu_fallback = false;
  bool has(uint64_t capability) const { return (table->capabilities & capability) != 0; }
};

DeviceType& device_type(int type);
inline DeviceType& device_type(Device device) {
  return device_type(device.type);
}
int device_type_count();

// The number of the device type meta, whose tensors have no memory; none before its first use.
extern int meta_type;
inline bool is_meta(Device device) {
  return device.type == meta_type;
}
// The kernel of all operators on the device type meta: the core does not call it.
int32_t compute_nothing(cb_call* call);
inline constexpr const char* no_data = "Cannot copy out of meta tensor; no data!";
// The index of a loaded device type, or -1. Never loads a backend.
int find_device_type(std::string_view name);

// "cpu" or "cuda:1", as messages show it.
std::string to_text(Device device);
// Parses a device name. Loads the backend if necessary, through candelabra.backends.load in Python;
// throws what that raises.
Device device_from_text(std::string_view text);
Device default_device();
void set_default_device(Device device);

PyObject* device_object(Device device);  // new reference
bool is_device_object(PyObject* object);
// a device, str, or int (index of the default accelerator type); throws
Device device_from_object(PyObject* object);

extern PyMethodDef device_functions[];  // get_default_device(); ends with an empty entry

// Raises the exception for a failed table function (not a kernel) of this device type.
[[noreturn]] void raise_backend_failure(const DeviceType& type, const char* what, int32_t status);

}  // namespace candelabra
